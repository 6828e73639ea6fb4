//! Tests of what an application publishes and handles: its own client, workers and handlers, on a time that it holds.

mod jobs;
mod run;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use delayline_core::{Command, Job as Delivery, Place, Reply, UnixMs};

pub use self::jobs::{DeadLetter, Scheduled};
pub use self::run::{Outcome, Run, Runs};
use crate::held::HeldTime;
use crate::invalid::millis;
use crate::memory::Memory;
use crate::store::Store;
use crate::when::unix_ms;
use crate::{Client, Worker};

/// 2026-01-01T00:00:00Z.
const START: Duration = Duration::from_secs(1_767_225_600);
/// How often other tasks are let through before the engines are asked whether they rest.
const TURNS: usize = 8;
const LONGEST: Duration = Duration::from_secs(1_000 * 366 * 86_400);
/// How long handlers may take, by the real clock, unless a test says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client whose jobs are in memory and whose time stands still, and the clock that lets it pass: for tests, without
/// Redis and without sleeping.
///
/// It is the same client, and the workers and handlers are the same, as in production. The time begins at
/// 2026-01-01T00:00:00Z; ids, jitter and order are the same in each run on a runtime of one thread, which is what
/// `#[tokio::test]` makes. On one of many threads, start workers by [`TestClock::start`]: one that is spawned may begin
/// when the time has passed.
///
/// ```
/// use std::time::Duration;
/// use delayline_tokio::{Attempt, Client, Failure, Job, Worker};
///
/// async fn remind(Job(to): Job<String>, Attempt(attempt): Attempt) -> Result<(), Failure> {
///     if attempt == 1 { Err("the line is busy".into()) } else { Ok(()) }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let (client, time) = delayline_tokio::test();
/// let reminders = client.queue::<String>("reminders")?;
/// time.start(Worker::new(&client).queue(&reminders, remind));
///
/// reminders.publish(&"ann".to_owned()).delay(Duration::from_secs(30 * 86_400)).await?;
/// time.assert_scheduled::<String>(|reminder| reminder.job == "ann");
/// time.advance(Duration::from_secs(29 * 86_400)).await.assert_none();
///
/// let runs = time.advance(Duration::from_secs(86_400)).await;
/// assert!(runs.one().is_retried(), "{runs}");
/// time.advance(Duration::from_secs(5)).await.assert_acked(1);
/// time.assert_nothing_scheduled::<String>();
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// Outside of a tokio runtime.
#[track_caller]
pub fn test() -> (Client, TestClock) {
    test_at(UNIX_EPOCH + START)
}

/// [`test()`] from this time on, for code that reckons with a time of its own.
///
/// # Panics
///
/// Outside of a tokio runtime.
#[track_caller]
pub fn test_at(start: SystemTime) -> (Client, TestClock) {
    let start = unix_ms(start);
    let time = Arc::new(HeldTime::new(start));
    let memory = Arc::new(Memory::on(Arc::clone(&time)));
    let client =
        Client::builder().pump(true).at_once(Store::Memory(Arc::clone(&memory)), "memory://".to_owned());
    match client {
        Ok(client) => (client, TestClock { time, memory, start, patience: PATIENCE }),
        Err(error) => panic!("a test's client cannot be made: {error}: is the test a #[tokio::test]?"),
    }
}

/// The clock of a [`test()`]: time passes only when it is told to. Clones are the same clock.
#[derive(Clone)]
pub struct TestClock {
    time: Arc<HeldTime>,
    memory: Arc<Memory>,
    start: UnixMs,
    patience: Duration,
}

