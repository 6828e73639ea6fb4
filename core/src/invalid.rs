use alloc::string::String;
use core::ops::RangeInclusive;
use core::time::Duration;

use thiserror::Error;

use crate::Backoff;

const LEASES_MS: RangeInclusive<u64> = 1_000..=86_400_000;

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

impl Invalid {
    /// Checks a number of things, of which there may be 1 to `most`.
    pub fn count(what: &'static str, count: usize, most: usize) -> Result<(), Invalid> {
        if (1..=most).contains(&count) { Ok(()) } else { Err(Invalid::Count { what, count, most }) }
    }

    /// Checks the length of a lease.
    pub fn lease(ms: u64) -> Result<(), Invalid> {
        if LEASES_MS.contains(&ms) { Ok(()) } else { Err(Invalid::Lease(Duration::from_millis(ms))) }
    }
}
