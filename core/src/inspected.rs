use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::{
    BODY_LIMIT, Backoff, JobId, Place, Record, RecordDigest, RecordError, State, Stored, Trace, UnixMs,
};

/// A job as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// Its name.
    pub id: JobId,
    /// Where it is.
    pub place: Place,
    /// Its due time, the end of its lease, or the time of its death, by place.
    pub at: UnixMs,
    /// If it was delivered at least once, or died.
    pub state: Option<State>,
    /// When it expires; answered by inspecting, not by listing.
    pub expires: Option<UnixMs>,
    /// What is stored of it, for an edit to say of which job it is.
    pub record: RecordDigest,
    /// What its publisher set, unless it cannot be read.
    pub contents: Result<Contents, RecordError>,
}

/// What the publisher of a job set.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// When it was published, by the publisher's clock.
    pub published: UnixMs,
    /// What the body is.
    pub content_type: Option<String>,
    /// What else its publisher said.
    pub headers: Vec<(String, String)>,
    /// The trace it belongs to.
    pub trace: Option<Trace>,
    /// The most attempts; the queue's if not set.
    pub attempts: Option<u16>,
    /// The delay before another attempt; the queue's if not set.
    pub backoff: Option<Backoff>,
    /// How long it waits after a lease that ended without a verdict.
    pub lost_delay: Option<Duration>,
    /// The payload.
    pub body: Bytes,
}

impl Inspected {
    /// Attempts spent, the current one included.
    pub fn attempt(&self) -> u16 {
        self.state.as_ref().map_or(0, |state| state.attempts)
    }

    /// The most attempts: while it waits as its publisher set it, else as settled at its latest delivery; `None` leaves it
    /// to the queue.
    pub fn max_attempts(&self) -> Option<u16> {
        let settled = self.state.as_ref().map(|state| state.max).filter(|max| *max > 0);
        let published = self.contents.as_ref().ok().and_then(|contents| contents.attempts);
        match self.place {
            Place::Ready | Place::Delayed => published.or(settled),
            Place::Leased | Place::Dead => settled.or(published),
        }
    }

    /// Deliveries so far.
    pub fn deliveries(&self) -> u16 {
        self.state.as_ref().map_or(0, |state| state.deliveries)
    }

    /// When it is due, or was last due.
    pub fn due(&self) -> Option<UnixMs> {
        match self.place {
            Place::Ready | Place::Delayed => Some(self.at),
            Place::Leased | Place::Dead => self.state.as_ref().map(|state| state.due),
        }
    }

    /// When its lease ends, if a consumer holds it.
    pub fn lease_ends(&self) -> Option<UnixMs> {
        (self.place == Place::Leased).then_some(self.at)
    }

    /// When it died, if it is a dead letter.
    pub fn died(&self) -> Option<UnixMs> {
        (self.place == Place::Dead).then_some(self.at)
    }

    /// Why the last attempt failed, or why it died.
    pub fn last_reason(&self) -> Option<&str> {
        self.state.as_ref().map(|state| state.reason.as_str()).filter(|reason| !reason.is_empty())
    }
}

impl From<Stored> for Inspected {
    fn from(stored: Stored) -> Inspected {
        let Stored { id, place, at, state, expires, record } = stored;
        let contents = Record::decode(&record, BODY_LIMIT).map(Contents::from);
        Inspected { id, place, at, state, expires, record: RecordDigest::of(&record), contents }
    }
}

impl From<Record> for Contents {
    fn from(record: Record) -> Contents {
        Contents {
            published: record.metadata.published,
            content_type: record.metadata.content_type,
            headers: record.metadata.headers,
            trace: record.metadata.trace,
            attempts: record.attempts,
            backoff: record.metadata.backoff,
            lost_delay: record.lost_delay_ms.map(Duration::from_millis),
            body: record.body,
        }
    }
}
