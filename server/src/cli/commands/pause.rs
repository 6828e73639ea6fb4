use clap::Args;
use delayline_tokio::QueueName;
use serde_json::json;

use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::failure::Failure;

/// Stops deliveries from a queue. What is being run goes on, and publishing too.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
What is being run goes on. A queue that is not there is made, paused, only with --create.

Examples:
  delayline pause welcome
  delayline pause reports --create
  delayline pause welcome --json")]
pub struct Pause {
    /// Which one
    queue: QueueName,
    /// Make the queue if it is not there
    #[arg(long)]
    create: bool,
}

/// Ends a pause. What came due meanwhile is delivered.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
What came due meanwhile is delivered.

Examples:
  delayline resume welcome
  delayline resume welcome --json")]
pub struct Resume {
    /// Which one
    queue: QueueName,
}

impl Pause {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let curl = || curl(&self.queue, "pause");
        let pausing = redis.with_queue(&self.queue, curl, async |queue| {
            if !self.create && queue.stats(0).await?.born.is_none() {
                return Err(Failure::not_created(&self.queue));
            }
            Ok(queue.pause().await?)
        });
        say(&self.queue, true, pausing.await?, json)
    }
}

impl Resume {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let curl = || curl(&self.queue, "resume");
        let resuming = redis.with_queue(&self.queue, curl, async |queue| {
            must_exist(queue).await?;
            Ok(queue.resume().await?)
        });
        say(&self.queue, false, resuming.await?, json)
    }
}

fn curl(name: &QueueName, verb: &str) -> String {
    format!("curl -X POST 'http://127.0.0.1:4747/v1/queues/{name}/{verb}'")
}

fn say(name: &QueueName, paused: bool, cfgver: u64, json: bool) -> Result<(), Failure> {
    if json {
        return print::document(&json!({ "queue": name.as_str(), "paused": paused, "cfgver": cfgver }));
    }
    print::line(format_args!("{name} {}", if paused { "paused" } else { "resumed" }))
}
