use clap::Args;
use delayline_tokio::QueueName;
use serde_json::json;

use super::names;
use crate::cli::print;
use crate::cli::redis::Redis;
use crate::failure::Failure;

/// Names the queues, one a line, in order.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
One a line, in order.

Examples:
  delayline queues
  delayline queues --json")]
pub struct Queues {}

impl Queues {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let client = redis.connect(|| "curl 'http://127.0.0.1:4747/v1/queues'".into()).await?;
        let names = names::all(&client).await;
        client.close().await;
        let names = names?;
        if json {
            let names: Vec<&str> = names.iter().map(QueueName::as_str).collect();
            return print::document(&json!({ "queues": names }));
        }
        names.iter().try_for_each(print::line)
    }
}
