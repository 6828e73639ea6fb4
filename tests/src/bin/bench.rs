//! Measures what the queue costs, and prints a table.
//!
//!     cargo run --release -p delayline-tests --bin bench -- life --against BEFORE/lua

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use delayline_tests::bench::{Life, Options, Table};

/// Measures what the queue costs.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// How many rounds
    #[arg(long, global = true, default_value_t = 15)]
    rounds: usize,
    /// How many jobs a round
    #[arg(long, global = true, default_value_t = 2_000)]
    jobs: usize,
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
}

fn main() -> ExitCode {
    let Arguments { what, rounds, jobs, json } = Arguments::parse();
    let rows = match what {
        What::Life { batches, against } => Life { batches }.measure(&Options { against, rounds, jobs }),
    };
    if json {
        println!("{}", serde_json::to_string(&rows).expect("rows are JSON"));
    } else {
        print!("{}", Table(&rows));
    }
    ExitCode::SUCCESS
}
