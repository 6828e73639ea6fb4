//! Runs plans of the simulator: `sim --help` says how.

use std::process::ExitCode;

use clap::Parser as _;
use delayline_tests::sim::{Args, command_line};

fn main() -> ExitCode {
    command_line(&Args::parse())
}
