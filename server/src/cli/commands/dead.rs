use clap::{Args, Subcommand};
use delayline_tokio::{DeadMoved, Error, JobId, Place, Queue, QueueName};
use serde_json::json;

use super::list::{self, Pages};
use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::failure::Failure;

const IDS_AT_ONCE: usize = 500;

/// Lists dead letters, the jobs whose attempts are used up, makes them due again, or removes them.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A dead letter is a job whose attempts are used up, or that was buried; it is kept for the queue's retention.

Examples:
  delayline dead list welcome
  delayline dead requeue welcome --all
  delayline dead purge welcome bad:1 bad:2")]
pub struct Dead {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// List them with their reasons
    #[command(after_help = "\
Examples:
  delayline dead list welcome
  delayline dead list welcome --all --json")]
    List {
        /// Of which queue
        queue: QueueName,
        #[command(flatten)]
        pages: Pages,
    },
    /// Make them due at once, with all their attempts
    #[command(after_help = "\
Examples:
  delayline dead requeue welcome bad:1 bad:2
  delayline dead requeue welcome --all")]
    Requeue(Which),
    /// Remove them
    #[command(after_help = "\
Examples:
  delayline dead purge welcome bad:1 bad:2
  delayline dead purge welcome --all")]
    Purge(Which),
}

#[derive(Clone, Debug, Args)]
struct Which {
    /// Of which queue
    queue: QueueName,
    /// Which ones
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<JobId>,
    /// All of them
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy)]
enum Fate {
    Requeued,
    Purged,
}

impl Dead {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        match &self.what {
            What::List { queue, pages } => list::list(redis, queue, Place::Dead, pages, json).await,
            What::Requeue(which) => which.run(redis, Fate::Requeued, json).await,
            What::Purge(which) => which.run(redis, Fate::Purged, json).await,
        }
    }
}

impl Which {
    async fn run(&self, redis: &Redis, fate: Fate, json: bool) -> Result<(), Failure> {
        let moved = redis.with_queue(
            &self.queue,
            || self.curl(fate),
            async |queue| {
                must_exist(queue).await?;
                self.apply(queue, fate).await
            },
        );
        let DeadMoved { moved, left, outcomes } = moved.await?;
        let missing = self.ids.iter().zip(outcomes).filter(|(_, moved)| !moved).map(|(id, _)| id.as_str());
        let missing: Vec<&str> = missing.collect();
        let done = fate.done();
        if json {
            print::document(
                &json!({ "queue": self.queue.as_str(), done: moved, "left": left, "missing": missing }),
            )?;
        } else {
            print::line(format_args!("{done} {moved} of queue {}, {left} left", self.queue))?;
            for id in &missing {
                eprintln!("{id} is no dead letter");
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let (failed, all) = (missing.len() as u64, self.ids.len() as u64);
        Err(Failure::Partly { failed, all, what: "jobs are no dead letters, and are untouched" })
    }

    async fn apply(&self, queue: &Queue, fate: Fate) -> Result<DeadMoved, Failure> {
        if self.all {
            return Ok(fate.seal_all(queue).await?);
        }
        let mut all = DeadMoved { moved: 0, left: 0, outcomes: Vec::new() };
        for ids in self.ids.chunks(IDS_AT_ONCE) {
            let moved = fate.seal(queue, ids.to_vec()).await?;
            all.moved += moved.moved;
            all.left = moved.left;
            all.outcomes.extend(moved.outcomes);
        }
        Ok(all)
    }

    fn curl(&self, fate: Fate) -> String {
        let ids: Vec<&str> = self.ids.iter().map(JobId::as_str).collect();
        let body = if self.all { json!({ "all": true }) } else { json!({ "ids": ids }) };
        let verb = fate.verb();
        format!(
            "curl 'http://127.0.0.1:4747/v1/queues/{}/dead/{verb}' -H 'Content-Type: application/json' -d '{body}'",
            self.queue
        )
    }
}

impl Fate {
    fn verb(self) -> &'static str {
        match self {
            Fate::Requeued => "requeue",
            Fate::Purged => "purge",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Fate::Requeued => "requeued",
            Fate::Purged => "purged",
        }
    }

    async fn seal(self, queue: &Queue, ids: Vec<JobId>) -> Result<DeadMoved, Error> {
        match self {
            Fate::Requeued => queue.requeue(ids).await,
            Fate::Purged => queue.purge(ids).await,
        }
    }

    async fn seal_all(self, queue: &Queue) -> Result<DeadMoved, Error> {
        match self {
            Fate::Requeued => queue.requeue_all().await,
            Fate::Purged => queue.purge_all().await,
        }
    }
}
