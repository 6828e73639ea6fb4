use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use delayline_core::Lease;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::door::{Door, Draft, Taken, Told};
use super::history::{Answer, Asked, Call, End, Run, Story, now};
use super::plan::LEASE;
use super::worker::Order;
use crate::Random;

/// The queue of the worker processes.
pub(super) const WORKED: &str = "worked";
/// The queue from which jobs are taken.
pub(super) const TAKEN: &str = "taken";
/// The longest delay, run, backoff and snooze, in ms.
pub(super) const LONGEST: [u64; 4] = [4_000, 4_500, 600, 500];

const PACE: Duration = Duration::from_millis(12);
const AT_ONCE: usize = 300;
const TAKERS: usize = 3;
const AGAIN: Duration = Duration::from_millis(150);
const CHANGES_TRIED: usize = 20;
const SETTLES_TRIED: usize = 6;

/// What clients and consumers of this process have seen.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) jobs: BTreeMap<String, Story>,
    pub(super) runs: Vec<Run>,
    pub(super) oddities: Vec<String>,
}

/// Publishers, those who change their minds, and takers, over two doors.
#[derive(Clone)]
pub(super) struct Load {
    doors: [Door; 2],
    record: Arc<Mutex<Record>>,
    is_over: Arc<AtomicBool>,
}

/// A job that a client has in mind.
struct Wish {
    draft: Draft,
    /// What it asks for once the job is accepted, and how long after that.
    change: Option<(Asked, Duration)>,
}

