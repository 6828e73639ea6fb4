use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use delayline_http::Taken;
use delayline_tokio::{Client, Context, QueueName, Span, Verdict, Worker};
use tokio::sync::Notify;

use crate::exec;
use crate::failure::Failure;
use crate::redis::Redis;
use crate::stop::Stop;

const PRINTED_AT_ONCE: u16 = 100;

/// Prints jobs, or runs a command for each, until it is told to stop; told twice, it kills the command.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A command finds the payload on stdin, and around it DELAYLINE_QUEUE, DELAYLINE_ID, DELAYLINE_ATTEMPT,
DELAYLINE_MAX_ATTEMPTS, DELAYLINE_DUE, DELAYLINE_PUBLISHED, DELAYLINE_LEASE, DELAYLINE_CONTENT_TYPE
and DELAYLINE_HEADER_<NAME>. If it exits with 0 the job is done; else the attempt failed, and the end
of what it wrote to stderr is the reason. The lease is renewed while it runs.

Examples:
  delayline consume welcome
  delayline consume welcome reports --json --count 2 > jobs.ndjson
  delayline consume welcome --exec ./send.sh")]
pub struct Consume {
    /// Where from
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<QueueName>,
    /// Run this for each job, by the shell, one at a time
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// Stop after so many jobs
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How long a job is held without a sign of life
    #[arg(long, value_name = "TIME", default_value = "30s")]
    lease: Span,
}

/// What is done with each job.
struct Consumer {
    exec: Option<String>,
    json: bool,
    left: AtomicU64,
    unsettled: AtomicU64,
    finished: Notify,
}

impl Consume {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let client = redis.connect(|| self.curl()).await?;
        self.consume(&client, json).await?;
        client.close().await;
        Ok(())
    }

    async fn consume(&self, client: &Client, json: bool) -> Result<(), Failure> {
        let count = self.count.unwrap_or(u64::MAX);
        let consumer = Arc::new(Consumer {
            exec: self.exec.clone(),
            json,
            left: AtomicU64::new(count),
            unsettled: AtomicU64::new(count),
            finished: Notify::new(),
        });
        let at_once = if self.exec.is_some() { 1 } else { PRINTED_AT_ONCE };
        let at_once = u16::try_from(count).unwrap_or(u16::MAX).min(at_once);
        let mut worker = Worker::new(client).concurrency(at_once).lease(Duration::from_millis(self.lease.0));
        for queue in &self.queues {
            let consumer = Arc::clone(&consumer);
            worker = worker.queue(&client.bytes(queue)?, move |job| handle(Arc::clone(&consumer), job));
        }
        let stop = Stop::listen()?;
        let stopped = stop.clone().asked();
        let finished = async move {
            tokio::select! {
                () = consumer.finished.notified() => {}
                () = stopped => {}
            }
        };
        tokio::select! {
            done = worker.run_until(finished) => Ok(done?),
            () = stop.insisted() => Err(Failure::Interrupted),
        }
    }

    fn curl(&self) -> String {
        let queues: Vec<String> = self.queues.iter().map(|queue| format!("queue={queue}")).collect();
        format!("curl -X POST 'http://127.0.0.1:4747/v1/take?{}&wait=1m'", queues.join("&"))
    }
}

async fn handle(consumer: Arc<Consumer>, job: Context) -> Verdict {
    let took = consumer.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if took.is_err() {
        return Verdict::Release;
    }
    let verdict = match &consumer.exec {
        Some(command) => exec::run(command, &job).await,
        None => consumer.print(job),
    };
    if consumer.unsettled.fetch_sub(1, Ordering::Relaxed) == 1 {
        consumer.finished.notify_one();
    }
    verdict
}

impl Consumer {
    /// Prints the job, which is done once it is written; if nobody reads any more, it stays.
    fn print(&self, job: Context) -> Verdict {
        let mut line = if self.json {
            serde_json::to_vec(&Taken::from(job.into_delivery())).unwrap_or_default()
        } else {
            job.body.to_vec()
        };
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        if out.write_all(&line).and_then(|()| out.flush()).is_ok() {
            return Verdict::Ack;
        }
        self.left.store(0, Ordering::Relaxed);
        self.finished.notify_one();
        Verdict::Release
    }
}
