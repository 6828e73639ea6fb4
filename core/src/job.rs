use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::record::LOST_DELAY_MAX;
use crate::{
    Backoff, Command, Compression, Due, Edit, Entry, Held, Invalid, JobId, Lease, Metadata, QueueName,
    Reason, Record, RecordError, Settlement, Trace, UnixMs,
};

/// The longest delay, lease or TTL: ten years, in milliseconds.
pub const DELAY_MAX_MS: u64 = 10 * 366 * 86_400_000;
/// How many attempts a job may have.
pub const ATTEMPTS: RangeInclusive<u16> = 1..=999;

/// A job to be published.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Where to.
    pub queue: QueueName,
    /// Its name.
    pub id: JobId,
    /// Whether the driver made the name up: then it is drawn anew should it be in use.
    pub generated: bool,
    /// Whether it takes the place of a waiting job of its name, in one step: the effect of a cancel and a publish. Where
    /// the job is held or dead it stays, and the answer is a duplicate. Of a made-up name it says nothing.
    pub replace: bool,
    /// Whether it edits the waiting job of its name: made by [`JobEdit::apply`](crate::JobEdit::apply). Where that is no
    /// longer as it was found nothing changes, and the answer is a duplicate.
    pub edit: Option<Edit>,
    /// When it is due.
    pub due: Due,
    /// When it expires, counted from the call; not shorter than the delay.
    pub ttl_ms: Option<u64>,
    /// The most attempts, 1 to 999; the queue's if not set.
    pub attempts: Option<u16>,
    /// The delay before another attempt; the queue's if not set.
    pub backoff: Option<Backoff>,
    /// How long the job waits after a lease that ended without a verdict; not at all if not set.
    pub lost_delay_ms: Option<u64>,
    /// What the body is.
    pub content_type: Option<String>,
    /// What else its consumer should know.
    pub headers: Vec<(String, String)>,
    /// The trace it belongs to.
    pub trace: Option<Trace>,
    /// The publisher's wall clock.
    pub published: UnixMs,
    /// The payload.
    pub body: Bytes,
    /// Whether it is to wait, as long as the caller does, for a Redis whose memory is full. Otherwise that is answered at
    /// once, by [`NotSent`](crate::Fault::NotSent).
    pub wait_for_memory: bool,
    /// How long the caller waits for an answer.
    pub timeout_ms: u64,
}

/// A body is longer than its publisher allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the body of {bytes} bytes is over the limit of {limit}: store it elsewhere and publish where it is, or raise \
     max_payload"
)]
pub struct TooLarge {
    /// The body's length.
    pub bytes: usize,
    /// The publisher's limit.
    pub limit: usize,
}

impl TooLarge {
    /// Checks a body's length.
    pub fn check(body: &[u8], limit: usize) -> Result<(), TooLarge> {
        let bytes = body.len();
        if bytes > limit { Err(TooLarge { bytes, limit }) } else { Ok(()) }
    }
}

impl NewJob {
    /// A job with no options, due at once, whose caller waits 30 s.
    pub fn new(queue: QueueName, id: JobId, body: Bytes) -> NewJob {
        NewJob {
            queue,
            id,
            generated: false,
            replace: false,
            edit: None,
            due: Due::After { ms: 0 },
            ttl_ms: None,
            attempts: None,
            backoff: None,
            lost_delay_ms: None,
            content_type: None,
            headers: Vec::new(),
            trace: None,
            published: UnixMs(0),
            body,
            wait_for_memory: false,
            timeout_ms: 30_000,
        }
    }

    /// Checks every option, by the publisher's clock.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.due.validate(self.published)?;
        let delay = Duration::from_millis(self.due.distance_ms(self.published));
        match self.ttl_ms.map(Duration::from_millis) {
            Some(ttl) if ttl < delay || ttl.is_zero() => return Err(Invalid::Ttl { ttl, delay }),
            Some(ttl) if ttl > Duration::from_millis(DELAY_MAX_MS) => return Err(Invalid::TtlTooLong(ttl)),
            _ => {}
        }
        if let Some(attempts) = self.attempts.filter(|attempts| !ATTEMPTS.contains(attempts)) {
            return Err(Invalid::Attempts(attempts));
        }
        self.backoff.as_ref().map_or(Ok(()), Backoff::validate)?;
        if let Some(ms) = self.lost_delay_ms.filter(|ms| *ms > LOST_DELAY_MAX) {
            return Err(Invalid::LostDelay(Duration::from_millis(ms)));
        }
        if self.generated && self.replace { Err(Invalid::ReplaceWithoutId) } else { Ok(()) }
    }

    pub(crate) fn into_entry(self, compression: Compression) -> Result<Entry, RecordError> {
        let record = Record {
            has_ttl: self.ttl_ms.is_some() || self.edit.is_some_and(|edit| edit.keeps_ttl),
            lost_delay_ms: self.lost_delay_ms,
            dedup: None,
            priority: 0,
            attempts: self.attempts,
            metadata: Metadata {
                published: self.published,
                content_type: self.content_type,
                headers: self.headers,
                backoff: self.backoff,
                trace: self.trace,
            },
            body: self.body,
        };
        let record = record.to_bytes(compression)?;
        Ok(Entry {
            id: self.id,
            due: self.due,
            ttl_ms: self.ttl_ms.unwrap_or(0),
            replace: self.replace && !self.generated,
            edit: self.edit.filter(|_| !self.generated),
            record,
        })
    }
}

