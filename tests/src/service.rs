use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Process, until};

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a `serve` whose log goes to a file, and reads there where it listens.
///
/// # Panics
/// If it does not start.
pub(crate) fn start(command: &mut Command, log: &Path) -> (Process, SocketAddr) {
    command.env("NO_COLOR", "1").env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stderr(File::create(log).expect("a log file"));
    let mut process = Process::start(command);
    let address = until("the service's address", PATIENCE, || {
        let text = fs::read_to_string(log).unwrap_or_default();
        if let Some(ended) = process.ended() {
            panic!("the service ended with {ended}:\n{text}");
        }
        let address =
            text.split_once("listening on ")?.1.split_once("://")?.1.split([',', ' ', '/', '\n']).next()?;
        address.parse().ok()
    });
    (process, address)
}
