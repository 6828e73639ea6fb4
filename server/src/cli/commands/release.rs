use clap::Args;
use delayline_http::{ForceRelease, Problem};
use delayline_tokio::{Client, JobId, Queue, QueueName, Verdict};
use serde_json::json;

use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::failure::Failure;

/// Takes jobs from the consumers that hold them, as if those had given them back: the attempt is not spent.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A job is due then when it was, so usually at once. Its consumer is told that its lease has ended with whatever it does
next; until then it may still be at work, so that the job runs twice. Hence --force.

Examples:
  delayline release welcome held:1 --force")]
pub struct Release {
    /// From which queue
    queue: QueueName,
    /// Which ones
    #[arg(value_name = "ID", required = true)]
    ids: Vec<JobId>,
    /// Though their consumers may still be at work
    #[arg(long, required = true)]
    force: bool,
}

impl Release {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let mut failed = 0;
        let releasing = redis.with_client(
            &self.queue,
            || self.curl(),
            async |client, queue| {
                must_exist(queue).await?;
                for id in &self.ids {
                    let released = release(client, queue, id).await?;
                    failed += u64::from(released.is_err());
                    say(id, released, json)?;
                }
                Ok(())
            },
        );
        releasing.await?;
        if failed == 0 {
            return Ok(());
        }
        Err(Failure::Partly { failed, all: self.ids.len() as u64, what: "jobs were not released" })
    }

    fn curl(&self) -> String {
        let url =
            |id| format!("'http://127.0.0.1:4747/v1/queues/{}/jobs/{id}/release?force=true'", self.queue);
        format!("curl -X POST {}", self.ids.iter().map(url).collect::<Vec<_>>().join(" "))
    }
}

/// What became of a job, or why it is not released.
async fn release(
    client: &Client,
    queue: &Queue,
    id: &JobId,
) -> Result<Result<&'static str, Problem>, Failure> {
    let release = ForceRelease { queue: queue.name().clone(), id: id.clone() };
    let lease = match release.lease(queue.inspect(id).await?.as_ref()) {
        Ok(lease) => lease,
        Err(refused) => return Ok(Err(refused)),
    };
    Ok(release.status(client.settle(lease, Verdict::Release).await?))
}

fn say(id: &JobId, released: Result<&'static str, Problem>, json: bool) -> Result<(), Failure> {
    match released {
        Ok(status) if json => print::document(&json!({ "id": id.as_str(), "status": status })),
        Ok(status) => print::line(format_args!("{id} {status}")),
        Err(Problem { code, detail, .. }) if json => {
            print::document(&json!({ "id": id.as_str(), "status": code, "detail": detail }))
        }
        Err(problem) => {
            eprintln!("{}", problem.detail);
            Ok(())
        }
    }
}