/// A delivered job: its holder has until `lease_ends` to settle it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What to settle a managed job by; `None` for a job that was taken, whose lease settles it.
    pub held: Option<Held>,
    /// Its lease.
    pub lease: Lease,
    /// Which attempt this is, from 1.
    pub attempt: u16,
    /// The most attempts.
    pub max_attempts: u16,
    /// Which delivery this is, from 1; snoozes and releases count here only.
    pub deliveries: u16,
    /// When it was due, by Redis's clock.
    pub due: UnixMs,
    /// When the lease ends unless it is renewed, by Redis's clock.
    pub lease_ends: UnixMs,
    /// How long after its due time it was granted, in milliseconds.
    pub late_ms: u64,
    /// When it was published, by the publisher's clock.
    pub published: UnixMs,
    /// What the body is.
    pub content_type: Option<String>,
    /// What else its publisher said.
    pub headers: Vec<(String, String)>,
    /// The trace it belongs to.
    pub trace: Option<Trace>,
    /// Why the last attempt failed; empty if none did.
    pub last_reason: Reason,
    /// The payload.
    pub body: Bytes,
}

/// Jobs to be handed out: they are not renewed, and settled by their leases.
///
/// The queues are asked one after the other in the order given; the first that has due jobs answers, alone. If none has,
/// the take waits on all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// Where from; at least one.
    pub queues: Vec<QueueName>,
    /// At most so many; 1 to 256.
    pub count: u16,
    /// How long the leases last; 1 s to 24 h.
    pub lease_ms: u64,
    /// How long to wait for a job; at most 5 min. Who waited in vain is answered with none, or with
    /// [`NotSent`](crate::Fault::NotSent) if none of the queues answered meanwhile. Who does not wait has its answer after
    /// twice [`Config::flight_ms`](crate::Config::flight_ms) at the latest.
    pub wait_ms: u64,
}

impl Take {
    /// The longest wait for a job.
    pub const WAIT_MAX_MS: u64 = 300_000;

    /// Checks every limit.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.queues.is_empty() {
            return Err(Invalid::NoQueue);
        }
        Invalid::count("number of jobs to take", self.count.into(), Command::GRANTS_MAX.into())?;
        Invalid::lease(self.lease_ms)?;
        if self.wait_ms > Take::WAIT_MAX_MS {
            return Err(Invalid::Wait(Duration::from_millis(self.wait_ms)));
        }
        Ok(())
    }
}

/// How a delivery ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The job is done.
    Ack,
    /// The attempt failed. Without a delay the job's backoff decides.
    Nack {
        /// How long until the next attempt.
        after_ms: Option<u64>,
        /// Why.
        reason: Reason,
    },
    /// Later, without spending the attempt.
    Snooze {
        /// How long.
        after_ms: u64,
    },
    /// As if never delivered.
    Release,
    /// Dead at once.
    Bury {
        /// Why.
        reason: Reason,
    },
}

/// A verdict, whatever it says beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum VerdictKind {
    Ack,
    Nack,
    Snooze,
    Release,
    Bury,
}

impl VerdictKind {
    /// Those after which there is still a job, in the order in which its state numbers them.
    pub(crate) const LEAVING: [VerdictKind; 4] =
        [VerdictKind::Nack, VerdictKind::Snooze, VerdictKind::Release, VerdictKind::Bury];

    /// Its name, as the HTTP API has it.
    pub const fn name(self) -> &'static str {
        match self {
            VerdictKind::Ack => "ack",
            VerdictKind::Nack => "nack",
            VerdictKind::Snooze => "snooze",
            VerdictKind::Release => "release",
            VerdictKind::Bury => "bury",
        }
    }
}

