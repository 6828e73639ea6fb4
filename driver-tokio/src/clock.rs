use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_core::{Millis, UnixMs};
use tokio::time::{Instant, Sleep};

use crate::held::{HeldTime, Seat};

/// An engine's clock: monotone, and going on while the machine is suspended, where the operating system has one.
///
/// Leases end in Redis whether this machine is awake or not: a clock that stands still in sleep would think that it
/// still holds them.
#[derive(Clone)]
pub(crate) enum Clock {
    Running { origin: Duration },
    Held { time: Arc<HeldTime>, origin: UnixMs },
}

impl Clock {
    pub(crate) fn start(held: Option<Arc<HeldTime>>) -> Clock {
        match held {
            Some(time) => Clock::Held { origin: time.now(), time },
            None => Clock::Running { origin: reading() },
        }
    }

    pub(crate) fn now(&self) -> Millis {
        match self {
            Clock::Running { origin } => {
                let elapsed = reading().saturating_sub(*origin);
                Millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
            }
            Clock::Held { time, origin } => Millis(time.now().since(*origin)),
        }
    }

    /// What the future answers, unless it takes longer. A test's engine always answers, by the time that the test holds.
    pub(crate) async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        match self {
            Clock::Running { .. } => tokio::time::timeout(limit, future).await.ok(),
            Clock::Held { .. } => Some(future.await),
        }
    }
}

/// The wall clock, or what stands for it.
pub(crate) fn wall(held: Option<&HeldTime>) -> SystemTime {
    held.map_or_else(SystemTime::now, |time| UNIX_EPOCH + Duration::from_millis(time.now().0))
}

/// Wakes an engine's task at a time.
pub(crate) enum Alarm {
    #[cfg(target_os = "linux")]
    Exact(crate::timer::Timer, Duration),
    Running(Pin<Box<Sleep>>, Clock),
    Held(Seat, UnixMs),
}

impl Alarm {
    /// To be called where it will ring: a timer belongs to a runtime.
    pub(crate) fn new(clock: &Clock, seat: Option<Seat>) -> Alarm {
        #[cfg(target_os = "linux")]
        if let (Clock::Running { origin }, Ok(timer)) = (clock, crate::timer::Timer::new()) {
            return Alarm::Exact(timer, *origin);
        }
        match (clock, seat) {
            (Clock::Held { origin, .. }, Some(seat)) => Alarm::Held(seat, *origin),
            _ => Alarm::Running(Box::pin(tokio::time::sleep(Duration::ZERO)), clock.clone()),
        }
    }

    /// When it should ring; whoever wakes reads the clock again.
    pub(crate) fn set(&mut self, at: Option<Millis>) {
        match self {
            #[cfg(target_os = "linux")]
            Alarm::Exact(timer, origin) => timer.set(at.map(|at| *origin + Duration::from_millis(at.0))),
            Alarm::Running(sleep, clock) => {
                let wait = at.map_or(u64::MAX, |at| at.since(clock.now()));
                sleep.as_mut().reset(Instant::now() + Duration::from_millis(wait.min(86_400_000)));
            }
            Alarm::Held(seat, origin) => seat.set(at.map(|at| *origin + at.0)),
        }
    }

    pub(crate) async fn rings(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Alarm::Exact(timer, _) => timer.rings().await,
            Alarm::Running(sleep, _) => sleep.as_mut().await,
            Alarm::Held(seat, _) => seat.rings().await,
        }
    }
}

#[cfg(target_os = "linux")]
fn reading() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn reading() -> Duration {
    static ORIGIN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    ORIGIN.elapsed()
}
