use clap::Args;
use delayline_http::outcome;
use delayline_tokio::{CancelOutcome, JobId, QueueName};
use serde_json::json;

use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::failure::Failure;

/// Takes waiting jobs away. One that a consumer holds, or that is dead, stays.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
One that a consumer holds, or that is dead, stays: purge dead letters with `delayline dead purge`.

Examples:
  delayline cancel welcome ann:1
  delayline cancel welcome ann:1 bob:1 --json")]
pub struct Cancel {
    /// From which queue
    queue: QueueName,
    /// Which ones
    #[arg(value_name = "ID", required = true)]
    ids: Vec<JobId>,
}

impl Cancel {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let ids = self.ids.clone();
        let outcomes = redis
            .with_queue(
                &self.queue,
                || self.curl(),
                async |queue| {
                    must_exist(queue).await?;
                    Ok(queue.cancel_all(ids).await?)
                },
            )
            .await?;
        let mut failed = 0;
        for (id, outcome) in self.ids.iter().zip(outcomes) {
            failed += u64::from(outcome != CancelOutcome::Cancelled);
            if json {
                print::document(&json!({ "id": id.as_str(), "status": outcome::cancelled(outcome) }))?;
            } else if let Some(why) = why_not(outcome) {
                eprintln!("{id} {why}");
            } else {
                print::line(format_args!("{id} cancelled"))?;
            }
        }
        if failed == 0 {
            return Ok(());
        }
        Err(Failure::Partly { failed, all: self.ids.len() as u64, what: "jobs were not cancelled" })
    }

    fn curl(&self) -> String {
        let url = |id| format!("'http://127.0.0.1:4747/v1/queues/{}/jobs/{id}'", self.queue);
        format!("curl -X DELETE {}", self.ids.iter().map(url).collect::<Vec<_>>().join(" "))
    }
}

fn why_not(outcome: CancelOutcome) -> Option<&'static str> {
    match outcome {
        CancelOutcome::Cancelled => None,
        CancelOutcome::Leased => Some("is held by a consumer: wait until its lease ends"),
        CancelOutcome::Dead => Some("is a dead letter: purge it"),
        CancelOutcome::Gone => Some("is not there: it may have been acked or cancelled"),
    }
}
