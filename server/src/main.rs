//! The delayline service and command line.

use std::process::ExitCode;

use clap::Parser;
use delayline::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    Cli::parse().run().await
}
