//! Measures what requests cost `serve` in CPU time, with jobs in memory, and prints a table.
//!
//!     cargo run --release -p delayline-tests --bin http-cost -- --serve target/release/delayline --against BEFORE

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use delayline_tests::http_cost::{self, Options};

/// Measures what requests cost a service in CPU time, beside another that takes turns with it.
#[derive(Parser)]
struct Arguments {
    /// The program whose `serve` is measured
    #[arg(long, value_name = "PROGRAM")]
    serve: PathBuf,
    /// The program that it is compared to, as of the commit before
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// How many connections ask at once
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How many jobs go by themselves in a round
    #[arg(long, default_value_t = 2_000)]
    jobs: usize,
    /// The fewest rounds
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// The most rounds
    #[arg(long, default_value_t = 60)]
    most_rounds: usize,
    /// Ends once each ratio, or each figure if nothing is compared, is known to this many percent
    #[arg(long, default_value_t = 1.5)]
    percent: f64,
    /// The CPUs that the services have, as `taskset -c` reads them
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let Arguments { serve, against, connections, jobs, rounds, most_rounds, percent, cpus, json } =
        Arguments::parse();
    let precision = percent / 100.0;
    let rounds = (rounds, most_rounds.max(rounds));
    let options = Options { serve, against, connections, jobs, rounds, precision, cpus };
    let report = http_cost::run(&options);
    if json {
        println!("{}", serde_json::to_string(&report.figures()).expect("figures are JSON"));
    } else {
        print!("{report}");
    }
    ExitCode::SUCCESS
}
