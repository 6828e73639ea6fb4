//! A time that stands still until a test lets it pass, and what engines and handlers do meanwhile.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use delayline_core::{Job as Delivery, QueueName, SettleOutcome, UnixMs, Verdict};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::codec::Coder;
use crate::inbox::Signal;
use crate::link::lock;

/// Nothing fails in a test, so engines look again as seldom as they may: thirty days take a few dozen turns.
pub(crate) const POLL_MS: u64 = 86_400_000;
pub(crate) const PUMP_LEASE_MS: u64 = 86_400_000;

/// The time, for all engines of a test.
pub(crate) struct HeldTime {
    now: AtomicU64,
    /// Grows whenever an engine begins or ends a turn in which it did something.
    activity: AtomicU64,
    seats: Mutex<Vec<Sitter>>,
    journal: Mutex<Journal>,
    /// A handler has ended.
    eased: Notify,
    known: Mutex<Vec<Known>>,
}

/// A queue that somebody has named, and how its jobs are read.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) queue: QueueName,
    pub(crate) coder: Arc<dyn Any + Send + Sync>,
}

/// An engine's place: when it wants to be woken.
pub(crate) struct Seat {
    next: Arc<Mutex<Option<UnixMs>>>,
    wake: Arc<Notify>,
}

/// An engine, seen from outside.
struct Sitter {
    next: Arc<Mutex<Option<UnixMs>>>,
    wake: Arc<Notify>,
    signals: mpsc::UnboundedSender<Signal>,
}

/// What handlers ran.
#[derive(Default)]
struct Journal {
    numbers: u64,
    runs: BTreeMap<u64, Entry>,
    running: BTreeMap<u64, String>,
    /// The runs that were settled, and not looked at since.
    settled: Vec<u64>,
    latest: String,
}

/// One run of a handler.
pub(crate) struct Entry {
    pub(crate) delivery: Delivery,
    pub(crate) at: UnixMs,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) outcome: Option<SettleOutcome>,
    /// When the job is due again, once that was looked up.
    pub(crate) next: Option<UnixMs>,
}

impl HeldTime {
    pub(crate) fn new(now: UnixMs) -> HeldTime {
        HeldTime {
            now: AtomicU64::new(now.0),
            activity: AtomicU64::new(0),
            seats: Mutex::default(),
            journal: Mutex::default(),
            eased: Notify::new(),
            known: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> UnixMs {
        UnixMs(self.now.load(Ordering::Acquire))
    }

    pub(crate) fn seat(&self, signals: mpsc::UnboundedSender<Signal>) -> Seat {
        let (next, wake) = (Arc::default(), Arc::default());
        lock(&self.seats).push(Sitter { next: Arc::clone(&next), wake: Arc::clone(&wake), signals });
        Seat { next, wake }
    }

    /// Somebody has named this queue.
    pub(crate) fn know<T: 'static>(&self, queue: &QueueName, coder: &Coder<T>) {
        let mut known = lock(&self.known);
        if !known.iter().any(|known| known.queue == *queue && known.coder.is::<Coder<T>>()) {
            known.push(Known { queue: queue.clone(), coder: Arc::new(coder.clone()) });
        }
    }

    /// The queues that were named.
    pub(crate) fn known(&self) -> Vec<Known> {
        lock(&self.known).clone()
    }

    /// A number that takes the place of a random one, the same in each run.
    pub(crate) fn draw(&self) -> u64 {
        let mut journal = lock(&self.journal);
        journal.numbers += 1;
        journal.numbers.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn stir(&self) {
        self.activity.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn activity(&self) -> u64 {
        self.activity.load(Ordering::Acquire)
    }

    /// When the first engine wants to be woken.
    pub(crate) fn next(&self) -> Option<UnixMs> {
        lock(&self.seats).iter().filter_map(|sitter| *lock(&sitter.next)).min()
    }

    /// It is now this time, and whoever waited for it knows.
    pub(crate) fn set(&self, now: UnixMs) {
        self.now.fetch_max(now.0, Ordering::AcqRel);
        for sitter in &*lock(&self.seats) {
            if lock(&sitter.next).is_some_and(|next| next <= now) {
                sitter.wake.notify_one();
            }
        }
    }

    /// Asks every engine to say when it has nothing more to do; those that have ended are forgotten.
    pub(crate) fn ask_all(&self) -> Vec<oneshot::Receiver<()>> {
        let mut asked = Vec::new();
        lock(&self.seats).retain(|sitter| {
            let (idle, is_idle) = oneshot::channel();
            let is_there = sitter.signals.send(Signal::Idle(idle)).is_ok();
            if is_there {
                asked.push(is_idle);
            }
            is_there
        });
        asked
    }

    /// A handler begins.
    pub(crate) fn begin(&self, delivery: &Delivery) -> u64 {
        let mut journal = lock(&self.journal);
        journal.numbers += 1;
        let number = journal.numbers;
        let name = format!("job {} of queue {}", delivery.lease.id, delivery.lease.queue);
        journal.latest.clone_from(&name);
        journal.running.insert(number, name);
        let entry =
            Entry { delivery: delivery.clone(), at: self.now(), verdict: None, outcome: None, next: None };
        journal.runs.insert(number, entry);
        number
    }

    /// A handler has ended; its verdict is on its way.
    pub(crate) fn end(&self, number: u64) {
        lock(&self.journal).running.remove(&number);
        self.eased.notify_one();
    }

    pub(crate) fn judged(&self, number: u64, verdict: &Verdict) {
        if let Some(entry) = lock(&self.journal).runs.get_mut(&number) {
            entry.verdict = Some(verdict.clone());
        }
    }

    pub(crate) fn settled(&self, number: u64, outcome: SettleOutcome) {
        let mut journal = lock(&self.journal);
        if let Some(entry) = journal.runs.get_mut(&number) {
            entry.outcome = Some(outcome);
            journal.settled.push(number);
        }
    }

    /// The handlers that run now.
    pub(crate) fn running(&self) -> Vec<String> {
        lock(&self.journal).running.values().cloned().collect()
    }

    pub(crate) fn eased(&self) -> impl Future<Output = ()> + '_ {
        self.eased.notified()
    }

    /// The job that was begun last.
    pub(crate) fn latest(&self) -> String {
        lock(&self.journal).latest.clone()
    }

    /// Looks at each run that was settled since it was last called.
    pub(crate) fn look_up(&self, mut look_up: impl FnMut(&Delivery) -> UnixMs) {
        let mut journal = lock(&self.journal);
        for number in std::mem::take(&mut journal.settled) {
            if let Some(entry) = journal.runs.get_mut(&number) {
                entry.next = Some(look_up(&entry.delivery));
            }
        }
    }

    /// The runs that have ended, and are not told again.
    pub(crate) fn take_runs(&self) -> Vec<Entry> {
        let mut journal = lock(&self.journal);
        let Journal { runs, running, .. } = &mut *journal;
        let (still, ended) = std::mem::take(runs).into_iter().partition(|(run, _)| running.contains_key(run));
        *runs = still;
        BTreeMap::into_values(ended).collect()
    }
}

impl Seat {
    pub(crate) fn set(&self, at: Option<UnixMs>) {
        *lock(&self.next) = at;
    }

    pub(crate) async fn rings(&self) {
        self.wake.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.set(None);
    }
}
