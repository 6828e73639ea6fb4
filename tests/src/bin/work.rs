//! A worker that keeps a record of what it runs: `work URL QUEUE RECORD`. SIGTERM ends it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_tests::{Mark, What};
use delayline_tokio::{Client, Context, Error, Job, Worker};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

const LEASE: Duration = Duration::from_secs(3);

/// What a job asks for.
#[derive(Deserialize, Serialize)]
struct Order {
    /// How long it takes.
    ms: u64,
    /// How many attempts fail.
    fails: u16,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, queue, record] = &args[..] else {
        eprintln!("usage: work URL QUEUE RECORD");
        return ExitCode::from(2);
    };
    let record = OpenOptions::new().create(true).append(true).open(record).expect("a file for the record");
    match work(url, queue, Arc::new(record)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("work: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(url: &str, queue: &str, record: Arc<File>) -> Result<(), Error> {
    let mut stop = signal(SignalKind::terminate()).expect("a handler of SIGTERM");
    let client = Client::connect(url).await?;
    let worker = Worker::new(&client)
        .lease(LEASE)
        .queue(&client.queue(queue)?, move |order, context| run(record.clone(), order, context));
    let ran = worker
        .run_until(async move {
            let _ = stop.recv().await;
        })
        .await;
    client.close().await;
    ran
}

async fn run(record: Arc<File>, Job(order): Job<Order>, job: Context) -> Result<(), String> {
    note(&record, &job, What::Began);
    tokio::time::sleep(Duration::from_millis(order.ms)).await;
    if job.attempt <= order.fails {
        note(&record, &job, What::Failed);
        return Err(format!("{} failed at attempt {}", job.id(), job.attempt));
    }
    note(&record, &job, What::Done);
    Ok(())
}

fn note(mut record: &File, job: &Context, what: What) {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let lease_ms = u64::try_from(LEASE.as_millis()).expect("a short lease");
    let mark = Mark {
        what,
        id: job.lease.id.to_string(),
        attempt: job.attempt,
        delivery: job.deliveries,
        due: job.due.0,
        granted: job.lease_ends.0 - lease_ms,
        at: u64::try_from(at.as_micros()).expect("a clock before the year 500000"),
    };
    record.write_all(format!("{mark}\n").as_bytes()).expect("room for the record");
}
