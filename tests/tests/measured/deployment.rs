//! A Redis that keeps what it accepted, the service, and workers, each a process.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use delayline_tests::{Append, Http, Mark, Options, Process, RedisServer, What, until};

const PATIENCE: Duration = Duration::from_secs(60);
const WORKERS: usize = 3;

pub(crate) struct Deployment {
    pub(crate) redis: RedisServer,
    pub(crate) http: Http,
    service: Process,
    workers: Vec<Process>,
    records: Vec<PathBuf>,
    directory: PathBuf,
    queue: &'static str,
}

impl Deployment {
    pub(crate) fn start(queue: &'static str) -> Deployment {
        let redis = RedisServer::start(Options { append: Append::EverySecond, ..Options::default() });
        let directory = std::env::temp_dir().join(format!("delayline-life-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a temporary directory");
        let (service, address) = serve(&redis, &directory.join("service.log"));
        let (workers, records) = (Vec::new(), Vec::new());
        let http = Http::new(address);
        let mut deployment = Deployment { redis, http, service, workers, records, directory, queue };
        (0..WORKERS).for_each(|_| deployment.start_worker());
        deployment
    }

    fn start_worker(&mut self) {
        let number = self.records.len();
        let record = self.directory.join(format!("record-{number}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_work"));
        command.args([&self.redis.url(), self.queue]).arg(&record);
        self.workers.push(Process::start(&mut command));
        self.records.push(record);
    }

    /// Kills a worker (SIGKILL) while it runs jobs, and starts another. It is stopped first: what it has written down then is
    /// all that it does.
    pub(crate) fn replace_worker(&mut self) {
        let (worker, record) = (&self.workers[0], &self.records[self.records.len() - self.workers.len()]);
        until("a worker that runs jobs", PATIENCE, || {
            worker.pause();
            let runs = is_cut_off(record);
            if !runs {
                worker.signal("CONT");
            }
            runs.then_some(())
        });
        drop(self.workers.remove(0));
        self.start_worker();
    }

    /// What all workers wrote down, those that are gone too.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        self.records.iter().flat_map(|record| read(record)).collect()
    }

    /// Asks workers, then the service to end; what is left is the Redis.
    pub(crate) fn stop(self) -> RedisServer {
        for process in self.workers.into_iter().chain([self.service]) {
            let ended = process.terminate();
            assert!(ended.success(), "a process that was asked to end: {ended}");
        }
        let _ = fs::remove_dir_all(self.directory);
        self.redis
    }
}

fn read(record: &Path) -> Vec<Mark> {
    let text = fs::read_to_string(record).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.map(|line| line.parse().expect("a line of a record")).collect()
}

/// Whether a run would have no end if its worker was killed now.
fn is_cut_off(record: &Path) -> bool {
    let (began, ended): (Vec<Mark>, Vec<Mark>) =
        read(record).into_iter().partition(|mark| mark.what == What::Began);
    began.len() > ended.len()
}

fn serve(redis: &RedisServer, log: &PathBuf) -> (Process, SocketAddr) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--redis", &redis.url()]);
    command.env("NO_COLOR", "1").env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stderr(File::create(log).expect("a log file"));
    let mut service = Process::start(&mut command);
    let address = until("the service's address", PATIENCE, || {
        let text = fs::read_to_string(log).unwrap_or_default();
        if let Some(ended) = service.ended() {
            panic!("the service ended with {ended}:\n{text}");
        }
        let address = text.split_once("listening on http://")?.1.split_once(',')?.0;
        Some(address.parse().unwrap_or_else(|_| panic!("{address} is no address")))
    });
    (service, address)
}
