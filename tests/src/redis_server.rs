use std::ffi::OsString;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use delayline_core::wire::Value;

use crate::{Connection, Flavour, Process, until};

const PATIENCE: Duration = Duration::from_secs(60);
const PORTS_TRIED: usize = 5;
const FIRST_PORT: u32 = 12_000;
const PORTS: u32 = 16_000;

/// How the server keeps what it accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Append {
    /// Not at all: a restart forgets everything.
    #[default]
    Off,
    /// On disk within a second.
    EverySecond,
    /// On disk before the reply.
    Always,
}

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which server; the usual one if `None`.
    pub flavour: Option<Flavour>,
    /// Whether writes survive.
    pub append: Append,
    /// The most bytes of memory; writes beyond it are refused.
    pub maxmemory: Option<u64>,
    /// Users as Redis's config writes them: `alice on >secret ~* +@all`.
    pub users: Vec<String>,
    /// Where it keeps its files, which then stay; a directory of its own if `None`.
    pub directory: Option<PathBuf>,
    /// The program that runs the server, and its arguments, as in `valgrind --tool=callgrind`; none if empty.
    pub under: Vec<OsString>,
}

/// A server on a free port of this machine with a directory of its own; both go when it is dropped, unless the
/// directory was given.
#[derive(Debug)]
pub struct RedisServer {
    options: Options,
    flavour: Flavour,
    directory: PathBuf,
    port: u16,
    child: Option<Process>,
}

impl RedisServer {
    /// Starts one and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(options: Options) -> RedisServer {
        let flavour = options.flavour.clone().unwrap_or_else(Flavour::usual);
        let directory = options.directory.clone().unwrap_or_else(directory);
        fs::create_dir_all(&directory).expect("a temporary directory");
        let mut server = RedisServer { options, flavour, directory, port: 0, child: None };
        let started = (0..PORTS_TRIED).any(|_| {
            server.port = free_port();
            server.spawn()
        });
        assert!(started, "{} does not start:\n{}", server.flavour.path.display(), server.log());
        server
    }

    /// The usual server with no options.
    pub fn plain() -> RedisServer {
        RedisServer::start(Options::default())
    }

    /// The port of 127.0.0.1 on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address as clients write it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// A new connection.
    ///
    /// # Panics
    /// If the server is not running.
    pub fn connect(&self) -> Connection {
        Connection::open(self.port).expect("a connection to the server under test")
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    ///
    /// # Panics
    /// If it does not end.
    pub fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            child.terminate();
        }
    }

    /// Ends it at once (SIGKILL): nothing is flushed.
    pub fn kill(&mut self) {
        drop(self.child.take());
    }

    /// Starts it again on the same port and directory, after [`stop`](RedisServer::stop) or
    /// [`kill`](RedisServer::kill).
    ///
    /// # Panics
    /// If it does not answer.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.spawn(), "{} does not start again:\n{}", self.flavour.path.display(), self.log());
    }

    /// Lets it stand still (SIGSTOP) until [`resume`](RedisServer::resume).
    ///
    /// # Panics
    /// If it is not running.
    pub fn pause(&self) {
        self.child.as_ref().expect("a running server").signal("STOP");
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Panics
    /// If it is not running.
    pub fn resume(&self) {
        self.child.as_ref().expect("a running server").signal("CONT");
    }

    fn spawn(&mut self) -> bool {
        let log = File::create(self.directory.join("log")).expect("a log file");
        let mut words =
            self.options.under.iter().map(OsString::as_os_str).chain([self.flavour.path.as_os_str()]);
        let mut command = Command::new(words.next().expect("a server"));
        command
            .args(words)
            .args(self.arguments())
            .current_dir(&self.directory)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log file")).stderr(log);
        let mut child = Process::start(&mut command);
        let answers = until("an answer to PING", PATIENCE, || match child.ended() {
            None => self.answers().then_some(true),
            Some(_) => Some(false),
        });
        self.child = Some(child);
        answers
    }

    fn answers(&self) -> bool {
        let pong = Connection::open(self.port).and_then(|mut connection| connection.call(&["PING"]));
        match pong {
            Ok(Value::Bytes(text)) => text == "PONG",
            Ok(Value::Error(error)) => error.starts_with("NOAUTH"),
            _ => false,
        }
    }

    fn arguments(&self) -> Vec<String> {
        let port = self.port.to_string();
        let (append, sync) = match self.options.append {
            Append::Off => ("no", "no"),
            Append::EverySecond => ("yes", "everysec"),
            Append::Always => ("yes", "always"),
        };
        let mut words = vec!["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", append];
        words.extend(["--appendfsync", sync, "--loglevel", "notice"]);
        let mut words: Vec<String> = words.into_iter().map(str::to_string).collect();
        if let Some(bytes) = self.options.maxmemory {
            words.extend(["--maxmemory".to_string(), bytes.to_string()]);
        }
        for user in &self.options.users {
            words.push("--user".to_string());
            words.extend(user.split(' ').map(str::to_string));
        }
        words
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        if self.options.directory.is_none() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

fn directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("delayline-{}-{number}", process::id()))
}

/// A port below those that the system gives to connections, so that none of these takes it while the server is down.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = process::id().wrapping_mul(131);
    let numbers = (0..PORTS).map(|_| first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS);
    let mut ports = numbers.filter_map(|number| u16::try_from(FIRST_PORT + number).ok());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}
