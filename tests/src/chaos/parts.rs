use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use delayline_core::wire::Value;

use super::door::Whereabouts;
use super::history::Run;
use super::load::WORKED;
use super::plan::{LINKS, SERVICE_LINK, WORKERS};
use super::proxy::Proxy;
use crate::{Append, Connection, Options, Process, RedisServer, until};

/// How long a process may take to end once it is asked to: its graces of 10 s each and the wait for a Redis that is away.
pub(super) const ENDS: Duration = Duration::from_secs(40);
const LISTENS: Duration = Duration::from_secs(120);
const SYNC: Duration = Duration::from_secs(30);

/// Redis and its replica, the service, the workers, and the links between them.
pub(super) struct Parts {
    pub(super) redis: Vec<RedisServer>,
    pub(super) primary: usize,
    pub(super) links: Vec<Proxy>,
    pub(super) service: Part,
    pub(super) workers: Vec<Part>,
    pub(super) whereabouts: Whereabouts,
    directory: PathBuf,
    program: PathBuf,
    starts: usize,
    /// When each worker, and then the service, was started last.
    started: [Instant; WORKERS + 1],
}

/// A process, when it is there.
pub(super) type Part = Option<Process>;

impl Parts {
    /// Starts all. `program` is the one that this is part of.
    pub(super) fn start(directory: &Path, program: &Path, append: Append, failover: bool) -> Parts {
        let server = |name: &str| {
            let directory = Some(directory.join(name));
            RedisServer::start(Options { append, directory, ..Options::default() })
        };
        let mut redis = vec![server("redis-a")];
        if failover {
            redis.push(server("redis-b"));
        }
        let links = (0..LINKS).map(|_| Proxy::start(redis[0].port())).collect();
        let mut parts = Parts {
            redis,
            primary: 0,
            links,
            service: None,
            workers: (0..WORKERS).map(|_| None).collect(),
            whereabouts: Whereabouts::default(),
            directory: directory.to_path_buf(),
            program: program.to_path_buf(),
            starts: 0,
            started: [Instant::now(); WORKERS + 1],
        };
        if failover {
            parts.follow(1, 0).expect("a replica");
            until("a replica in sync", SYNC, || parts.in_sync(1).then_some(()));
        }
        parts.start_service();
        (0..WORKERS).for_each(|worker| parts.start_worker(worker));
        until("the service", LISTENS, || parts.listens().then_some(()));
        parts
    }

    pub(super) fn primary(&mut self) -> &mut RedisServer {
        &mut self.redis[self.primary]
    }

    /// Sends the primary a command.
    pub(super) fn tell(&self, words: &[&str]) -> Option<Value> {
        ask(&self.redis[self.primary], words)
    }

    /// Sends a server a command.
    pub(super) fn tell_to(&self, server: usize, words: &[&str]) -> Option<Value> {
        ask(&self.redis[server], words)
    }

    /// A field of what a server says of itself.
    pub(super) fn info(&self, server: usize, section: &str, field: &str) -> Option<String> {
        let Value::Bytes(text) = self.tell_to(server, &["INFO", section])? else { return None };
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.map(|value| value.trim().to_string())
    }

    /// Makes a server the replica of another.
    pub(super) fn follow(&self, replica: usize, primary: usize) -> Option<Value> {
        self.tell_to(primary, &["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
        let port = self.redis[primary].port().to_string();
        self.tell_to(replica, &["REPLICAOF", "127.0.0.1", &port])
    }

    /// Whether a replica has all that its primary had when it began, and hears of the rest.
    pub(super) fn in_sync(&self, replica: usize) -> bool {
        self.info(replica, "replication", "master_link_status").as_deref() == Some("up")
    }

    pub(super) fn start_worker(&mut self, worker: usize) {
        let name = self.name(&format!("worker-{worker}"));
        let record = self.directory.join(format!("record-{name}"));
        let mut command = self.command(&name);
        command.args(["work", &self.links[worker].url(), WORKED, &name]).arg(record);
        self.workers[worker] = Some(Process::start(&mut command));
        self.started[worker] = Instant::now();
    }

    /// How long ago a worker, or the service if it is none's number, was started.
    pub(super) fn age(&self, worker: usize) -> Duration {
        self.started[worker.min(WORKERS)].elapsed()
    }

    /// Whether the service that was started last answers.
    pub(super) fn listens(&self) -> bool {
        self.whereabouts.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn start_service(&mut self) {
        *self.whereabouts.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let name = self.name("service");
        let mut command = self.command(&name);
        command.args(["serve", "--listen", "127.0.0.1:0", "--timeout", "2s"]);
        command.args(["--redis", &self.links[SERVICE_LINK].url()]);
        self.service = Some(Process::start(&mut command));
        self.started[WORKERS] = Instant::now();
        let (log, whereabouts) = (self.directory.join(format!("{name}.log")), self.whereabouts.clone());
        thread::spawn(move || {
            let end = Instant::now() + LISTENS;
            while Instant::now() < end {
                if let Some(address) = listens(&log) {
                    *whereabouts.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
    }

    fn name(&mut self, part: &str) -> String {
        self.starts += 1;
        format!("{:04}-{part}", self.starts)
    }

    fn command(&self, name: &str) -> Command {
        let log = File::create(self.directory.join(format!("{name}.log"))).expect("a log file");
        let mut command = Command::new(&self.program);
        command.env("NO_COLOR", "1").env_remove("RUST_LOG").stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log file")).stderr(log);
        command
    }

    /// What all workers wrote down, those that are gone too. The later line of a run replaces the earlier.
    pub(super) fn runs(&self) -> Vec<Run> {
        let files = fs::read_dir(&self.directory).expect("the directory").flatten();
        let records = files.filter(|file| file.file_name().to_string_lossy().starts_with("record-"));
        let mut runs: Vec<Run> = Vec::new();
        for record in records {
            let text = fs::read_to_string(record.path()).expect("a record");
            let begun = runs.len();
            for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
                let run: Run = serde_json::from_str(line).expect("a line of a record");
                let open =
                    |other: &&mut Run| other.fence == run.fence && other.id == run.id && other.end.is_none();
                match runs[begun..].iter_mut().find(open).filter(|_| run.end.is_some()) {
                    Some(same) => *same = run,
                    None => runs.push(run),
                }
            }
        }
        runs
    }

    /// Asks what is left of service and workers to end; says who did not do so well.
    pub(super) fn stop(&mut self) -> Vec<String> {
        let parts: Vec<Process> =
            self.workers.iter_mut().chain([&mut self.service]).filter_map(Option::take).collect();
        for part in &parts {
            part.signal("TERM");
        }
        let ended = parts.into_iter().map(|mut part| until("the end of a process", ENDS, || part.ended()));
        ended.filter(|ended| !ended.success()).map(|ended| format!("a part asked to end: {ended}")).collect()
    }
}

fn listens(log: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(log).ok()?;
    text.split_once("listening on http://")?.1.split_once(',')?.0.parse().ok()
}

fn ask(server: &RedisServer, words: &[&str]) -> Option<Value> {
    let value = Connection::open(server.port()).and_then(|mut connection| connection.call(words));
    value.ok().filter(|value| !matches!(value, Value::Error(_)))
}
