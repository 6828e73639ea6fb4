//! Measures what the queue costs, how fast and how punctual it is, on a Redis of its own, and prints a table. The section
//! "The bench" of `tests/README.md` says what is measured and how it is compared.
//!
//!     cargo run --release -p delayline-tests --bin bench -- queues
//!     cargo run --release -p delayline-tests --bin bench -- queues --against BEFORE/target/release/bench
//!     cargo run --release -p delayline-tests --bin bench -- life --against BEFORE/lua

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use delayline_tests::bench::{
    self, Bench, Bursts, Clients, Http, Idle, Life, Limit, Options, Pace, Pending, Queues, Startup,
};

/// Measures what the queue costs, how fast and how punctual it is, on a Redis of its own.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// The bench program of another commit, which takes turns with this one; for `life` its folder lua
    #[arg(long, global = true, value_name = "PROGRAM")]
    against: Option<PathBuf>,
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
    /// Draws each figure into an SVG file of this folder
    #[arg(long, global = true, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

#[derive(Subcommand)]
enum What {
    /// Redis's CPU for whole lives in batches, beside bare commands that keep the same
    Life {
        /// The batches' sizes
        #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 256])]
        batches: Vec<usize>,
    },
    /// How fast jobs are done that are due at one moment, and how fast jobs are published
    Burst {
        /// Another system that takes turns, by its program in tests/bench/peers: bullmq, asynq, chasquimq, chasquimq-events
        #[arg(long = "peer", value_name = "NAME", conflicts_with = "against")]
        peers: Vec<String>,
    },
    /// How late jobs are at a steady rate, and what they cost
    Pace {
        /// How many jobs a second; as many jobs as are said go at the fastest rate
        #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000])]
        rates: Vec<usize>,
    },
    /// What clients ask that have nothing to do
    Idle {
        /// For how many seconds they are watched
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// What publishing and memory cost when many jobs wait, and what it does to others when many are due
    Pending {
        /// How many wait, from few to many
        #[arg(long, value_delimiter = ',', default_values_t = [10_000, 200_000])]
        counts: Vec<usize>,
        /// How many are due in one millisecond
        #[arg(long, default_value_t = 50_000)]
        drained: usize,
    },
    /// A burst over one queue and over many, by one worker of 100 slots
    Queues {
        /// How many queues
        #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1_000])]
        counts: Vec<usize>,
    },
    /// What one job costs among many clients that wait for it
    Clients {
        /// How many clients
        #[arg(long, value_delimiter = ',', default_values_t = [1, 100])]
        counts: Vec<usize>,
    },
    /// What `serve` does over HTTP
    Http {
        /// The program whose `serve` is measured; the one beside this program unless this says otherwise
        #[arg(long, value_name = "PROGRAM", conflicts_with = "against")]
        serve: Option<PathBuf>,
        /// How many connections ask at once
        #[arg(long, default_value_t = 16)]
        connections: usize,
    },
    /// What the server does at most, by bare commands
    Limit {
        /// The batches' sizes
        #[arg(long, value_delimiter = ',', default_values_t = [1, 100])]
        batches: Vec<usize>,
    },
    /// How long it takes from nothing to a first job
    Startup {
        /// The program whose `serve` is measured too
        #[arg(long, value_name = "PROGRAM", conflicts_with = "against")]
        serve: Option<PathBuf>,
    },
}

/// What is measured, what another program is asked for it, and the usual number of rounds and of jobs.
struct Plan {
    bench: Bench,
    words: Vec<String>,
    rounds: usize,
    jobs: usize,
    /// Whether loud rounds are repeated: not if only calls are counted.
    repeats: bool,
}

impl Plan {
    fn new(bench: impl Into<Bench>, rounds: usize, jobs: usize, words: &[&str]) -> Plan {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Plan { bench: bench.into(), words, rounds, jobs, repeats: true }
    }

    fn of(what: What, server: Option<PathBuf>, against: Option<PathBuf>) -> Plan {
        match what {
            What::Life { batches } => Plan::new(Life::new(batches, against), 15, 2_000, &[]),
            What::Burst { peers } => Plan::new(Bursts::new(&peers), 5, 20_000, &["burst"]),
            What::Pace { rates } => {
                let words = ["pace", "--rates", &list(&rates)];
                Plan::new(Pace { rates: rates.clone() }, 5, 4_000, &words)
            }
            What::Idle { seconds } => {
                let words = ["idle", "--seconds", &seconds.to_string()];
                let idle = Idle { watched: Duration::from_secs(seconds), server };
                Plan { repeats: false, ..Plan::new(idle, 1, 10_000, &words) }
            }
            What::Pending { counts, drained } => {
                let words = ["pending", "--counts", &list(&counts), "--drained", &drained.to_string()];
                Plan::new(Pending::new(counts.clone(), drained, server), 5, 10_000, &words)
            }
            What::Queues { counts } => {
                let words = ["queues", "--counts", &list(&counts)];
                Plan::new(Queues { counts: counts.clone() }, 5, 20_000, &words)
            }
            What::Clients { counts } => {
                let words = ["clients", "--counts", &list(&counts)];
                Plan { repeats: false, ..Plan::new(Clients { counts: counts.clone() }, 3, 5, &words) }
            }
            What::Http { serve, connections } => {
                let words = ["http", "--connections", &connections.to_string()];
                let serve = serve.unwrap_or_else(beside);
                Plan::new(Http { serve, connections }, 5, 2_000, &words)
            }
            What::Limit { batches } => {
                let words = ["limit", "--batches", &list(&batches)];
                Plan::new(Limit { batches: batches.clone() }, 5, 10_000, &words)
            }
            What::Startup { serve } => Plan::new(Startup { serve }, 5, 5, &["startup"]),
        }
    }
}

/// The command line's program, where this one is.
fn beside() -> PathBuf {
    env::current_exe().expect("the path of this program").with_file_name("delayline")
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn main() -> ExitCode {
    let Arguments { what, against, rounds, most_rounds, quiet, jobs, redis_server, json, plots } =
        Arguments::parse();
    if let What::Http { serve: None, .. } = what
        && !beside().is_file()
    {
        eprintln!("bench: there is no program {}: build it, or name one with --serve", beside().display());
        return ExitCode::from(2);
    }
    // The scripts of another commit are compared in this process.
    let (folder, program) = if matches!(what, What::Life { .. }) { (against, None) } else { (None, against) };
    let Plan { bench, mut words, rounds: usual_rounds, jobs: usual_jobs, repeats } =
        Plan::of(what, redis_server.clone(), folder);
    let rounds = rounds.unwrap_or(usual_rounds);
    let options = Options {
        rounds,
        most_rounds: most_rounds.unwrap_or(if repeats { 2 * rounds } else { rounds }),
        quiet,
        jobs: jobs.unwrap_or(usual_jobs),
        warms_up: usual_rounds > 1,
        server: redis_server.clone(),
    };
    let report = match program {
        None => bench.run(&options),
        Some(program) => {
            if let Some(server) = redis_server {
                words.extend(["--redis-server".to_owned(), server.display().to_string()]);
            }
            bench.run_against(&program, words, &options)
        }
    };
    if json {
        println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
    } else {
        print!("{report}");
    }
    if let Some(folder) = plots {
        match bench::draw(&report, &folder) {
            Ok(files) => files.iter().for_each(|file| eprintln!("{}", file.display())),
            Err(why) => {
                eprintln!("bench: {}: {why}", folder.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
