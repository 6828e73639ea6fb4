use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::{Backoff, Due, Inspected, Invalid, NewJob, Place, QueueName, RecordError, Span, UnixMs};

/// What is to change about a waiting job. What is not named stays as it is: its attempts, its due time, its TTL.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobEdit {
    /// When it is due; as before if not set.
    pub due: Option<Due>,
    /// The payload; as before if not set.
    pub body: Option<Bytes>,
    /// What the body is.
    pub content_type: Change<String>,
    /// Headers by name: each takes the place of those of its name, or removes them.
    pub headers: Vec<(String, Option<String>)>,
    /// The most attempts; those of the queue if unset.
    pub attempts: Change<u16>,
    /// The delay before another attempt; that of the queue if unset.
    pub backoff: Change<Backoff>,
    /// When it expires, counted from the edit; never if unset.
    pub ttl: Change<Span>,
}

/// What becomes of one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It has none from now on.
    Unset,
    /// It is this from now on.
    Set(T),
}

/// Why a job cannot be edited.
#[derive(Clone, Debug, PartialEq)]
pub enum NotEditable {
    /// A consumer holds it.
    Leased,
    /// It is a dead letter.
    Dead,
    /// It would expire before it is due.
    Expires,
    /// What it is cannot be read, so it cannot be kept.
    Unreadable(RecordError),
    /// It would be no valid job.
    Invalid(Invalid),
}

/// That a published job edits the waiting job of its id, if that is still as it was found: nothing else changes it, and
/// one that ended meanwhile does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// What was stored of it.
    pub record: RecordDigest,
    /// When it was due.
    pub due: UnixMs,
    /// Whether it goes on to expire when it would have.
    pub keeps_ttl: bool,
}

/// The SHA-1 of a record as it is stored. Scripts compare it; nothing secret depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordDigest([u8; 20]);

impl JobEdit {
    /// The job as it is to be, and not before: to be published, which changes nothing if `found` is no longer so.
    ///
    /// `now` is the wall clock.
    ///
    /// # Errors
    /// [`NotEditable`] if it does not wait, or could not be so.
    pub fn apply(&self, queue: QueueName, found: Inspected, now: UnixMs) -> Result<NewJob, NotEditable> {
        match found.place {
            Place::Ready | Place::Delayed => {}
            Place::Leased => return Err(NotEditable::Leased),
            Place::Dead => return Err(NotEditable::Dead),
        }
        let contents = found.contents.map_err(NotEditable::Unreadable)?;
        let due = self.due.unwrap_or(Due::At(found.at));
        let kept_expiry = found.expires.filter(|_| self.ttl == Change::Keep);
        if self.due.is_some() && kept_expiry.is_some_and(|expiry| now + due.distance_ms(now) > expiry) {
            return Err(NotEditable::Expires);
        }
        let ttl = match self.ttl {
            Change::Set(ttl) => Some(ttl.0),
            Change::Keep | Change::Unset => None,
        };
        let job = NewJob {
            edit: Some(Edit { record: found.record, due: found.at, keeps_ttl: kept_expiry.is_some() }),
            due,
            ttl_ms: ttl,
            attempts: self.attempts.of(contents.attempts),
            backoff: self.backoff.clone().of(contents.backoff),
            lost_delay_ms: contents.lost_delay.and_then(|delay| u64::try_from(delay.as_millis()).ok()),
            content_type: self.content_type.clone().of(contents.content_type),
            headers: self.headers_of(contents.headers),
            trace: contents.trace,
            published: now,
            ..NewJob::new(queue, found.id, self.body.clone().unwrap_or(contents.body))
        };
        job.validate().map_err(NotEditable::Invalid)?;
        Ok(NewJob { published: contents.published, ..job })
    }

    fn headers_of(&self, mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
        for (name, value) in &self.headers {
            headers.retain(|(known, _)| known != name);
            headers.extend(value.clone().map(|value| (name.clone(), value)));
        }
        headers
    }
}

impl<T> Change<T> {
    /// The value after the change, given the one before.
    fn of(self, before: Option<T>) -> Option<T> {
        match self {
            Change::Keep => before,
            Change::Unset => None,
            Change::Set(value) => Some(value),
        }
    }
}

impl RecordDigest {
    /// That of a record as it is stored.
    pub fn of(stored: &[u8]) -> RecordDigest {
        RecordDigest(Sha1::digest(stored).into())
    }
}

