use std::io::Write;

use clap::Args;
use delayline_tokio::{Client, QueueName};

use crate::failure::Failure;
use crate::queue::Queue;
use crate::redis::Redis;

/// Shows what is in a queue, or in each.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  delayline stats
  delayline stats welcome --json")]
pub struct Stats {
    /// Which queue; all if it is left out
    queue: Option<QueueName>,
}

impl Stats {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let client = redis.connect(|| self.curl()).await?;
        let done = match &self.queue {
            Some(queue) => show(&client, queue, json).await,
            None => show_all(&client, json).await,
        };
        client.close().await;
        done
    }

    fn curl(&self) -> String {
        let queue = self.queue.as_ref().map_or(String::new(), |queue| format!("/{queue}"));
        format!("curl 'http://127.0.0.1:4747/v1/queues{queue}'")
    }
}

async fn show(client: &Client, queue: &QueueName, json: bool) -> Result<(), Failure> {
    let stats = client.queue(queue)?.stats(24).await?;
    if stats.born.is_none() {
        return Err(Failure::NoSuchQueue(queue.to_string()));
    }
    let queue = Queue::new(queue, stats);
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(&queue).unwrap_or_default())?;
    } else {
        write!(out, "{queue}")?;
    }
    Ok(())
}

async fn show_all(client: &Client, json: bool) -> Result<(), Failure> {
    let mut cursor = None;
    if !json {
        writeln!(
            std::io::stdout(),
            "{:<40} {:>9} {:>9} {:>9} {:>9}",
            "queue",
            "ready",
            "delayed",
            "leased",
            "dead"
        )?;
    }
    loop {
        let page = client.queues(cursor.as_ref(), 100).await?;
        for name in &page.items {
            let stats = client.queue(name)?.stats(24).await?;
            let queue = Queue::new(name, stats);
            let row = if json { serde_json::to_string(&queue).unwrap_or_default() } else { queue.row() };
            writeln!(std::io::stdout(), "{row}")?;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}
