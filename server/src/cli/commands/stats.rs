use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use delayline_http::Queue;
use delayline_tokio::{Client, QueueName, Span};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::names;
use crate::cli::print;
use crate::cli::queue;
use crate::cli::redis::{Redis, with_nearest};
use crate::cli::stop::Stop;
use crate::failure::Failure;
use crate::service::push;
use crate::service::registry::Registry;

const HOURS: u8 = 24;
const AT_ONCE: usize = 16;
/// Clears the screen from its top.
const AFRESH: &str = "\x1b[H\x1b[J";

/// Shows how much is in a queue, with what happened there so far, or how much is in each.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Counters are of all that happened since the queue came to be.

Examples:
  delayline stats
  delayline stats welcome --json
  delayline stats welcome --watch 1s             # again and again, until told to stop")]
pub struct Stats {
    /// Which queue; all if it is left out
    queue: Option<QueueName>,
    /// Show it again at this interval: in place on a terminal, one after the other elsewhere
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "2s")]
    watch: Option<Span>,
}

impl Stats {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let client = redis.connect(|| self.curl()).await?;
        let done = match self.watch {
            None => self.show(&client, redis, json).await.and_then(print::text),
            Some(interval) => {
                let stop = Stop::listen()?;
                tokio::select! {
                    done = self.watch(&client, redis, Duration::from_millis(interval.0), json) => done,
                    () = stop.asked() => Ok(()),
                }
            }
        };
        client.close().await;
        done
    }

    pub(crate) fn watches(&self) -> bool {
        self.watch.is_some()
    }

    fn curl(&self) -> String {
        let queue = self.queue.as_ref().map_or(String::new(), |queue| format!("/{queue}"));
        format!("curl 'http://127.0.0.1:4747/v1/queues{queue}'")
    }

    /// Shows it again and again; a Redis that is away for a while does not end that.
    async fn watch(
        &self,
        client: &Client,
        redis: &Redis,
        interval: Duration,
        json: bool,
    ) -> Result<(), Failure> {
        let in_place = !json && std::io::stdout().is_terminal();
        let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(100)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.show(client, redis, json).await {
                Ok(shown) => {
                    // On a thread of its own: where nobody reads, it can be told to stop all the same.
                    let printed = tokio::task::spawn_blocking(move || {
                        if in_place {
                            write!(std::io::stdout(), "{AFRESH}")?;
                        }
                        print::text(shown)
                    });
                    printed.await.unwrap_or(Ok(()))?;
                }
                Err(failure) if failure.exit_code() == 3 => tracing::warn!("{failure}"),
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn show(&self, client: &Client, redis: &Redis, json: bool) -> Result<String, Failure> {
        match &self.queue {
            Some(queue) => one(client, redis, queue, json).await,
            None => all(client, json).await,
        }
    }
}

async fn one(client: &Client, redis: &Redis, name: &QueueName, json: bool) -> Result<String, Failure> {
    let stats = crate::cli::redis::queue(client, name)?.stats(HOURS).await?;
    if stats.born.is_none() {
        return Err(with_nearest(Failure::no_such_queue(name), client).await);
    }
    let push_state = match stats.config.push {
        Some(_) => push_state(client, redis, name).await,
        None => None,
    };
    let queue = Queue { push_state, ..Queue::new(name, stats) };
    Ok(if json { line(&queue) } else { queue::Told(&queue).to_string() })
}

/// How the queue's target does, as the process has noted that last had news of it; nothing if that cannot be read.
async fn push_state(client: &Client, redis: &Redis, name: &QueueName) -> Option<Value> {
    let registry = Registry::open(redis.shared_url()?, client.prefix()).await.ok()?;
    push::noted_state(&registry, name).await
}

async fn all(client: &Client, json: bool) -> Result<String, Failure> {
    let stats = names::all(client).await?.into_iter().map(|name| async move {
        let stats = crate::cli::redis::queue(client, &name)?.stats(HOURS).await?;
        Ok::<_, Failure>(stats.born.is_some().then(|| Queue::new(&name, stats)))
    });
    let queues: Vec<Option<Queue>> = stream::iter(stats).buffered(AT_ONCE).try_collect().await?;
    let queues: Vec<Queue> = queues.into_iter().flatten().collect();
    Ok(if json { queues.iter().map(line).collect() } else { queue::table(&queues).to_string() })
}

fn line(queue: &Queue) -> String {
    let mut line = serde_json::to_string(queue).unwrap_or_default();
    line.push('\n');
    line
}
