//! What stands in for bodies.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use once_cell::race::OnceBox;

use crate::record::{FAILURE, WHATS};
use crate::{BODY_LIMIT, Compression, Grant, Metadata, Record, RecordError, Reply, Stored};

/// The longest record that is told from longer ones.
const LONGEST: usize = BODY_LIMIT + (1 << 16);
/// The most bytes of values of a job that are told from more.
pub(super) const VALUES_LONGEST: usize = 1 << 16;

/// A record, or a body, of so many bytes: a part of what all of them share, so that no recording can ask for more.
pub(crate) fn zeros(len: u64) -> Bytes {
    static SHARED: OnceBox<Vec<u8>> = OnceBox::new();
    let shared = SHARED.get_or_init(|| Box::new(vec![0; LONGEST]));
    let len = usize::try_from(len).unwrap_or(LONGEST).min(LONGEST);
    Bytes::from_static(shared.get(..len).unwrap_or_default())
}

/// A value of a header, of so many bytes, out of what is `left`.
pub(super) fn value(len: u64, left: &mut usize) -> String {
    let len = usize::try_from(len).unwrap_or(*left).min(*left);
    *left -= len;
    "*".repeat(len)
}

/// A reply that is read and decided upon alike, without bodies and values of headers.
pub(super) fn reply(mut reply: Reply, body_limit: usize) -> Reply {
    match &mut reply {
        Reply::Granted { jobs, .. } => {
            for Grant { record, .. } in jobs {
                *record = stand_in(record, body_limit);
            }
        }
        Reply::Found { job, .. } => job.record = Bytes::new(),
        Reply::Listed { jobs, .. } => {
            for Stored { record, .. } in jobs {
                *record = Bytes::new();
            }
        }
        _ => {}
    }
    reply
}

/// A record of which the same is read, up to body and headers, or which fails to be read for the same reason.
fn stand_in(record: &Bytes, body_limit: usize) -> Bytes {
    let kept = Record::decode(record, body_limit).and_then(|read| {
        let headers = read.metadata.headers.into_iter();
        let headers = headers.map(|(name, text)| (name, "*".repeat(text.len()))).collect();
        let metadata = Metadata { headers, ..read.metadata };
        let kept = Record { metadata, body: Bytes::new(), ..read };
        kept.encode(Compression::Off)
    });
    match kept {
        Ok(kept) => kept.to_bytes(),
        Err(error) => failure(&error).into(),
    }
}

/// What fails to be read as a record, with this error.
fn failure(error: &RecordError) -> Vec<u8> {
    let place = |what: &str| WHATS.iter().position(|known| *known == what).unwrap_or_default();
    let text = match error {
        RecordError::Newer { what } => format!("newer {}", place(what)),
        RecordError::Unreadable { what } => format!("unreadable {}", place(what)),
        RecordError::BodyTooLarge { bytes, limit } => format!("large {bytes} {limit}"),
        RecordError::MetadataTooLong { .. } | RecordError::OutOfRange { .. } => "unreadable 0".into(),
    };
    [FAILURE, text.as_bytes()].concat()
}

/// A record as its length.
pub(crate) mod length {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(record: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        (record.len() as u64).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        u64::deserialize(deserializer).map(super::zeros)
    }
}

/// A record as it is.
pub(crate) mod whole {
    use alloc::vec::Vec;

    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(record: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(record)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        Vec::<u8>::deserialize(deserializer).map(Bytes::from)
    }
}