impl TestClock {
    /// The time, as the client, its workers and the store have it.
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.time.now().0)
    }

    /// The same clock, which waits so long for handlers, by the real clock, before it panics; 30 s if not called.
    #[must_use]
    pub fn patience(self, patience: Duration) -> TestClock {
        TestClock { patience, ..self }
    }

    /// Runs a worker from now on, until the client is closed or the test ends.
    ///
    /// # Panics
    ///
    /// If the worker cannot begin, which [`Worker::run`] would answer as an error.
    #[track_caller]
    pub fn start<S>(&self, worker: Worker<S>) {
        if let Err(error) = worker.start() {
            panic!("the worker cannot begin: {error}");
        }
    }

    /// Lets the time pass, and answers what handlers ran since it was last asked: each job at its very millisecond, the
    /// retries and whatever the handlers themselves publish included. It stands still while a handler runs.
    ///
    /// # Panics
    ///
    /// If handlers take longer than the [`patience`](TestClock::patience), or run again and again without time passing; if
    /// more than 1,000 years are to pass.
    pub async fn advance(&self, by: Duration) -> Runs {
        assert!(by <= LONGEST, "a test's time passes day by day, at most 1,000 years at once");
        let end = self.time.now() + millis(by);
        self.rest().await;
        while let Some(next) = self.time.next().filter(|next| *next <= end) {
            self.time.set(next);
            self.rest().await;
        }
        self.time.set(end);
        self.rest().await;
        self.runs()
    }

    /// Lets everything run that is due now, and answers what handlers ran since it was last asked: what
    /// [`advance`](TestClock::advance) does with no time at all.
    ///
    /// # Panics
    ///
    /// If handlers take longer than the [`patience`](TestClock::patience), or run again and again without time passing.
    pub async fn drain_due(&self) -> Runs {
        self.advance(Duration::ZERO).await
    }

    fn runs(&self) -> Runs {
        let known = self.time.known();
        let runs = self.time.take_runs().into_iter().map(|entry| Run::of(entry, self.start, &known));
        Runs::new(runs.collect())
    }

    /// Until nobody has anything to do at this time.
    async fn rest(&self) {
        let begun = Instant::now();
        loop {
            let before = self.time.activity();
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            for is_idle in self.time.ask_all() {
                let _ = is_idle.await;
            }
            self.handlers_end().await;
            self.time.look_up(|delivery| self.next_due(delivery));
            if self.time.activity() == before && self.time.running().is_empty() {
                return;
            }
            assert!(
                begun.elapsed() < self.patience,
                "after {:?} handlers still run at the same time, the last for {}; time passes only when all is done, so a \
                 job must not come again without a delay",
                self.patience,
                self.time.latest()
            );
        }
    }

    async fn handlers_end(&self) {
        if self.time.running().is_empty() {
            return;
        }
        let (_over, watch) = watchdog(self.patience);
        tokio::pin!(watch);
        while !self.time.running().is_empty() {
            tokio::select! {
                () = self.time.eased() => {}
                () = &mut watch => panic!(
                    "{} did not end in {:?}; the time stands still while a handler runs, so it must not wait for it to pass",
                    self.time.running().join(", "),
                    self.patience
                ),
            }
        }
    }

    /// When a job that has just been settled is due again.
    fn next_due(&self, delivery: &Delivery) -> UnixMs {
        let (queue, id) = (delivery.lease.queue.clone(), delivery.lease.id.clone());
        match self.memory.execute(&[Command::Inspect { queue, id }]).pop() {
            Some(Reply::Found { job, .. }) if matches!(job.place, Place::Ready | Place::Delayed) => job.at,
            _ => self.time.now(),
        }
    }
}

impl fmt::Debug for TestClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// Barks after a time by the real clock, unless what is returned first is dropped before. It is no timer of tokio's,
/// whose clock may be paused.
fn watchdog(patience: Duration) -> (std::sync::mpsc::Sender<()>, impl Future<Output = ()>) {
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let (bark, barks) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        if is_over.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = bark.send(());
        }
    });
    (over, async move {
        if barks.await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// Queues by name, each once.
fn queues_of<T: 'static>(time: &HeldTime) -> BTreeMap<delayline_core::QueueName, crate::codec::Coder<T>> {
    let known = time.known().into_iter();
    known
        .filter_map(|known| {
            let coder = known.coder.downcast_ref::<crate::codec::Coder<T>>()?.clone();
            Some((known.queue, coder))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;

    const HOUR: Duration = Duration::from_secs(3_600);

    async fn refuse(_: Job<String>) -> Result<(), &'static str> {
        Err("the line is busy")
    }

    #[tokio::test]
    async fn a_worker_beside_the_client_that_tends_runs_every_job_in_time() {
        let (client, time) = test();
        let calls = client.queue::<String>("calls").unwrap();
        time.start(Worker::new(&client).queue(&calls, refuse));
        time.drain_due().await.assert_none();
        let backoff = "15s 2h 1s".parse().unwrap();
        calls.publish(&"ann".to_owned()).delay(HOUR).attempts(4).backoff(backoff).await.unwrap();
        let seconds: Vec<u64> = time.advance(24 * HOUR).await.iter().map(|run| run.at.as_secs()).collect();
        assert_eq!(seconds, [3_600, 3_615, 10_815, 10_816]);
    }
}
