use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use delayline_tokio::{Client, Context, Error, Failure, Job, Worker};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::history::{End, Run, now};
use super::plan::LEASE;

const SLOTS: u16 = 25;
const CONNECT: Duration = Duration::from_secs(60);
/// Shorter than the longest run, so that a shutdown gives jobs back.
const GRACE: Duration = Duration::from_millis(800);

/// What a job asks of its consumer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// How long a run takes, in ms.
    pub(super) ms: u64,
    /// How many attempts fail.
    pub(super) fails: u16,
    /// How it ends then.
    pub(super) end: End,
}

impl Order {
    /// How this attempt ends. A snooze gives the attempt back: by the delivery it is told when it was enough.
    pub(super) fn end(&self, attempt: u16, delivery: u16) -> End {
        match self.end {
            End::Snoozed(_) if delivery > 1 => End::Done,
            _ if attempt <= self.fails => End::Failed,
            end => end,
        }
    }
}

/// Runs the jobs of a queue until SIGTERM, and writes a line as each run begins, and one as it ends.
///
/// # Panics
/// If the record cannot be written.
pub async fn work(url: &str, queue: &str, record: &Path, name: &str) -> Result<(), Error> {
    let mut stop = signal(SignalKind::terminate()).expect("a handler of SIGTERM");
    let record = OpenOptions::new().create(true).append(true).open(record).expect("a file for the record");
    let (record, name): (Arc<File>, Arc<str>) = (Arc::new(record), name.into());
    let connecting = Client::builder().connect_timeout(CONNECT).grace(GRACE).connect(url);
    let client = tokio::select! {
        client = connecting => client?,
        _ = stop.recv() => return Ok(()),
    };
    let worker = Worker::new(&client)
        .lease(Duration::from_millis(LEASE))
        .concurrency(SLOTS)
        .grace(GRACE)
        .queue(&client.queue(queue)?, move |order, context| {
            run(record.clone(), name.clone(), order, context)
        });
    let ran = worker.run_until(stop.recv()).await;
    client.close().await;
    ran
}

async fn run(record: Arc<File>, name: Arc<str>, Job(order): Job<Order>, job: Context) -> Result<(), Failure> {
    let run = Run {
        consumer: name.to_string(),
        id: job.id().to_string(),
        published: job.published.0,
        attempt: job.attempt,
        fence: job.lease.fence.0,
        due: job.due.0,
        granted: job.lease_ends.0 - LEASE,
        ends: job.lease_ends.0,
        began: now(),
        end: None,
    };
    let mut note = Note { record, run };
    note.write();
    tokio::time::sleep(Duration::from_millis(order.ms)).await;
    let end = order.end(job.attempt, job.deliveries);
    note.end(end);
    match end {
        End::Done | End::Dropped => Ok(()),
        End::Failed => Err(failed(job.attempt).into()),
        End::Buried => Err(Failure::bury(BURIED)),
        End::Snoozed(ms) => Err(Failure::snooze(Duration::from_millis(ms))),
    }
}

/// What a consumer says of an attempt that failed.
pub fn failed(attempt: u16) -> String {
    format!("failed at attempt {attempt}")
}

/// What a consumer says of a job that it buries.
pub const BURIED: &str = "there is no hope";

/// A run that is under way. If it does not end before, it is dropped.
struct Note {
    record: Arc<File>,
    run: Run,
}

impl Note {
    fn end(&mut self, end: End) {
        self.run.end = Some((end, now()));
        self.write();
    }

    fn write(&self) {
        let line = serde_json::to_string(&self.run).expect("a run is JSON");
        (&*self.record).write_all(format!("{line}\n").as_bytes()).expect("room for the record");
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.run.end.is_none() {
            self.end(End::Dropped);
        }
    }
}
