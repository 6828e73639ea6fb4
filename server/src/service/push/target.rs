use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

use super::circuit::{Circuit, Health, Pass, Shut, State};
use super::turns::Turns;
use super::{metrics, state::TargetState};

/// How far ahead jobs are taken for turns that a rate allows.
const AHEAD: Duration = Duration::from_millis(500);
/// The longest that one `Retry-After` holds a target back.
const HELD_LONGEST: Duration = Duration::from_secs(3_600);
/// How many targets that nobody uses are remembered.
const IDLE_TARGETS: usize = 4_096;

/// Scheme, host and port: what is sent there, and how it does.
pub(super) struct Target {
    origin: String,
    inner: Mutex<Inner>,
    /// Somebody who waits may go on: a request has ended, or the target is no longer held back.
    freed: Notify,
    /// The target is held back from now on.
    held: Notify,
}

struct Inner {
    circuit: Circuit,
    turns: Turns,
    /// By its own `Retry-After`.
    held_until: Option<Instant>,
    in_flight: u32,
    last_failure: Option<(SystemTime, String)>,
}

/// What a queue allows of each of its targets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// The most requests at once.
    pub(super) concurrency: u32,
    /// The time from one request to the next.
    pub(super) interval: Option<Duration>,
}

/// How many requests may be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// So many now.
    For(u32),
    /// None before then.
    At(Instant),
    /// None before another has ended.
    WhenFreed,
}

/// Why a request may not be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    /// There are as many as may be.
    Full,
    /// The target is held back; until then, if that is known.
    Held(Option<Instant>),
}

/// A request to a target; it has ended when this is dropped.
pub(super) struct Entry {
    target: Arc<Target>,
    pass: Option<Pass>,
    /// When its turn is.
    pub(super) turn: Instant,
}

impl Target {
    fn new(origin: String) -> Target {
        let inner = Inner {
            circuit: Circuit::new(),
            turns: Turns::default(),
            held_until: None,
            in_flight: 0,
            last_failure: None,
        };
        Target { origin, inner: Mutex::new(inner), freed: Notify::new(), held: Notify::new() }
    }

    /// How many requests may be begun now.
    pub(super) fn room(&self, allowance: &Allowance, now: Instant) -> Room {
        let inner = self.inner();
        match inner.shut(now) {
            Err(Shut::Until(until)) => return Room::At(until),
            Err(Shut::Probing) => return Room::WhenFreed,
            Ok(()) => {}
        }
        let free = allowance.concurrency.saturating_sub(inner.in_flight);
        // Others of the same target may still be on their way from before it was held back.
        let free = if inner.circuit.is_to_probe() { free.min(1) } else { free };
        if free == 0 {
            return Room::WhenFreed;
        }
        match allowance.interval.map(|interval| inner.turns.within(AHEAD, interval, now)) {
            None => Room::For(free),
            Some(0) => Room::At(inner.turns.next(now)),
            Some(turns) => Room::For(free.min(turns)),
        }
    }

    /// Begins a request, if one may be begun.
    pub(super) fn enter(self: &Arc<Target>, allowance: &Allowance, now: Instant) -> Result<Entry, Busy> {
        let mut inner = self.inner();
        let held = |shut| match shut {
            Shut::Until(until) => Busy::Held(Some(until)),
            Shut::Probing => Busy::Held(None),
        };
        inner.shut(now).map_err(held)?;
        if inner.in_flight >= allowance.concurrency {
            return Err(Busy::Full);
        }
        let pass = inner.circuit.enter(now).map_err(held)?;
        inner.in_flight += 1;
        let turn = allowance.interval.map_or(now, |interval| inner.turns.take(interval, now));
        metrics::begun();
        Ok(Entry { target: Arc::clone(self), pass: Some(pass), turn })
    }

    /// Ends when a request may be begun that could not be before; call [`room`](Target::room) or
    /// [`enter`](Target::enter) after this future was made.
    pub(super) fn freed(&self) -> impl Future<Output = ()> + Send + '_ {
        self.freed.notified()
    }

    /// Ends when the target is held back.
    pub(super) fn held(&self) -> impl Future<Output = ()> + Send + '_ {
        self.held.notified()
    }

    /// What is known of it.
    pub(super) fn state(&self, now: Instant) -> TargetState {
        let inner = self.inner();
        let wall = |at: Instant| SystemTime::now() + at.saturating_duration_since(now);
        let (circuit, until) = match (inner.circuit.state(), inner.held_until.filter(|until| *until > now)) {
            (State::Open { until }, _) => ("open", Some(until)),
            (State::Probing, _) => ("half_open", None),
            (State::Closed, held) => ("closed", held),
        };
        let failed = inner.last_failure.clone();
        TargetState::new(&self.origin, circuit, until.map(wall), inner.in_flight, failed)
    }

    fn is_idle(&self) -> bool {
        let inner = self.inner();
        inner.in_flight == 0 && !inner.circuit.is_to_probe() && inner.held_until.is_none()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn shut(&self, now: Instant) -> Result<(), Shut> {
        match self.held_until {
            Some(until) if until > now => Err(Shut::Until(until)),
            _ => self.circuit.check(now),
        }
    }
}

impl Entry {
    pub(super) fn target(&self) -> Arc<Target> {
        Arc::clone(&self.target)
    }

