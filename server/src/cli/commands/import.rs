mod arrival;
mod connection;
mod destination;
mod journal;
mod lmstfy;
mod mover;
mod origin;
mod pauses;
mod redisson;
mod report;

use clap::{Args, Subcommand};

use self::lmstfy::Lmstfy;
use self::redisson::Redisson;
use crate::cli::redis::Redis;
use crate::failure::Failure;

/// Moves the jobs of another system, out of its Redis, into queues.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Jobs are moved, not copied: each is taken out of the old system before it is published, and may be moved within one Redis.
The queues that jobs go to are paused until all is moved.

Examples:
  delayline import lmstfy --redis redis://127.0.0.1/ --dry-run
  delayline import redisson --redis redis://127.0.0.1/ --queue orders --dry-run")]
pub struct Import {
    #[command(subcommand)]
    from: From,
}

#[derive(Clone, Debug, Subcommand)]
enum From {
    /// Move the jobs of lmstfy: of its timer set, its ready lists and its dead lists
    Lmstfy(Lmstfy),
    /// Move the jobs of a delayed queue of Redisson, and of the queue that it delivers to
    Redisson(Redisson),
}

impl Import {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        match &self.from {
            From::Lmstfy(lmstfy) => lmstfy.run(redis, json).await,
            From::Redisson(redisson) => redisson.run(redis, json).await,
        }
    }
}
