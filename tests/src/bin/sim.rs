//! Runs seeds of the simulator.
//!
//! `sim --seed N [--trace]` replays one; `sim --seeds N..M` searches; `--ignore-sessions` breaks the store on purpose.

use std::process::ExitCode;
use std::time::Instant;

use delayline_tests::sim::{Switches, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let seeds = match (value("--seed"), value("--seeds")) {
        (Some(seed), _) => seed.parse().ok().map(|seed: u64| seed..seed + 1),
        (_, Some(range)) => {
            range.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?))
        }
        _ => None,
    };
    let Some(seeds) = seeds else {
        eprintln!("usage: sim --seed N [--trace] | --seeds N..M [--ignore-sessions]");
        return ExitCode::from(2);
    };
    let switches = Switches { ignore_sessions: flag("--ignore-sessions") };
    search(seeds, switches, flag("--trace"))
}

fn search(seeds: std::ops::Range<u64>, switches: Switches, print: bool) -> ExitCode {
    let started = Instant::now();
    let (mut runs, mut steps, mut virtual_ms) = (0u64, 0u64, 0u64);
    for seed in seeds {
        match run(seed, switches, print) {
            Ok(report) => {
                runs += 1;
                steps += report.steps;
                virtual_ms += report.virtual_ms;
                if print {
                    println!("{report:?}");
                }
            }
            Err(failure) => {
                println!("{failure}");
                return ExitCode::FAILURE;
            }
        }
    }
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    println!(
        "{runs} seeds, {steps} steps, {} simulated minutes in {ms} ms: {} steps/s, {} times real time",
        virtual_ms / 60_000,
        steps * 1000 / ms,
        virtual_ms / ms,
    );
    ExitCode::SUCCESS
}
