//! What the pool of a queue holds for a job: a plain head that scripts read, then metadata, then the body.

mod armour;
mod body;
mod failure;
mod head;
mod metadata;
mod trace;

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use thiserror::Error;

pub use armour::armour;
pub use body::{BODY_LIMIT, Compression};
pub(crate) use failure::{FAILURE, WHATS};
pub use head::Head;
pub(crate) use head::LOST_DELAY_MAX;
pub use metadata::Metadata;
pub use trace::{Trace, TraceError};

/// A job as its publisher set it, apart from its id and due time. Never changes once stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Whether the job expires; when it does is kept by Redis, not here.
    pub has_ttl: bool,
    /// How many milliseconds the job waits after a lease that ended unsettled, at most 99,999,999.
    pub lost_delay_ms: Option<u64>,
    /// The deduplication key, 1 to 64 bytes: hash a longer one first.
    pub dedup: Option<String>,
    /// 0 to 9.
    pub priority: u8,
    /// How often the job may be delivered, 1 to 999; `None` leaves it to the queue.
    pub attempts: Option<u16>,
    /// What only engines read.
    pub metadata: Metadata,
    /// The payload.
    pub body: Bytes,
}

/// A record ready for a transport that carries bytes: `head` then `rest`. For one that carries only text see [`armour`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The head: text, and the same whether armoured or not except for two of its fields.
    pub head: Vec<u8>,
    /// The metadata, then the body, compressed if that made it smaller.
    pub rest: Vec<u8>,
}

/// A record that cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// A later version wrote it: leave it to an engine that can read it.
    #[error(
        "the record was written by a newer version ({what}): upgrade this one, the job is kept until then"
    )]
    Newer {
        /// What is not known here.
        what: &'static str,
    },
    /// It was damaged or was never a record.
    #[error("the record cannot be read ({what}): something other than delayline wrote or cut it")]
    Unreadable {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The body would take more memory than this reader allows.
    #[error("the body of {bytes} bytes is over this reader's limit of {limit}: raise the limit to read it")]
    BodyTooLarge {
        /// The length of the body once decompressed.
        bytes: usize,
        /// The most that was allowed.
        limit: usize,
    },
    /// Headers, content type, backoff and trace together are too long.
    #[error(
        "the metadata takes {bytes} bytes of at most {limit}: send fewer or shorter headers, or use the body"
    )]
    MetadataTooLong {
        /// The length of the metadata.
        bytes: usize,
        /// The most that fits, armoured or not.
        limit: usize,
    },
    /// A field has a value that the head has no room for.
    #[error("the {field} of a job cannot be {value}: it must be {allowed}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// Its value, or its length in bytes.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl Encoded {
    /// The whole record in one piece, as stored.
    pub fn to_bytes(&self) -> Bytes {
        [self.head.as_slice(), &self.rest].concat().into()
    }
}

impl Record {
    /// Writes the record. Fails if a field is out of range or the metadata too long to be stored in either form.
    pub fn encode(&self, compression: Compression) -> Result<Encoded, RecordError> {
        let (head, metadata, body) = self.parts(compression)?;
        Ok(Encoded { head, rest: [metadata.as_slice(), body.as_deref().unwrap_or(&self.body)].concat() })
    }

    /// The same in one piece, as stored: the body is copied once.
    pub fn to_bytes(&self, compression: Compression) -> Result<Bytes, RecordError> {
        let (head, metadata, body) = self.parts(compression)?;
        Ok([&head, &metadata, body.as_deref().unwrap_or(&self.body)].concat().into())
    }

    /// The head, the metadata, and the body if it was compressed.
    #[expect(clippy::type_complexity, reason = "three pieces of bytes")]
    fn parts(&self, compression: Compression) -> Result<(Vec<u8>, Vec<u8>, Option<Vec<u8>>), RecordError> {
        let metadata = self.metadata.encode()?;
        let compressed = body::compress(&self.body, compression);
        let head = Head {
            has_ttl: self.has_ttl,
            lost_delay_ms: self.lost_delay_ms,
            dedup: self.dedup.clone(),
            priority: self.priority,
            attempts: self.attempts,
            armoured: false,
            compressed: compressed.is_some(),
            metadata_len: metadata.len(),
        };
        Ok((head.encode()?, metadata, compressed))
    }

    /// Reads a stored record in either form. A body that is neither armoured nor compressed is a slice of `stored`.
    ///
    /// `body_limit` is the most bytes to which a body may decompress; usually [`BODY_LIMIT`].
    pub fn decode(stored: &Bytes, body_limit: usize) -> Result<Record, RecordError> {
        let head = Head::decode(stored)?;
        let (metadata, body) = head.parts(stored)?;
        let (metadata, body) =
            if head.armoured { (armour::strip(&metadata)?, armour::strip(&body)?) } else { (metadata, body) };
        Ok(Record {
            has_ttl: head.has_ttl,
            lost_delay_ms: head.lost_delay_ms,
            priority: head.priority,
            attempts: head.attempts,
            metadata: Metadata::decode(&metadata)?,
            body: if head.compressed { body::decompress(&body, body_limit)? } else { body },
            dedup: head.dedup,
        })
    }
}

fn unreadable(what: &'static str) -> RecordError {
    RecordError::Unreadable { what }
}

#[cfg(test)]
mod tests;
