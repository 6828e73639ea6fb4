//! Chaos on real parts: load on Redis, service and workers, while they are killed, stopped and cut off at random from a seed,
//! then an audit of every acknowledged job.

#[cfg(test)]
mod alarm;
mod audit;
mod case;
mod director;
mod door;
mod expected;
mod history;
mod load;
mod parts;
mod plan;
mod proxy;
mod report;
mod request;
mod sampler;
mod settling;
mod worker;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use delayline_tokio::Client;
use tokio::runtime::Runtime;

pub use audit::{Audit, Rule, Violation};
pub use history::{Answer, Asked, Call, End, Happened, History, Ledger, Letter, Loss, Run, Story};
pub use plan::{Failover, Fault, Plan, Planned, Possible};
pub use proxy::{Passage, Proxy};
pub use report::Report;
pub use worker::{BURIED, failed, work};

use crate::{Append, Random};
use director::Director;
use door::Door;
use load::Load;
use parts::Parts;
use plan::CLIENT_LINK;

/// How long clients wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How long after the last fault every client must have its answer: an attempt to connect may hang for 5 s and a connection
/// be silent for 10 s before it is given up; then engines try again after 5 s at most, and clients after their time-out.
const ANSWERS: Duration = Duration::from_secs(60);

/// What kind of chaos.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long faults begin.
    pub seconds: u64,
    /// What all is drawn from.
    pub seed: u64,
    /// How Redis keeps what it accepted. Where it does not, it is not killed.
    pub append: Append,
    /// Whether a replica takes over again and again. Then Redis is not restarted.
    pub failover: bool,
    /// Whether somebody empties Redis now and then.
    pub flush: bool,
    /// Where everything is kept, in a directory of its own; else only what went wrong is, in the system's place for such.
    pub keep: Option<PathBuf>,
    /// The program that is service and worker if its first argument is `serve` or `work`.
    pub program: PathBuf,
}

/// Runs it, and audits it.
///
/// # Panics
/// If the parts cannot be started.
pub fn run(options: &Options) -> Report {
    let directory = options.directory();
    fs::create_dir_all(&directory).expect("a directory");
    let mut random = Random::new(options.seed);
    let plan = Plan::draw(&mut random, options.seconds * 1_000, options.possible());
    println!("{}", options.command());
    println!("{plan}");
    let begun = Instant::now();
    let mut parts = Parts::start(&directory, &options.program, options.append, options.failover);
    let runtime = Runtime::new().expect("a runtime");
    let mut history = History::default();
    let load = Load::new([connect(&runtime, &parts), Door::Http(parts.whereabouts.clone())]);
    let is_over = Arc::new(AtomicBool::new(false));
    let publishing = runtime.spawn(load.clone().publish(random.clone(), is_over.clone(), ANSWERS));
    let taking = runtime.spawn(load.clone().take(random));

    let mut director = Director::new(&mut parts, &plan, options.append);
    director.run();
    let Director { events, losses, mut oddities, .. } = director;
    let faults = begun.elapsed();
    is_over.store(true, Ordering::SeqCst);
    runtime.block_on(publishing).expect("publishers end");
    let settled = settling::settle(&runtime, &mut parts, &load, taking, &mut history);
    history.runs.extend(parts.runs());
    let mut record = std::mem::take(&mut *load.record());
    history.runs.append(&mut record.runs);
    history.jobs = record.jobs;
    (history.events, history.losses) = (events, losses);
    oddities.append(&mut record.oddities);
    history.oddities.append(&mut oddities);
    let report = Report::new(options, &plan, &history, faults, settled);
    if report.audit.violations.is_empty() && options.keep.is_none() {
        drop(parts);
        let _ = fs::remove_dir_all(&directory);
    } else {
        report.keep(&directory, &history);
    }
    report
}

fn connect(runtime: &Runtime, parts: &Parts) -> Door {
    let url = parts.links[CLIENT_LINK].url();
    let client = runtime.block_on(Client::builder().timeout(TIMEOUT).connect(&url));
    Door::Library(client.expect("a client"))
}

impl Options {
    /// What begins the same chaos again.
    pub fn command(&self) -> String {
        let Options { seconds, seed, append, failover, flush, .. } = self;
        let append = match append {
            Append::Off => "off",
            Append::EverySecond => "everysec",
            Append::Always => "always",
        };
        let failover = if *failover { " --failover" } else { "" };
        let flush = if *flush { " --flush" } else { "" };
        format!(
            "cargo run --release -p delayline-tests --bin chaos -- --seconds {seconds} --seed {seed} --append {append}{failover}{flush}"
        )
    }

    fn possible(&self) -> Possible {
        Possible { append: self.append, failover: self.failover, flush: self.flush }
    }

    /// A directory of its own.
    fn directory(&self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("delayline-chaos-{}-{number}-seed-{}", std::process::id(), self.seed);
        let directory = self.keep.clone().unwrap_or_else(std::env::temp_dir).join(name);
        std::path::absolute(&directory).unwrap_or(directory)
    }
}
