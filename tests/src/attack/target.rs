use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::endpoint::{Endpoint, Security, certify};
use crate::scratch::Scratch;
use crate::{Process, RedisServer, service};

/// A service in a process of its own, on a Redis of its own.
pub struct Target {
    process: Process,
    endpoint: Endpoint,
    _redis: RedisServer,
    _scratch: Scratch,
}

/// What the service has.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// Memory in use.
    pub kib: u64,
    /// Open descriptors.
    pub descriptors: usize,
}

impl Target {
    /// Starts `program serve` with so many descriptors, or fewer where the system allows fewer.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(program: &Path, descriptors: u64) -> Target {
        Target::start_with(program, descriptors, &Security::default())
    }

    /// Starts it secured.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_with(program: &Path, descriptors: u64, security: &Security) -> Target {
        let redis = RedisServer::plain();
        let scratch = Scratch::new("attack");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {descriptors} 2>/dev/null; exec \"$0\" \"$@\"")]);
        command.arg(program).args(["serve", "--listen", "127.0.0.1:0", "--redis", &redis.url()]);
        let (certified, tls) =
            if security.tls { Some(certify(scratch.path())).unzip() } else { (None, None) };
        command.args(certified.unwrap_or_default());
        if let Some(token) = &security.token {
            command.env("DELAYLINE_TOKEN", token);
        }
        let (process, address) = service::start(&mut command, &scratch.path().join("log"));
        let authorization = security.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let endpoint = Endpoint { address, tls, authorization: authorization.unwrap_or_default() };
        Target { process, endpoint, _redis: redis, _scratch: scratch }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address
    }

    /// How it is spoken to.
    pub(super) fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    /// How many descriptors it may open.
    ///
    /// # Panics
    /// If the system does not say.
    pub fn descriptors(&self) -> u64 {
        let limits = self.read("limits");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        hard.expect("a limit of descriptors")
    }

    /// What it has now.
    ///
    /// # Panics
    /// If it is gone.
    pub fn state(&self) -> State {
        let descriptors = fs::read_dir(self.path("fd")).expect("its descriptors").count();
        State { kib: self.kib("VmRSS:"), descriptors }
    }

    /// The most memory that it ever had.
    ///
    /// # Panics
    /// If it is gone.
    pub fn most_kib(&self) -> u64 {
        self.kib("VmHWM:")
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn kib(&self, line: &str) -> u64 {
        let status = self.read("status");
        let line = status.lines().find_map(|has| has.strip_prefix(line));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kib.expect("the service is gone")
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_else(|why| panic!("{file} of the service: {why}"))
    }

    fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.process.id()))
    }
}