impl Verdict {
    pub(crate) fn settlement(self, retry_ms: u64) -> Settlement {
        match self {
            Verdict::Ack => Settlement::Ack,
            Verdict::Nack { after_ms, reason } => {
                Settlement::Nack { after_ms: after_ms.unwrap_or(retry_ms).min(DELAY_MAX_MS), reason }
            }
            Verdict::Snooze { after_ms } => Settlement::Snooze { after_ms: after_ms.min(DELAY_MAX_MS) },
            Verdict::Release => Settlement::Release { after_ms: 0 },
            Verdict::Bury { reason } => Settlement::Bury { reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;

    const TEN_YEARS: u64 = DELAY_MAX_MS;

    fn job() -> NewJob {
        let mut job = NewJob::new("q".parse().unwrap(), "a".parse().unwrap(), Bytes::from_static(b"1234"));
        job.published = UnixMs(1_000);
        job
    }

    fn with(change: impl FnOnce(&mut NewJob)) -> NewJob {
        let mut job = job();
        change(&mut job);
        job
    }

    #[test]
    fn an_option_at_its_limit_is_valid() {
        for job in [
            job(),
            with(|job| job.due = Due::After { ms: TEN_YEARS }),
            with(|job| job.due = Due::At(UnixMs(TEN_YEARS + 1_000))),
            with(|job| job.ttl_ms = Some(TEN_YEARS)),
            with(|job| (job.due, job.ttl_ms) = (Due::After { ms: 5 }, Some(5))),
            with(|job| (job.due, job.ttl_ms) = (Due::At(UnixMs(1)), Some(1))),
            with(|job| job.attempts = Some(999)),
            with(|job| job.backoff = Some(Backoff::Ladder(vec![TEN_YEARS; 64]))),
            with(|job| job.lost_delay_ms = Some(99_999_999)),
            with(|job| job.replace = true),
        ] {
            assert_eq!(job.validate(), Ok(()), "{job:?}");
        }
    }

    #[test]
    fn an_option_beyond_its_limit_is_named() {
        let backoffs = [
            Backoff::Fixed { ms: TEN_YEARS + 1 },
            Backoff::Exponential { first_ms: 0, cap_ms: 1, jitter_percent: 0 },
            Backoff::Exponential { first_ms: 2, cap_ms: 1, jitter_percent: 0 },
            Backoff::Exponential { first_ms: 1, cap_ms: TEN_YEARS + 1, jitter_percent: 0 },
            Backoff::Exponential { first_ms: 1, cap_ms: 1, jitter_percent: 101 },
            Backoff::Ladder(vec![]),
            Backoff::Ladder(vec![1; 65]),
            Backoff::Ladder(vec![1, TEN_YEARS + 1]),
        ];
        for backoff in backoffs {
            let error = with(|job| job.backoff = Some(backoff.clone())).validate();
            assert!(matches!(error, Err(Invalid::Backoff { backoff: told, .. }) if told == backoff));
        }
        for (job, says) in [
            (with(|job| job.due = Due::After { ms: TEN_YEARS + 1 }), "a delay of"),
            (with(|job| job.due = Due::At(UnixMs(TEN_YEARS + 1_001))), "a delay of"),
            (
                with(|job| (job.due, job.ttl_ms) = (Due::After { ms: 5_000 }, Some(1_000))),
                "due in 5s and expires after 1s",
            ),
            (
                with(|job| (job.due, job.ttl_ms) = (Due::At(UnixMs(6_000)), Some(4_999))),
                "due in 5s and expires after 4.999s",
            ),
            (with(|job| job.ttl_ms = Some(0)), "would never run"),
            (with(|job| job.ttl_ms = Some(TEN_YEARS + 1)), "a ttl of"),
            (with(|job| job.attempts = Some(0)), "0 attempts"),
            (with(|job| job.attempts = Some(1_000)), "1000 attempts"),
            (with(|job| job.lost_delay_ms = Some(100_000_000)), "after a lost lease"),
            (with(|job| (job.generated, job.replace) = (true, true)), "without an id"),
        ] {
            let error = job.validate().unwrap_err().to_string();
            assert!(error.contains(says), "{says}: {error}");
        }
    }

    #[test]
    fn a_body_over_its_limit_is_named() {
        assert_eq!(TooLarge::check(b"1234", 4), Ok(()));
        assert_eq!(TooLarge::check(b"12345", 4), Err(TooLarge { bytes: 5, limit: 4 }));
    }
}
