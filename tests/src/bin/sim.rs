//! Runs plans of the simulator: `sim --help` says how.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    delayline_tests::sim::search(delayline_tests::sim::Args::parse())
}
