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
    let seconds = started.elapsed().as_secs_f64().max(0.001);
    println!(
        "{runs} seeds, {steps} steps, {} simulated hours in {seconds:.1} s: {:.0} steps/s, {:.1} simulated hours a second",
        virtual_ms / 3_600_000,
        steps as f64 / seconds,
        virtual_ms as f64 / 3_600_000.0 / seconds,
    );
    ExitCode::SUCCESS
}
