use clap::Args;
use delayline_tokio::QueueName;
use serde_json::json;

use crate::failure::Failure;
use crate::print;
use crate::redis::Redis;

/// Stops deliveries from a queue. What is being run goes on, and publishing too; a queue that is not there yet is made,
/// paused.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
What is being run goes on. A queue that is not there yet is made, paused.

Examples:
  delayline pause welcome
  delayline pause welcome --json")]
pub struct Pause {
    /// Which one
    queue: QueueName,
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
        set(redis, &self.queue, true, json).await
    }
}

impl Resume {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        set(redis, &self.queue, false, json).await
    }
}

async fn set(redis: &Redis, name: &QueueName, paused: bool, json: bool) -> Result<(), Failure> {
    let verb = if paused { "pause" } else { "resume" };
    let curl = || format!("curl -X POST 'http://127.0.0.1:4747/v1/queues/{name}/{verb}'");
    let cfgver = redis.with_queue(name, curl, async |queue| {
        Ok(if paused { queue.pause().await? } else { queue.resume().await? })
    });
    let cfgver = cfgver.await?;
    if json {
        return print::document(&json!({ "queue": name.as_str(), "paused": paused, "cfgver": cfgver }));
    }
    print::line(format_args!("{name} {verb}d"))
}
