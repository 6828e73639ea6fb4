//! Load on a real Redis, a service and workers, while all of them are killed, stopped and cut off, and an audit.
//!
//! `chaos [--seconds N] [--seed N] [--append always|everysec|off] [--failover] [--flush] [--keep DIR]`. As `chaos serve …` and
//! `chaos work …` it is the service and a worker of such a run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use delayline_tests::chaos::{self, Options};
use delayline_tests::{Append, seeds};

#[derive(Parser)]
#[command(name = "chaos", about = "Runs chaos on real parts, then audits every acknowledged job")]
struct Arguments {
    /// How long faults begin
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What all is drawn from; of the commit if not given
    #[arg(long)]
    seed: Option<u64>,
    /// How Redis keeps what it accepted
    #[arg(long, value_enum, default_value = "always")]
    append: Kept,
    /// A replica takes over, again and again
    #[arg(long)]
    failover: bool,
    /// Somebody empties Redis, now and then
    #[arg(long)]
    flush: bool,
    /// Where to keep everything
    #[arg(long)]
    keep: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kept {
    Always,
    Everysec,
    Off,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("serve") => delayline::main(),
        Some("work") => work(&args[1..]),
        _ => run(Arguments::parse()),
    }
}

fn run(arguments: Arguments) -> ExitCode {
    let Arguments { seconds, seed, append, failover, flush, keep } = arguments;
    let append = match append {
        Kept::Always => Append::Always,
        Kept::Everysec => Append::EverySecond,
        Kept::Off => Append::Off,
    };
    let program = std::env::current_exe().expect("a path to this program");
    let options =
        Options { seconds, seed: seed.unwrap_or_else(seeds::base), append, failover, flush, keep, program };
    let report = chaos::run(&options);
    println!("{report}");
    if report.audit.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn work(args: &[String]) -> ExitCode {
    let [url, queue, name, record] = args else {
        eprintln!("usage: chaos work URL QUEUE NAME RECORD");
        return ExitCode::from(2);
    };
    match block_on(chaos::work(url, queue, record.as_ref(), name)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("work: {error}");
            ExitCode::FAILURE
        }
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}
