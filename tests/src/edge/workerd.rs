use std::env;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::need::cache;
use super::{Setup, Worker};
use crate::{Process, until};

const PATIENCE: Duration = Duration::from_secs(30);

/// Cloudflare's runtime of workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workerd(PathBuf);

/// A line that workerd writes when it has begun to listen.
#[derive(Deserialize)]
#[serde(tag = "event", rename = "listen")]
struct Listens {
    socket: String,
    port: u16,
}

impl Workerd {
    /// By `DELAYLINE_WORKERD`, or where `tests/run` puts it.
    pub(super) fn find() -> Option<Workerd> {
        let path = env::var_os("DELAYLINE_WORKERD").map(PathBuf::from);
        path.or_else(installed).filter(|path| path.is_file()).map(Workerd)
    }

    /// Starts a worker and waits until it listens.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(&self, setup: &Setup) -> Worker {
        let scratch = setup.written();
        let (directory, log) = (scratch.path(), scratch.path().join("log"));
        let file = File::create(&log).expect("a log file");
        let mut command = Command::new(&self.0);
        command.args(["serve", "config.capnp", "--experimental", "--control-fd=1"]).current_dir(directory);
        command.env_clear().envs(setup.environment()).stdin(Stdio::null());
        command.stdout(file.try_clone().expect("a log file")).stderr(file);
        let mut process = Process::start(&mut command);
        let [http, cron] = until("a worker that listens", PATIENCE, || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            if let Some(ended) = process.ended() {
                panic!("workerd ended with {ended}:\n{text}");
            }
            Some([address(&text, "http")?, address(&text, "cron")?])
        });
        Worker::new(process, http, cron, scratch)
    }
}

/// `node_modules/@cloudflare/workerd-linux-64/bin/workerd`: the package has the name of the system.
fn installed() -> Option<PathBuf> {
    let packages = cache().join("workerd/node_modules/@cloudflare");
    let mut binaries = fs::read_dir(packages).ok()?.filter_map(|package| binary(&package.ok()?.path()));
    binaries.next()
}

fn binary(package: &Path) -> Option<PathBuf> {
    let binary = package.join("bin/workerd");
    binary.is_file().then_some(binary)
}

fn address(log: &str, socket: &str) -> Option<SocketAddr> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Listens>(line).ok());
    let port = lines.filter(|listens| listens.socket == socket).map(|listens| listens.port).next()?;
    Some((Ipv4Addr::LOCALHOST, port).into())
}
