use std::time::Duration;

use clap::Args;
use delayline_http::{Time, outcome};
use delayline_tokio::{JobId, QueueName, RescheduleOutcome, Span, When};
use serde_json::json;

use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::failure::Failure;

/// Gives waiting jobs another due time. One that a consumer holds, or that is dead, stays as it is.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
One that a consumer holds, or that is dead, stays as it is: `delayline dead requeue` makes dead letters due.

Examples:
  delayline reschedule welcome ann:1 --delay 0s       # now
  delayline reschedule welcome ann:1 bob:1 --at 2030-01-01T00:00:00Z")]
pub struct Reschedule {
    /// In which queue
    queue: QueueName,
    /// Which ones
    #[arg(value_name = "ID", required = true)]
    ids: Vec<JobId>,
    /// How long until they are due, as in 5s or 1h30m
    #[arg(long, value_name = "TIME", conflicts_with = "at", required_unless_present = "at")]
    delay: Option<Span>,
    /// When they are due, as in 2026-11-21T10:00:05Z
    #[arg(long, value_name = "WHEN")]
    at: Option<Time>,
}

impl Reschedule {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let when = self.when();
        let jobs = self.ids.iter().map(|id| (id.clone(), when)).collect();
        let outcomes = redis
            .with_queue(
                &self.queue,
                || self.curl(),
                async |queue| {
                    must_exist(queue).await?;
                    Ok(queue.reschedule_all(jobs).await?)
                },
            )
            .await?;
        let mut failed = 0;
        for (id, rescheduled) in self.ids.iter().zip(outcomes) {
            let (outcome, due) = (rescheduled.outcome, rescheduled.due.map(Time));
            failed += u64::from(outcome != RescheduleOutcome::Moved);
            if json {
                print::document(
                    &json!({ "id": id.as_str(), "status": outcome::rescheduled(outcome), "due": due }),
                )?;
            } else {
                match (why_not(outcome), due) {
                    (Some(why), _) => eprintln!("{id} {why}"),
                    (None, Some(due)) => print::line(format_args!("{id} due {due}"))?,
                    (None, None) => print::line(format_args!("{id} moved"))?,
                }
            }
        }
        if failed == 0 {
            return Ok(());
        }
        Err(Failure::Partly { failed, all: self.ids.len() as u64, what: "jobs were not rescheduled" })
    }

    fn when(&self) -> When {
        let delay = self.delay.map_or(Duration::ZERO, |delay| Duration::from_millis(delay.0));
        self.at.map_or(When::In(delay), |at| When::At(at.into()))
    }

    fn curl(&self) -> String {
        let body = match (self.delay, self.at) {
            (Some(delay), _) => json!({ "delay": delay.to_string() }),
            (None, at) => json!({ "at": at }),
        };
        let url = |id| format!("'http://127.0.0.1:4747/v1/queues/{}/jobs/{id}'", self.queue);
        format!(
            "curl -X PATCH -H 'Content-Type: application/json' -d '{body}' {}",
            self.ids.iter().map(url).collect::<Vec<_>>().join(" ")
        )
    }
}

fn why_not(outcome: RescheduleOutcome) -> Option<&'static str> {
    match outcome {
        RescheduleOutcome::Moved => None,
        RescheduleOutcome::Leased => Some("is held by a consumer: wait until its lease ends"),
        RescheduleOutcome::Dead => Some("is a dead letter: requeue it"),
        RescheduleOutcome::Gone => Some("is not there: it may have been acked or cancelled"),
        RescheduleOutcome::Expires => Some("would expire before that: choose an earlier time"),
    }
}
