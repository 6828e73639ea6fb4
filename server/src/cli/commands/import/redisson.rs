mod element;
mod keys;
mod walk;

use clap::Args;
use delayline_tokio::redis::cmd;
use delayline_tokio::{Error, QueueName};

use self::keys::{Keys, beside};
use self::walk::Walk;
use super::connection::Connection;
use super::journal::Journal;
use super::mover::Mover;
use crate::cli::redis::Redis;
use crate::failure::Failure;

/// How often all is looked at again while Redisson still works there: jobs move from place to place meanwhile.
const PASSES: usize = 10;

/// Moves the jobs of a delayed queue of Redisson (RDelayedQueue), and of the queue that it delivers to.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Payloads are moved as Redisson's codec wrote them, byte by byte, with their due times to the millisecond. Both formats are
read, that of 3.21.1 and later and the one before, element by element. What is due already and was not consumed is moved too,
in its order, unless --delayed-only. Ids are redisson-HASH; attempts and backoff are the queue's.

Stop the clients of Redisson first. --redis is where the jobs go, and also where Redisson keeps them, unless --from says
another.

What cannot be moved is left where it is, told with a count and the first bytes of some in hex, and makes the exit code 1.
A run that was killed is gone on with by the same line: no job is lost or doubled, since the queue is paused until it is
done. See docs/imports.md.

Examples:
  delayline import redisson --redis redis://127.0.0.1/ --queue orders --dry-run
  delayline import redisson --redis redis://127.0.0.1/ --queue orders
  delayline import redisson --redis redis://127.0.0.1/ --queue '{shop}:orders' --to shop~orders --delayed-only
  delayline import redisson --from redis://127.0.0.1/ --queue orders --live --json")]
pub(crate) struct Redisson {
    /// Where Redisson keeps its queue; where --redis says if it is left out
    #[arg(long, value_name = "URL", hide_default_value = true)]
    from: Option<String>,
    /// The name that was given to getQueue or getBlockingQueue
    #[arg(long, value_name = "NAME")]
    queue: String,
    /// The queue that the jobs go to; that of the same name if it is left out
    #[arg(long, value_name = "QUEUE")]
    to: Option<QueueName>,
    /// Leave what is due already to the consumers of Redisson
    #[arg(long)]
    delayed_only: bool,
    /// Move nothing, but count, and say what could not be moved
    #[arg(long)]
    dry_run: bool,
    /// Go on though a client of Redisson still works there
    #[arg(long)]
    live: bool,
}

impl Redisson {
    pub(super) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let own = redis.shared_url().ok_or(Failure::NeedsRedis("cannot be imported to"))?;
        let from = self.from.as_deref().unwrap_or(own);
        let to = match &self.to {
            Some(queue) => queue.clone(),
            None => self.queue.parse().map_err(|error| match error {
                error if self.queue.is_empty() => Failure::Queue(Error::Name(error)),
                error => Failure::Usage(format!("{error}; say with --to which queue the jobs go to")),
            })?,
        };
        let journal = Journal::new(|name| beside(name, &self.queue));
        let mut mover = Mover::begin(redis, from, journal, self.dry_run, json).await?;
        let done = self.import(&mut mover, to).await;
        mover.end(done, "redisson").await
    }

    async fn import(&self, mover: &mut Mover, to: QueueName) -> Result<(), Failure> {
        let keys = Keys::of(&self.queue);
        if !self.live && !self.dry_run {
            must_be_stopped(&mut mover.source, &keys).await?;
        }
        let mut walk = Walk::new(mover, keys, to, !self.delayed_only);
        walk.count_before().await?;
        for _ in 0..PASSES {
            if walk.pass().await? == 0 || self.dry_run {
                break;
            }
        }
        walk.count_after().await
    }
}

/// Fails if a client of Redisson has the queue open: each listens on its channel.
async fn must_be_stopped(source: &mut Connection, keys: &Keys) -> Result<(), Failure> {
    let mut listening = cmd("PUBSUB");
    listening.arg("NUMSUB").arg(&keys.channel);
    match source.ask::<(String, u64)>(&listening).await {
        Ok((_, listeners)) if listeners > 0 => Err(Failure::StillRunning("a client of Redisson")),
        Ok(_) | Err(Failure::Redis { .. }) => Ok(()),
        Err(failure) => Err(failure),
    }
}
