//! Measures what the queue costs, how fast and how punctual it is, on a Redis of its own, and prints a table.
//!
//!     cargo run --release -p delayline-tests --bin bench -- queues
//!     cargo run --release -p delayline-tests --bin bench -- queues --against BEFORE/target/release/bench
//!     cargo run --release -p delayline-tests --bin bench -- life --against BEFORE/lua

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use delayline_tests::bench::{Bench, Bursts, Clients, Life, Options, Pace, Queues};

/// Measures what the queue costs, how fast and how punctual it is, on a Redis of its own.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// How many rounds count
    #[arg(long, global = true)]
    rounds: Option<usize>,
    /// How many there are at most, if others use the CPUs; twice as many unless this says otherwise
    #[arg(long, global = true)]
    most_rounds: Option<usize>,
    /// How many CPUs others may use in a round, for it to be a quiet one
    #[arg(long, global = true, default_value_t = 0.1)]
    quiet: f64,
    /// How many jobs a round
    #[arg(long, global = true)]
    jobs: Option<usize>,
    /// The program of the Redis or Valkey that is used
    #[arg(long, global = true, value_name = "PROGRAM")]
    redis_server: Option<PathBuf>,
    /// Prints JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Redis's CPU for whole lives in batches, beside bare commands that keep the same
    Life {
        /// The batches' sizes
        #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 256])]
        batches: Vec<usize>,
        /// The folder lua of another commit, whose scripts take turns with these
        #[arg(long, value_name = "FOLDER")]
        against: Option<PathBuf>,
    },
    /// How fast jobs are done that are due at one moment, and how fast jobs are published
    Burst {
        #[command(flatten)]
        against: Against,
    },
    /// How late jobs are at a steady rate, and what they cost
    Pace {
        /// How many jobs a second; as many jobs as are said go at the fastest rate
        #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000])]
        rates: Vec<usize>,
        #[command(flatten)]
        against: Against,
    },
    /// What one job costs among many clients that wait for it
    Clients {
        /// How many clients
        #[arg(long, value_delimiter = ',', default_values_t = [1, 100])]
        counts: Vec<usize>,
        #[command(flatten)]
        against: Against,
    },
    /// A burst over one queue and over many, by one worker of 100 slots
    Queues {
        /// How many queues
        #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1_000])]
        counts: Vec<usize>,
        #[command(flatten)]
        against: Against,
    },
}

#[derive(Args)]
struct Against {
    /// The bench program of another commit, which takes turns with this one
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
}

/// What is measured, the program that takes turns and what it is asked, and the usual number of rounds and of jobs.
struct Plan {
    bench: Bench,
    against: Option<(PathBuf, Vec<String>)>,
    rounds: usize,
    jobs: usize,
}

impl From<What> for Plan {
    fn from(what: What) -> Plan {
        match what {
            What::Life { batches, against } => Plan {
                bench: Bench::Life(Life::new(batches, against)),
                against: None,
                rounds: 15,
                jobs: 2_000,
            },
            What::Burst { against } => {
                let against = against.asked(&["burst"]);
                Plan { bench: Bench::Burst(Bursts), against, rounds: 5, jobs: 20_000 }
            }
            What::Pace { rates, against } => {
                let against = against.asked(&["pace", "--rates", &list(&rates)]);
                Plan { bench: Bench::Pace(Pace { rates }), against, rounds: 5, jobs: 4_000 }
            }
            What::Clients { counts, against } => {
                let against = against.asked(&["clients", "--counts", &list(&counts)]);
                Plan { bench: Bench::Clients(Clients { counts }), against, rounds: 3, jobs: 5 }
            }
            What::Queues { counts, against } => {
                let against = against.asked(&["queues", "--counts", &list(&counts)]);
                Plan { bench: Bench::Queues(Queues { counts }), against, rounds: 5, jobs: 20_000 }
            }
        }
    }
}

impl Against {
    fn asked(self, words: &[&str]) -> Option<(PathBuf, Vec<String>)> {
        Some((self.against?, words.iter().map(|&word| word.to_owned()).collect()))
    }
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn main() -> ExitCode {
    let Arguments { what, rounds, most_rounds, quiet, jobs, redis_server, json } = Arguments::parse();
    let plan = Plan::from(what);
    let rounds = rounds.unwrap_or(plan.rounds);
    let most_rounds = most_rounds.unwrap_or(2 * rounds);
    let jobs = jobs.unwrap_or(plan.jobs);
    let server = redis_server.clone();
    let options = Options { rounds, most_rounds, quiet, jobs, warms_up: true, server };
    let report = match plan.against {
        None => plan.bench.run(&options),
        Some((program, mut words)) => {
            if let Some(server) = redis_server {
                words.extend(["--redis-server".to_owned(), server.display().to_string()]);
            }
            plan.bench.run_against(&program, words, &options)
        }
    };
    if json {
        println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
    } else {
        print!("{report}");
    }
    ExitCode::SUCCESS
}