    /// The request has ended so. With `hold`, nothing else is sent to the target for so long. Answers whether the target
    /// was held back by that, or is no longer.
    pub(super) fn end(mut self, health: Health, why: Option<&str>, hold: Option<Duration>) -> bool {
        let now = Instant::now();
        let mut inner = self.target.inner();
        if let Some(why) = why {
            inner.last_failure = Some((SystemTime::now(), why.to_owned()));
        }
        let pass = self.pass.take();
        let was_held = inner.held_until.is_some_and(|until| until > now);
        let circuit = pass.is_some_and(|pass| inner.circuit.end(&pass, health, now, random()));
        if let Some(hold) = hold {
            let until = now + hold.min(HELD_LONGEST);
            inner.held_until = Some(inner.held_until.map_or(until, |held| held.max(until)));
        }
        let is_open = inner.circuit.state() != State::Closed;
        drop(inner);
        if circuit {
            metrics::circuit(&self.target.origin, is_open);
            let origin = &self.target.origin;
            if is_open {
                // Why may hold what the target answered, which belongs in no log.
                tracing::warn!(%origin, "pushes are held back: the target fails");
            } else {
                tracing::info!(%origin, "pushes go on: the target answers again");
            }
        }
        if hold.is_some() || (circuit && is_open) {
            self.target.held.notify_waiters();
        }
        circuit || (hold.is_some() && !was_held)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut inner = self.target.inner();
        inner.in_flight = inner.in_flight.saturating_sub(1);
        if let Some(pass) = self.pass.take() {
            inner.circuit.end(&pass, Health::Unknown, Instant::now(), 1.0);
        }
        drop(inner);
        metrics::ended();
        self.target.freed.notify_waiters();
    }
}

/// A number of 0 to 1, from the operating system's randomness by way of the standard library's hash maps.
#[allow(clippy::cast_precision_loss)] // of that precision nothing is needed
fn random() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

/// All targets of this process.
#[derive(Default)]
pub(super) struct Targets(Mutex<HashMap<String, Arc<Target>>>);

impl Targets {
    /// The target of this origin.
    pub(super) fn of(&self, origin: &str) -> Arc<Target> {
        let mut targets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = targets.get(origin) {
            return Arc::clone(target);
        }
        if targets.len() >= IDLE_TARGETS {
            targets.retain(|_, target| Arc::strong_count(target) > 1 || !target.is_idle());
        }
        let target = Arc::new(Target::new(origin.to_owned()));
        targets.insert(origin.to_owned(), Arc::clone(&target));
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::push::circuit::FAILURES;

    const ALLOWANCE: Allowance = Allowance { concurrency: 3, interval: None };

    fn target() -> Arc<Target> {
        Targets::default().of("https://a.example")
    }

    #[test]
    fn there_is_room_for_as_many_as_may_be() {
        let (target, now) = (target(), Instant::now());
        assert_eq!(target.room(&ALLOWANCE, now), Room::For(3));
        let entries: Vec<Entry> = (0..3).map(|_| target.enter(&ALLOWANCE, now).unwrap()).collect();
        assert_eq!(target.room(&ALLOWANCE, now), Room::WhenFreed);
        assert_eq!(target.enter(&ALLOWANCE, now).err(), Some(Busy::Full));
        drop(entries);
        assert_eq!(target.room(&ALLOWANCE, now), Room::For(3));
    }

    #[test]
    fn a_rate_gives_room_for_its_turns() {
        let (target, now) = (target(), Instant::now());
        let slow = Allowance { interval: Some(Duration::from_millis(400)), ..ALLOWANCE };
        assert_eq!(target.room(&slow, now), Room::For(2));
        let turns = [(); 2].map(|()| target.enter(&slow, now).unwrap().turn);
        assert_eq!(turns, [now, now + Duration::from_millis(400)]);
        assert_eq!(target.room(&slow, now), Room::At(now + Duration::from_millis(800)));
        assert_eq!(target.room(&ALLOWANCE, now), Room::For(3));
    }

    #[test]
    fn a_target_that_fails_is_held_back_and_then_probed() {
        let (target, now) = (target(), Instant::now());
        for _ in 0..FAILURES {
            target.enter(&ALLOWANCE, now).unwrap().end(Health::Failed, Some("answered 500"), None);
        }
        let Room::At(until) = target.room(&ALLOWANCE, now) else { panic!("not held back") };
        assert_eq!(target.enter(&ALLOWANCE, now).err(), Some(Busy::Held(Some(until))));
        assert_eq!(target.room(&ALLOWANCE, until), Room::For(1));
        let probe = target.enter(&ALLOWANCE, until).unwrap();
        assert_eq!(target.enter(&ALLOWANCE, until).err(), Some(Busy::Held(None)));
        assert!(probe.end(Health::Alive, None, None));
        assert_eq!(target.room(&ALLOWANCE, until), Room::For(3));
    }

    #[test]
    fn a_retry_after_holds_back_whatever_else_is_so() {
        let (target, now) = (target(), Instant::now());
        let hold = Some(Duration::from_secs(5));
        assert!(target.enter(&ALLOWANCE, now).unwrap().end(Health::Alive, None, hold));
        let Room::At(until) = target.room(&ALLOWANCE, now) else { panic!("not held back") };
        assert!(until >= now + Duration::from_secs(5));
        assert_eq!(target.room(&ALLOWANCE, until), Room::For(3));
    }
}
