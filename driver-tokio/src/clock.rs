use std::time::Duration;

use delayline_core::Millis;
use tokio::time::Instant;

/// A monotone clock that goes on while the machine is suspended, where the operating system has one.
///
/// Leases end in Redis whether this machine is awake or not: a clock that stands still in sleep would think that it
/// still holds them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { origin: reading() }
    }

    pub(crate) fn now(self) -> Millis {
        let elapsed = reading().saturating_sub(self.origin);
        Millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    /// When a timer of tokio's should fire; whoever wakes reads the clock again.
    pub(crate) fn instant(self, at: Millis) -> Instant {
        Instant::now() + Duration::from_millis(at.since(self.now()).min(86_400_000))
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
