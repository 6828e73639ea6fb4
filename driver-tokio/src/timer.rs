use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A timer of the operating system, on the clock that goes on while the machine is suspended. It rings within some 0.1 ms;
/// tokio's timers, which are of whole milliseconds and wait in whole milliseconds, ring up to two later.
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// Needs a runtime around it.
    #[expect(deprecated, reason = "what took its place is unsafe, and asks for what an owned descriptor is")]
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Timer(AsyncFd::new(timerfd_create(TimerfdClockId::Boottime, flags)?)?))
    }

    /// When it is to ring, or never; what it rang before is forgotten.
    pub(crate) fn set(&self, at: Option<Duration>) {
        // Zero would be never.
        let at = at.map_or(Duration::ZERO, |at| at.max(Duration::from_nanos(1)));
        let it_value = Timespec {
            tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        // It fails only for what this is not: another kind of descriptor, or a time that is none.
        let _ = timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value });
    }

    pub(crate) async fn rings(&self) {
        while let Ok(mut ready) = self.0.readable().await {
            let mut count = [0; 8];
            match ready.try_io(|timer| Ok(rustix::io::read(timer, &mut count)?)) {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => tracing::error!(%error, "a timer cannot be read"),
                Err(_) => {}
            }
        }
        // The runtime ends.
        std::future::pending::<()>().await;
    }
}
