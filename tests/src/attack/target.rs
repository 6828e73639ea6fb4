use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Options;
use crate::scratch::Scratch;
use crate::{Process, RedisServer, until};

const PATIENCE: Duration = Duration::from_secs(60);

/// A service in a process of its own, on a Redis of its own.
pub(super) struct Target {
    process: Process,
    address: SocketAddr,
    _redis: RedisServer,
    _scratch: Scratch,
}

/// What the service has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Memory in use.
    pub(super) kib: u64,
    /// Open descriptors.
    pub(super) descriptors: usize,
}

impl Target {
    pub(super) fn start(options: &Options) -> Target {
        let redis = RedisServer::plain();
        let scratch = Scratch::new("attack");
        let log = scratch.path().join("log");
        let limit = options.descriptors;
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {limit} 2>/dev/null; exec \"$0\" \"$@\"")]);
        command.arg(&options.program).args(["serve", "--listen", "127.0.0.1:0", "--redis", &redis.url()]);
        command.env("NO_COLOR", "1").env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stderr(File::create(&log).expect("a log file"));
        let mut process = Process::start(&mut command);
        let address = until("the service's address", PATIENCE, || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            if let Some(ended) = process.ended() {
                panic!("the service ended with {ended}:\n{text}");
            }
            let address = text.split_once("http://")?.1.split([',', ' ', '/', '\n']).next()?;
            address.parse().ok()
        });
        Target { process, address, _redis: redis, _scratch: scratch }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many descriptors it may open.
    pub(super) fn descriptors(&self) -> u64 {
        let limits = self.read("limits");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        hard.expect("a limit of descriptors")
    }

    pub(super) fn state(&self) -> State {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let descriptors = fs::read_dir(self.path("fd")).expect("its descriptors").count();
        State { kib: kib.expect("the service is gone"), descriptors }
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_else(|why| panic!("{file} of the service: {why}"))
    }

    fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.process.id()))
    }
}
