use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use delayline_http::Taken;
use delayline_tokio::{Client, Context, QueueName, Span, Verdict, Worker};
use tokio::sync::Notify;

use crate::cli::exec::Exec;
use crate::cli::printer::Printer;
use crate::cli::redis::{Redis, must_exist, with_nearest};
use crate::cli::stop::Stop;
use crate::failure::Failure;

const PRINTED_AT_ONCE: u16 = 100;
/// More processes at a time than this are rather a mistake than a wish.
const CONCURRENCY_MAX: i64 = 1_000;
/// How long a command may go on after the process was told to stop.
const GRACE: Duration = Duration::from_secs(20);
/// How long a reader may take, after the process was told to stop, to read what is being printed.
const UNREAD_GRACE: Duration = Duration::from_millis(500);

/// Prints jobs, or runs a command for each, until it is told to stop. A command may then go on for 20 s; told twice, it
/// kills the command.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A command finds the payload on stdin, and around it DELAYLINE_QUEUE, DELAYLINE_ID, DELAYLINE_ATTEMPT,
DELAYLINE_MAX_ATTEMPTS, DELAYLINE_DUE, DELAYLINE_PUBLISHED, DELAYLINE_LEASE, DELAYLINE_CONTENT_TYPE
and DELAYLINE_HEADER_<NAME>. If it exits with 0 the job is done; with 75 (EX_TEMPFAIL) it comes again after
--snooze, and the attempt is not spent; with 65 (EX_DATAERR) it is a dead letter at once; else the attempt
failed. The end of what it wrote to stderr is the reason. The lease is renewed while it runs. Told to stop, a
command may go on for 20 s. It dies, with all it started, when delayline does (not on Windows).

Without a command jobs are printed in the order in which they are delivered: of one queue that of their due
times.

Examples:
  delayline consume welcome
  delayline consume welcome reports --json --count 2 > jobs.ndjson
  delayline consume welcome --exec ./send.sh
  delayline consume welcome --exec ./send.sh --concurrency 8 --snooze 5m")]
pub struct Consume {
    /// Where from
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<QueueName>,
    /// Run this for each job, by the shell
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// How many commands may run at a time
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "exec",
        value_parser = clap::value_parser!(u16).range(1..=CONCURRENCY_MAX))]
    concurrency: u16,
    /// When a job comes again whose command exits with 75
    #[arg(long, value_name = "TIME", default_value = "1m", requires = "exec")]
    snooze: Span,
    /// Stop after so many jobs
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How long a job is held without a sign of life
    #[arg(long, value_name = "TIME", default_value = "30s")]
    lease: Span,
}

/// What is done with each job.
struct Consumer {
    way: Way,
    left: AtomicU64,
    unsettled: AtomicU64,
    finished: Notify,
}

enum Way {
    Exec(Exec),
    Print { printer: Printer, json: bool },
}

impl Consume {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let client = tokio::select! {
            connected = redis.wait_for(|| self.curl()) => connected?,
            () = stop.clone().asked() => return Ok(()),
        };
        tokio::select! {
            done = self.consume(&client, stop.clone(), json) => done,
            () = stop.insisted() => Err(Failure::Interrupted),
        }
    }

    async fn consume(&self, client: &Client, stop: Stop, json: bool) -> Result<(), Failure> {
        let count = self.count.unwrap_or(u64::MAX);
        let (way, at_once, grace) = match &self.exec {
            Some(command) => (Way::Exec(Exec::new(command, self.snooze)?), self.concurrency, GRACE),
            None => (Way::Print { printer: Printer::start()?, json }, PRINTED_AT_ONCE, UNREAD_GRACE),
        };
        let consumer = Arc::new(Consumer {
            way,
            left: AtomicU64::new(count),
            unsettled: AtomicU64::new(count),
            finished: Notify::new(),
        });
        let at_once = u16::try_from(count).unwrap_or(u16::MAX).min(at_once);
        let lease = Duration::from_millis(self.lease.0);
        let mut worker = Worker::new(client).concurrency(at_once).lease(lease).grace(grace);
        for queue in &self.queues {
            let consumer = Arc::clone(&consumer);
            worker = worker.queue(&client.bytes(queue)?, move |job| handle(Arc::clone(&consumer), job));
        }
        let names: Vec<&str> = self.queues.iter().map(QueueName::as_str).collect();
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!("delayline {version} consuming {} from {}", names.join(", "), client.address());
        let finished = async move {
            tokio::select! {
                () = consumer.finished.notified() => {}
                () = stop.asked() => {}
            }
        };
        let running = async {
            if self.exec.is_some() {
                Ok(worker.run_until(finished).await?)
            } else {
                in_order(worker, finished).await
            }
        };
        tokio::select! {
            done = running => done?,
            () = self.tell_what_is_not_there(client) => {}
        }
        client.clone().close().await;
        Ok(())
    }

    /// Says of each queue that is not there yet that it is not; never ends.
    async fn tell_what_is_not_there(&self, client: &Client) {
        for queue in &self.queues {
            let Ok(queue) = client.bytes(queue) else { continue };
            if let Err(unknown @ Failure::NoSuchQueue { .. }) = must_exist(&queue).await {
                tracing::warn!("{}", with_nearest(unknown, client).await);
            }
        }
        std::future::pending::<()>().await;
    }

    fn curl(&self) -> String {
        let queues: Vec<String> = self.queues.iter().map(|queue| format!("queue={queue}")).collect();
        format!("curl -X POST 'http://127.0.0.1:4747/v1/take?{}&wait=1m'", queues.join("&"))
    }
}

/// Runs a worker on a runtime of one thread, which begins its handlers in the order in which the jobs come.
async fn in_order(
    worker: Worker,
    finished: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let running = tokio::task::spawn_blocking(move || runtime.block_on(worker.run_until(finished)));
    Ok(running.await.map_err(std::io::Error::other)??)
}

async fn handle(consumer: Arc<Consumer>, job: Context) -> Verdict {
    let took = consumer.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if took.is_err() {
        return Verdict::Release;
    }
    let verdict = match &consumer.way {
        Way::Exec(exec) => exec.run(&job).await,
        Way::Print { printer, json } => consumer.print(printer, *json, job).await,
    };
    if consumer.unsettled.fetch_sub(1, Ordering::Relaxed) == 1 {
        tracing::info!("stopping: the jobs that --count asked for are done");
        consumer.finished.notify_one();
    }
    verdict
}

impl Consumer {
    /// Prints the job, which is done once it is written; if nobody reads any more, it stays.
    async fn print(&self, printer: &Printer, json: bool, job: Context) -> Verdict {
        let mut line = if json {
            serde_json::to_vec(&Taken::from(job.into_delivery())).unwrap_or_default()
        } else {
            job.body.to_vec()
        };
        line.push(b'\n');
        if printer.print(line).await {
            return Verdict::Ack;
        }
        if self.left.swap(0, Ordering::Relaxed) > 0 {
            tracing::info!("stopping: nobody reads what is printed");
        }
        self.finished.notify_one();
        Verdict::Release
    }
}
