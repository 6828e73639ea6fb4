//! The delayline service and command line.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    delayline::run(std::env::args_os()).await
}
