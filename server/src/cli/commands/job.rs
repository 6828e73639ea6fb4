use clap::Args;
use delayline_http::Kept;
use delayline_tokio::{JobId, QueueName};

use crate::cli::fields::Fields;
use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::failure::Failure;

/// Shows a job: where it is, when it is due, its attempts, its last failure and what it carries. The payload is shown
/// as JSON if it is that, else as text, else in base64.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The payload is shown as JSON if it is that, else as text, else in base64.

Examples:
  delayline job welcome ann:1
  delayline job welcome ann:1 --json")]
pub struct Job {
    /// Where it is
    queue: QueueName,
    /// Which one
    id: JobId,
}

impl Job {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let curl = || format!("curl 'http://127.0.0.1:4747/v1/queues/{}/jobs/{}'", self.queue, self.id);
        let inspecting = redis.with_queue(&self.queue, curl, async |queue| {
            if let Some(job) = queue.inspect(&self.id).await? {
                return Ok(job);
            }
            must_exist(queue).await?;
            Err(Failure::NoSuchJob { queue: self.queue.to_string(), id: self.id.to_string() })
        });
        let job = inspecting.await?;
        let job = Kept::new(&self.queue, job);
        if json { print::document(&job) } else { print::text(Fields::of(&job)) }
    }
}
