use std::env;
use std::path::{Path, PathBuf};

use crate::report;

/// A server that speaks Redis's protocol and runs its scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flavour {
    /// What it is called in messages.
    pub name: &'static str,
    /// Its binary.
    pub path: PathBuf,
}

impl Flavour {
    /// The server most people run: `DELAYLINE_REDIS_SERVER`, or `redis-server` of the `PATH`.
    ///
    /// # Panics
    /// If there is none.
    pub fn usual() -> Flavour {
        let path =
            env::var_os("DELAYLINE_REDIS_SERVER").map(PathBuf::from).or_else(|| on_path("redis-server"));
        let path = path.filter(|path| path.is_file()).expect(
            "these tests need a redis-server: install Redis 6.2 or later (Debian: apt install redis-server, macOS: brew \
             install redis), or set DELAYLINE_REDIS_SERVER to the path of its binary",
        );
        Flavour { name: "redis", path }
    }

    /// The usual one, and the oldest Redis and the Valkey that are supported, where they are present: found by
    /// `DELAYLINE_REDIS_62` and `DELAYLINE_VALKEY`, or where `tests/flavours.sh` puts them.
    pub fn all() -> Vec<Flavour> {
        let others = [
            ("redis 6.2", "DELAYLINE_REDIS_62", "redis-server-6.2"),
            ("valkey", "DELAYLINE_VALKEY", "valkey-server"),
        ];
        let others = others.into_iter().filter_map(|(name, variable, file)| {
            let path = env::var_os(variable).map_or_else(|| cache().join(file), PathBuf::from);
            if !path.is_file() {
                report(&format!("left out: {name} (run tests/flavours.sh, or set {variable})"));
                return None;
            }
            Some(Flavour { name, path })
        });
        [Flavour::usual()].into_iter().chain(others).collect()
    }
}

fn on_path(file: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|directory| directory.join(file)).find(|path| path.is_file())
}

fn cache() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target")).join("flavours")
}
