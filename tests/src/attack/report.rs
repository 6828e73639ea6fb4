use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::good::Seen;
use super::{Attack, State};

/// The most memory that a service may take, whatever is done to it.
const MOST_KIB: u64 = 300 << 10;
/// Of so many jobs one may stay leased to a client that had not been answered when it left: its answer was just being sent.
const SENT_TO_NOBODY: u64 = 100;

/// What attackers were told.
#[derive(Debug, Default)]
pub struct Tally {
    statuses: Mutex<BTreeMap<u16, u64>>,
    closed: AtomicU64,
    held: AtomicU64,
    taken: AtomicU64,
    next: AtomicU64,
    metrics: AtomicUsize,
}

/// What came of an attack.
#[derive(Debug)]
pub struct Report {
    attack: Attack,
    limit: u64,
    pub(super) good: Seen,
    pub(super) before: State,
    pub(super) during: State,
    pub(super) after: State,
    pub(super) most_kib: u64,
    /// How long after the attack all was as before.
    pub(super) back: Option<Duration>,
    /// How many jobs stay leased to clients that have left.
    pub(super) left_leased: Result<u64, String>,
    pub(super) told: Arc<Tally>,
}

impl Tally {
    pub(super) fn answered(&self, status: u16) {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        *statuses.entry(status).or_default() += 1;
    }

    pub(super) fn closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// It still waited at the end.
    pub(super) fn held(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// So many jobs were handed out in time to clients that did not look.
    pub(super) fn taken(&self, count: usize) {
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn jobs_taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    pub(super) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn metrics(&self, length: usize) {
        self.metrics.fetch_max(length, Ordering::Relaxed);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.iter().try_for_each(|(status, count)| write!(f, "{count} × {status}, "))?;
        let [closed, held] = [&self.closed, &self.held].map(|count| count.load(Ordering::Relaxed));
        write!(f, "{closed} closed, {held} held")?;
        match self.jobs_taken() {
            0 => {}
            taken => write!(f, ", {taken} jobs in time")?,
        }
        match self.metrics.load(Ordering::Relaxed) {
            0 => Ok(()),
            metrics => write!(f, ", /metrics {} KiB", metrics >> 10),
        }
    }
}

impl Report {
    pub(super) fn new(attack: Attack, limit: u64) -> Report {
        let none = State::default();
        Report {
            attack,
            limit,
            good: Seen::default(),
            before: none,
            during: none,
            after: none,
            most_kib: 0,
            back: None,
            left_leased: Ok(0),
            told: Arc::default(),
        }
    }

    /// The first line of a table, whose other lines are reports.
    pub const HEAD: &str = "attack           descriptors  good  failed   p50 ms   p99 ms   max ms  idle p99  RSS MiB: before, most, after  \
                            back s  leased  attackers were told";

    /// What must not be, whatever the machine is like.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if let [first, ..] = &self.good.failures[..] {
            let count = self.good.failures.len();
            wrong.push(format!("{count} jobs of the good client failed, first: {first}"));
        }
        if self.most_kib > MOST_KIB {
            wrong.push(format!("the service took {} MiB", self.most_kib >> 10));
        }
        if self.back.is_none() {
            let (before, after) = (self.before, self.after);
            wrong.push(format!("not back to the start: {before:?} before, {after:?} after"));
        }
        let answered =
            self.told.statuses.lock().unwrap_or_else(PoisonError::into_inner).values().sum::<u64>();
        let taken = self.told.jobs_taken();
        if self.left_leased.as_ref().map_or(true, |left| *left > taken + 1 + answered / SENT_TO_NOBODY) {
            let left = &self.left_leased;
            wrong.push(format!(
                "jobs stay leased to clients that have left: {left:?}, of which {taken} were told in time"
            ));
        }
        wrong
    }

    /// Says so if more than one in a hundred of the good client's requests took longer; and what an idle server took.
    pub fn slower_than(&self, limit: Duration) -> Option<String> {
        let [p99, idle] = [&self.good.took, &self.good.idle].map(|times| times.percentile(99));
        let slow = p99.is_none_or(|p99| p99 > limit);
        slow.then(|| {
            format!("the good client's p99 is {p99:?}, more than {limit:?}; an idle server's {idle:?}")
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (good, name) = (&self.good, format!("{:?}", self.attack));
        write!(f, "{name:<15}  {:>11}  {:>4}  {:>6}", self.limit, good.took.len(), good.failures.len())?;
        let ms = |took: Option<Duration>| took.map_or(f64::NAN, |took| took.as_secs_f64() * 1e3);
        for hundredth in [50, 99, 100] {
            write!(f, "  {:>7.1}", ms(good.took.percentile(hundredth)))?;
        }
        write!(f, "  {:>8.1}", ms(good.idle.percentile(99)))?;
        let [before, most, after] = [self.before.kib, self.most_kib, self.after.kib].map(|kib| kib >> 10);
        let back = self.back.map_or("never".to_owned(), |back| format!("{:.1}", back.as_secs_f64()));
        let left = self.left_leased.as_ref().map_or("?".to_owned(), u64::to_string);
        write!(f, "  {before:>15}, {most:>4}, {after:>5}  {back:>6}  {left:>6}  {}", self.told)
    }
}
