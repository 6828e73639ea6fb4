use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use delayline_bundle::{Bundle, Failure, Options, bundle};

use super::Workerd;
use crate::report;

/// The runtime of workers, if there is one here: `DELAYLINE_WORKERD`, or what `tests/run` gets.
///
/// # Panics
/// If there is none, in CI.
pub fn workerd() -> Option<Workerd> {
    let found = Workerd::find();
    found
        .or_else(|| missing("no workerd: tests/run gets it (with npm), or set DELAYLINE_WORKERD to its path"))
}

/// The worker in a directory, built at most once by a test program; `None` if no WebAssembly can be built here.
///
/// # Panics
/// If it does not compile; if no WebAssembly can be built, in CI.
pub fn built(directory: &Path) -> Option<Bundle> {
    static BUILT: Mutex<BTreeMap<PathBuf, Bundle>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bundle) = built.get(directory) {
        return Some(bundle.clone());
    }
    let target = cache().join("edge");
    let name = directory.file_name().unwrap_or(directory.as_os_str());
    let out = target.join("bundles").join(name);
    let options = Options { target_directory: Some(target), ..Options::default() };
    match bundle(directory, &out, &options) {
        Ok(bundle) => {
            report(&format!("{}: {}", directory.display(), bundle.size()));
            built.insert(directory.to_owned(), bundle.clone());
            Some(bundle)
        }
        Err(why @ (Failure::NoTarget { .. } | Failure::Run { .. })) => missing(&why.to_string()),
        Err(why) => panic!("{why}"),
    }
}

/// Where what is gotten and built once is kept.
pub(super) fn cache() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))
}

/// What a test does without something that it needs: it says so, which `tests/run` reads, and is skipped.
///
/// # Panics
/// In CI.
pub fn missing<T>(why: &str) -> Option<T> {
    assert!(env::var("CI").as_deref() != Ok("true"), "{why}");
    let test = thread::current();
    report(&format!("skipped {}: {why}", test.name().unwrap_or("a test")));
    None
}