impl fmt::Display for RecordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metadata, Record, Stored};
    use alloc::string::ToString;
    use alloc::vec;

    const DUE: UnixMs = UnixMs(1_760_000_060_000);
    const NOW: UnixMs = UnixMs(1_760_000_000_000);

    fn stored(place: Place) -> Stored {
        let metadata = Metadata {
            published: UnixMs(7),
            content_type: Some("text/plain".into()),
            headers: vec![("a".into(), "1".into()), ("b".into(), "2".into()), ("a".into(), "3".into())],
            backoff: Some(Backoff::Fixed { ms: 9 }),
            trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok(),
        };
        let record = Record {
            metadata,
            attempts: Some(3),
            lost_delay_ms: Some(5),
            body: Bytes::from_static(b"x"),
            ..Record::default()
        };
        let record = record.encode(crate::Compression::Off).unwrap().to_bytes();
        let expires = Some(DUE + 1_000);
        Stored { id: "j".parse().unwrap(), place, at: DUE, state: None, expires, record }
    }

    fn edited(edit: &JobEdit) -> Result<NewJob, NotEditable> {
        edit.apply("q".parse().unwrap(), stored(Place::Delayed).into(), NOW)
    }

    #[test]
    fn what_is_not_named_stays() {
        let before = stored(Place::Delayed);
        let job = edited(&JobEdit::default()).unwrap();
        let expected = Edit { record: RecordDigest::of(&before.record), due: DUE, keeps_ttl: true };
        assert_eq!((job.edit, job.due, job.ttl_ms), (Some(expected), Due::At(DUE), None));
        let after = job.into_entry(crate::Compression::Off).unwrap();
        let [before, after] =
            [&before.record, &after.record].map(|stored| Record::decode(stored, 1 << 20).unwrap());
        assert_eq!(after, Record { has_ttl: true, ..before });
    }

    #[test]
    fn what_is_named_changes() {
        let job = edited(&JobEdit {
            due: Some(Due::After { ms: 5 }),
            body: Some(Bytes::from_static(b"y")),
            content_type: Change::Unset,
            headers: vec![("a".into(), Some("4".into())), ("b".into(), None), ("c".into(), Some("5".into()))],
            attempts: Change::Unset,
            backoff: Change::Set(Backoff::None),
            ttl: Change::Set(Span(6)),
        });
        let job = job.unwrap();
        assert_eq!((job.due, job.ttl_ms, &job.body[..]), (Due::After { ms: 5 }, Some(6), &b"y"[..]));
        assert_eq!((job.attempts, job.backoff, job.content_type), (None, Some(Backoff::None), None));
        assert_eq!(job.headers, [("a", "4"), ("c", "5")].map(|(name, value)| (name.into(), value.into())));
        assert_eq!((job.published, job.lost_delay_ms), (UnixMs(7), Some(5)));
        assert!(!job.edit.unwrap().keeps_ttl);
        let forever = edited(&JobEdit { ttl: Change::Unset, ..JobEdit::default() }).unwrap();
        assert_eq!((forever.ttl_ms, forever.edit.map(|edit| edit.keeps_ttl)), (None, Some(false)));
    }

    #[test]
    fn what_cannot_be_edited_says_why() {
        for (place, why) in [(Place::Leased, NotEditable::Leased), (Place::Dead, NotEditable::Dead)] {
            let refused = JobEdit::default().apply("q".parse().unwrap(), stored(place).into(), NOW);
            assert_eq!(refused, Err(why));
        }
        let broken = Stored { record: Bytes::from_static(b"?"), ..stored(Place::Ready) };
        let refused = JobEdit::default().apply("q".parse().unwrap(), broken.into(), NOW);
        assert!(matches!(refused, Err(NotEditable::Unreadable(_))));
        let later = |ms| edited(&JobEdit { due: Some(Due::At(DUE + ms)), ..JobEdit::default() });
        assert!(later(1_000).is_ok());
        assert_eq!(later(1_001), Err(NotEditable::Expires));
        let refused = edited(&JobEdit { attempts: Change::Set(0), ..JobEdit::default() });
        assert!(matches!(refused, Err(NotEditable::Invalid(Invalid::Attempts(0)))));
        let refused = edited(&JobEdit { ttl: Change::Set(Span(1)), ..JobEdit::default() });
        assert!(matches!(refused, Err(NotEditable::Invalid(Invalid::Ttl { .. }))));
    }

    #[test]
    fn a_digest_is_written_as_redis_writes_it() {
        assert_eq!(RecordDigest::of(b"").to_string(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }
}
