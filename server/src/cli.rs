use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::commands::{Consume, Publish, Serve, Stats};
use crate::failure::Failure;
use crate::redis::Redis;

const EXAMPLES: &str = "\
Examples:
  delayline serve                                   in memory, on 127.0.0.1:4747
  delayline serve --redis redis://127.0.0.1/        on a Redis, which keeps the jobs
  curl -d '{\"to\":\"ann\"}' 'http://127.0.0.1:4747/v1/queues/welcome/jobs?delay=5s'

  export DELAYLINE_REDIS_URL=redis://127.0.0.1/
  delayline publish welcome '{\"to\":\"ann\"}' --delay 5s
  delayline consume welcome --exec ./send.sh
  delayline stats welcome

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 Redis did not answer and trying again may help,
130 told twice to stop.";

/// A delayed-job queue on Redis
#[derive(Debug, Parser)]
#[command(name = "delayline", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// Write JSON: results, errors and log lines
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    /// Where the jobs are.
    #[command(flatten)]
    pub redis: Redis,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the queues over HTTP, in memory unless a Redis is given
    Serve(Serve),
    /// Publish a job
    Publish(Publish),
    /// Print jobs as they are due, or run a command for each
    Consume(Consume),
    /// Show what is in a queue, or all queues
    Stats(Stats),
}

impl Cli {
    /// Does it, and says on stderr what went wrong.
    pub async fn run(self) -> ExitCode {
        start_log(self.json);
        match self.attempt().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                let code = failure.exit_code();
                if self.json {
                    eprintln!("{}", failure.json());
                } else {
                    eprintln!("delayline: {failure}");
                }
                ExitCode::from(code)
            }
        }
    }

    async fn attempt(&self) -> Result<(), Failure> {
        match &self.command {
            Command::Serve(serve) => serve.run(&self.redis).await,
            Command::Publish(publish) => publish.run(&self.redis, self.json).await,
            Command::Consume(consume) => consume.run(&self.redis, self.json).await,
            Command::Stats(stats) => stats.run(&self.redis, self.json).await,
        }
    }
}

/// Log lines go to stderr; `RUST_LOG` says which.
fn start_log(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let _ = if json { log.json().try_init() } else { log.try_init() };
}
