use std::time::Duration;

use delayline_core::{Backoff, DELAY_MAX_MS, QueueConfig, Verdict};
use thiserror::Error;

const TEN_YEARS: Duration = Duration::from_millis(DELAY_MAX_MS);
const LOST_DELAY_MAX: Duration = Duration::from_millis(99_999_999);
const RUNGS_MAX: usize = 64;

/// An option that has a value it cannot have. The messages say what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Invalid {
    /// A job would be due too late.
    #[error("a delay of {0:?} is over the limit of 10 years: publish the job later, from another job")]
    Delay(Duration),
    /// A job would expire before it is due.
    #[error("a job that is due in {delay:?} and expires after {ttl:?} would never run: make the ttl longer")]
    Ttl {
        /// When it would expire.
        ttl: Duration,
        /// When it would be due.
        delay: Duration,
    },
    /// A time to live is too long.
    #[error("a ttl of {0:?} is over the limit of 10 years: leave it out for a job that never expires")]
    TtlTooLong(Duration),
    /// A job would never run, or too often.
    #[error("{0} attempts are out of range: ask for 1 to 999, or leave them to the queue")]
    Attempts(u16),
    /// A job without an id is to replace another.
    #[error("a job without an id can replace none: give it the id of the job whose place it is to take")]
    ReplaceWithoutId,
    /// A lost delivery would wait too long.
    #[error("a delay of {0:?} after a lost lease is over the limit of 99999.999 s: make it shorter")]
    LostDelay(Duration),
    /// A backoff makes no sense.
    #[error("the backoff {backoff:?} cannot be used: {why}")]
    Backoff {
        /// Which.
        backoff: Backoff,
        /// What is wrong with it, and what to do.
        why: &'static str,
    },
    /// A retry, a snooze or a retention is too long.
    #[error("a {what} of {length:?} is over the limit of 10 years: make it shorter")]
    TooLong {
        /// What.
        what: &'static str,
        /// How long.
        length: Duration,
    },
    /// Too many or too few at once.
    #[error("{count} is no {what}: ask for 1 to {most}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// How many were asked for.
        count: usize,
        /// The most.
        most: usize,
    },
    /// A take would wait too long.
    #[error("a take cannot wait {0:?}: wait 5 minutes at most, then take again")]
    Wait(Duration),
    /// A lease is too short or too long.
    #[error(
        "a lease cannot last {0:?}: ask for 1 s to 24 h; a worker renews its leases for as long as it takes"
    )]
    Lease(Duration),
    /// Too many hours of a forecast.
    #[error("{0} hours are too many: ask for 48 at most")]
    Hours(u8),
    /// A take, or a worker, has no queue.
    #[error("no queue is named: name at least one")]
    NoQueue,
    /// A queue is named more than once.
    #[error("queue {0} is named twice: name it once")]
    QueueTwice(String),
    /// A worker is given a queue of another deployment.
    #[error(
        "queue {0} is of a client of another deployment than the worker's: make both with the same client"
    )]
    OtherClient(String),
    /// A cursor is not of this list.
    #[error("the cursor is not of this list: pass it as the page before answered it, or begin without one")]
    Cursor,
    /// A worker is run, or a test's client made, outside of a tokio runtime.
    #[error("there is no tokio runtime to run on: call this within one")]
    NoRuntime,
}

pub(crate) fn delay(delay: Duration) -> Result<(), Invalid> {
    if delay > TEN_YEARS { Err(Invalid::Delay(delay)) } else { Ok(()) }
}

pub(crate) fn ttl(ttl: Duration, delay: Duration) -> Result<(), Invalid> {
    match ttl {
        ttl if ttl < delay || ttl.is_zero() => Err(Invalid::Ttl { ttl, delay }),
        ttl if ttl > TEN_YEARS => Err(Invalid::TtlTooLong(ttl)),
        _ => Ok(()),
    }
}

pub(crate) fn attempts(attempts: u16) -> Result<(), Invalid> {
    if (1..=999).contains(&attempts) { Ok(()) } else { Err(Invalid::Attempts(attempts)) }
}

pub(crate) fn lost_delay(delay: Duration) -> Result<(), Invalid> {
    if delay > LOST_DELAY_MAX { Err(Invalid::LostDelay(delay)) } else { Ok(()) }
}

pub(crate) fn length(what: &'static str, length: Duration) -> Result<(), Invalid> {
    if length > TEN_YEARS { Err(Invalid::TooLong { what, length }) } else { Ok(()) }
}

pub(crate) fn verdict(verdict: &Verdict) -> Result<(), Invalid> {
    match verdict {
        Verdict::Nack { after_ms: Some(ms), .. } => length("retry delay", Duration::from_millis(*ms)),
        Verdict::Snooze { after_ms } => length("snooze", Duration::from_millis(*after_ms)),
        _ => Ok(()),
    }
}

pub(crate) fn backoff(backoff: &Backoff) -> Result<(), Invalid> {
    let too_long = |ms: u64| Duration::from_millis(ms) > TEN_YEARS;
    let why = match backoff {
        Backoff::Fixed { ms } if too_long(*ms) => "its wait is over 10 years, make it shorter",
        Backoff::Exponential { first_ms: 0, .. } => "its first wait is 0, begin with at least 1 ms",
        Backoff::Exponential { first_ms, cap_ms, .. } if first_ms > cap_ms => {
            "its first wait is longer than its longest, exchange them"
        }
        Backoff::Exponential { cap_ms, .. } if too_long(*cap_ms) => {
            "its longest wait is over 10 years, make it shorter"
        }
        Backoff::Exponential { jitter_percent: 101.., .. } => "its jitter is over 100 %, make it smaller",
        Backoff::Ladder(rungs) if rungs.is_empty() => "it has no rungs, name at least one wait",
        Backoff::Ladder(rungs) if rungs.len() > RUNGS_MAX => {
            "it has more than 64 rungs, leave some out: the last one is repeated"
        }
        Backoff::Ladder(rungs) if rungs.iter().any(|rung| too_long(*rung)) => {
            "a rung is over 10 years, make it shorter"
        }
        _ => return Ok(()),
    };
    Err(Invalid::Backoff { backoff: backoff.clone(), why })
}

pub(crate) fn count(what: &'static str, count: usize, most: usize) -> Result<(), Invalid> {
    if (1..=most).contains(&count) { Ok(()) } else { Err(Invalid::Count { what, count, most }) }
}

pub(crate) fn wait(wait: Duration) -> Result<(), Invalid> {
    if wait > Duration::from_secs(300) { Err(Invalid::Wait(wait)) } else { Ok(()) }
}

pub(crate) fn lease(lease: Duration) -> Result<(), Invalid> {
    let fits = (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&lease);
    if fits { Ok(()) } else { Err(Invalid::Lease(lease)) }
}

pub(crate) fn config(config: &QueueConfig) -> Result<(), Invalid> {
    config.attempts.map_or(Ok(()), attempts)?;
    config.backoff.as_ref().map_or(Ok(()), backoff)?;
    config.retention_ms.map_or(Ok(()), |ms| length("retention", Duration::from_millis(ms)))
}

/// Whole milliseconds, rounded up: nothing is ever early.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
