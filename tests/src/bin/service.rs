//! The service as users run it, built with the tests so that they never meet a stale one.

use std::process::ExitCode;

use clap::Parser;
use delayline::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    Cli::parse().run().await
}