impl Load {
    pub(super) fn new(doors: [Door; 2]) -> Load {
        Load { doors, record: Arc::default(), is_over: Arc::default() }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes until `is_over`, and then until all is answered; whoever gets no answer within `patience` gives up.
    pub(super) async fn publish(self, mut random: Random, is_over: Arc<AtomicBool>, patience: Duration) {
        let (room, mut clients) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
        for number in 0_u32.. {
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            let wish = wish(number, &mut random);
            let door = self.doors[usize::from(random.percent(40))].clone();
            let (load, room) = (self.clone(), room.clone());
            let permit = room.acquire_owned().await.expect("it stays open");
            clients.spawn(async move {
                load.live(&door, wish).await;
                drop(permit);
            });
            while clients.try_join_next().is_some() {}
            sleep(PACE).await;
        }
        let answered = async { while clients.join_next().await.is_some() {} };
        if timeout(patience, answered).await.is_err() {
            self.odd(format!("clients were not answered within {patience:?} after the last fault"));
        }
    }

    /// Takes until [`end`](Load::end).
    pub(super) async fn take(self, random: Random) {
        let mut takers = JoinSet::new();
        for number in 0..TAKERS {
            let (load, door) = (self.clone(), self.doors[usize::from(number > 0)].clone());
            takers.spawn(load.take_on(door, format!("taker-{number}"), random.clone()));
        }
        while takers.join_next().await.is_some() {}
    }

    /// Takers are to stop.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    async fn live(&self, door: &Door, wish: Wish) {
        let Wish { draft, change } = wish;
        let Draft { queue, id, delay, attempts, backoff, ttl, order } = draft.clone();
        let story = Story {
            queue: queue.clone(),
            attempts,
            backoff,
            ttl,
            fails: order.fails,
            end: order.end,
            calls: Vec::new(),
        };
        self.record().jobs.insert(id.clone(), story);
        while !self.call(&id, Asked::Publish(delay), door.publish(&draft)).await {
            sleep(AGAIN).await;
        }
        let Some((asked, after)) = change else { return };
        sleep(after).await;
        for _ in 0..CHANGES_TRIED {
            let known = match asked {
                Asked::Reschedule(delay) => self.call(&id, asked, door.reschedule(&queue, &id, delay)).await,
                _ => self.call(&id, asked, door.cancel(&queue, &id)).await,
            };
            if known {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    /// Makes a call and writes it down; whether it is known what became of it.
    async fn call(&self, id: &str, what: Asked, call: impl Future<Output = Told>) -> bool {
        let from = now();
        let told = call.await;
        let to = now();
        let answer = told.unwrap_or_else(|odd| {
            self.odd(format!("{id}: {odd}"));
            Answer::Unknown
        });
        if let Some(story) = self.record().jobs.get_mut(id) {
            story.calls.push(Call { what, from, to, answer });
        }
        !matches!(answer, Answer::Unknown | Answer::NotDone)
    }

    fn odd(&self, what: String) {
        self.record().oddities.push(what);
    }

    async fn take_on(self, door: Door, name: String, mut random: Random) {
        let mut handlers = JoinSet::new();
        while !self.is_over.load(Ordering::SeqCst) {
            match door.take(TAKEN).await {
                Ok(jobs) if jobs.is_empty() => sleep(AGAIN).await,
                Ok(jobs) => {
                    for job in jobs {
                        let forgets = random.percent(5);
                        handlers.spawn(self.clone().handle(door.clone(), name.clone(), job, forgets));
                    }
                }
                Err(odd) => {
                    self.odd(odd);
                    sleep(AGAIN).await;
                }
            }
        }
        while handlers.join_next().await.is_some() {}
    }

    /// Runs a job that was taken, renewing its lease if need be. Who forgets it never says how it ended.
    async fn handle(self, door: Door, consumer: String, job: Taken, forgets: bool) {
        let Taken { lease, attempt, due, ends, published, order } = job;
        let id = lease.id.to_string();
        let delivery = self.begin(Run {
            consumer,
            id: id.clone(),
            published,
            attempt,
            fence: lease.fence.0,
            due,
            granted: ends - LEASE,
            ends,
            began: now(),
            end: None,
        });
        let third = Duration::from_millis(LEASE / 3);
        let mut left = Duration::from_millis(order.ms);
        while left > third {
            sleep(third).await;
            left = left.saturating_sub(third);
            self.call(&id, Asked::Extend(lease.fence.0), door.extend(&lease)).await;
        }
        sleep(left).await;
        if !forgets {
            self.settle(&door, &id, &lease, order.end(attempt, delivery), attempt).await;
        }
    }

    async fn settle(&self, door: &Door, id: &str, lease: &Lease, end: End, attempt: u16) {
        let ended = Some((end, now()));
        let fence = lease.fence.0;
        if let Some(run) = self.record().runs.iter_mut().rfind(|run| run.id == id && run.fence == fence) {
            run.end = ended;
        }
        for _ in 0..SETTLES_TRIED {
            if self.call(id, Asked::Settle(fence, end), door.settle(lease, end, attempt)).await {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    /// Writes the beginning of a run down; which of the job it is.
    fn begin(&self, run: Run) -> u16 {
        let mut record = self.record();
        let before = record.runs.iter().filter(|other| other.id == run.id).count();
        record.runs.push(run);
        u16::try_from(before).unwrap_or(u16::MAX).saturating_add(1)
    }
}

fn wish(number: u32, random: &mut Random) -> Wish {
    let [longest_delay, longest_run, longest_backoff, snooze] = LONGEST;
    let mut order = Order { ms: random.number(1..=80), fails: 0, end: End::Done };
    let mut delay = if random.percent(40) { 0 } else { random.number(1..=3_000) };
    let (mut attempts, mut ttl, mut change) = (50, None, None);
    let soon = Duration::from_millis(random.number(0..=2_000));
    match random.number(0..=99) {
        0..=11 => order.fails = if random.percent(50) { 1 } else { 2 },
        12..=16 => (order.fails, attempts) = (999, 3),
        17..=20 => order.end = End::Buried,
        21..=25 => order.end = End::Snoozed(random.number(50..=snooze)),
        26..=35 => (delay, change) = (random.number(1_000..=longest_delay), Some((Asked::Cancel, soon))),
        36..=45 => {
            let later = random.number(100..=longest_delay);
            (delay, change) = (random.number(1_000..=longest_delay), Some((Asked::Reschedule(later), soon)));
        }
        46..=51 => {
            delay = random.number(0..=1_000);
            ttl = Some(random.number(1_000..=4_000));
        }
        52..=58 => order.ms = random.number(1_000..=longest_run),
        _ => {}
    }
    let queue = if random.percent(60) { WORKED } else { TAKEN }.to_string();
    let backoff = random.number(100..=longest_backoff);
    Wish {
        draft: Draft { queue, id: format!("job-{number:06}"), delay, attempts, backoff, ttl, order },
        change,
    }
}
