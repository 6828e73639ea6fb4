use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    Backoff, Compression, Due, Entry, Held, JobId, Lease, Metadata, QueueName, Reason, Record, RecordError,
    Settlement, Trace, UnixMs,
};

/// The longest delay, lease or TTL: ten years, in milliseconds.
pub const DELAY_MAX_MS: u64 = 10 * 366 * 86_400_000;

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
    /// How long the caller waits for an answer.
    pub timeout_ms: u64,
}

impl NewJob {
    /// A job with no options, due at once, whose caller waits 30 s.
    pub fn new(queue: QueueName, id: JobId, body: Bytes) -> NewJob {
        NewJob {
            queue,
            id,
            generated: false,
            replace: false,
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
            timeout_ms: 30_000,
        }
    }

    pub(crate) fn into_entry(self, compression: Compression) -> Result<Entry, RecordError> {
        let record = Record {
            has_ttl: self.ttl_ms.is_some(),
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
        let record = record.encode(compression)?.to_bytes();
        Ok(Entry {
            id: self.id,
            due: self.due,
            ttl_ms: self.ttl_ms.unwrap_or(0),
            replace: self.replace && !self.generated,
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
    /// [`NotSent`](crate::Fault::NotSent) if the queue could not be asked.
    pub wait_ms: u64,
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
