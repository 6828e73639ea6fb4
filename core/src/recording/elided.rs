//! What stands in for bodies.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use once_cell::race::OnceBox;

use crate::record::{FAILURE, WHATS};
use crate::{BODY_LIMIT, Compression, Grant, Metadata, Record, RecordError, Reply, Stored};

/// The longest record that is told from longer ones.
const LONGEST: usize = BODY_LIMIT + (1 << 16);
/// The most bytes of values of a job that are told from more.
const VALUES_LONGEST: usize = 1 << 16;

/// A record, or a body, of so many bytes: a part of what all of them share, so that no recording can ask for more.
pub(crate) fn zeros(len: u64) -> Bytes {
    static SHARED: OnceBox<Vec<u8>> = OnceBox::new();
    let shared = SHARED.get_or_init(|| Box::new(vec![0; LONGEST]));
    let len = usize::try_from(len).unwrap_or(LONGEST).min(LONGEST);
    Bytes::from_static(shared.get(..len).unwrap_or_default())
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

/// Values of headers as their lengths.
pub(super) mod values {
    use alloc::string::String;
    use alloc::vec::Vec;

    use serde::{Deserialize, Deserializer, Serializer};

    type Headers<T> = Vec<(String, T)>;

    pub(in crate::recording) fn serialize<S: Serializer>(
        headers: &Headers<String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(headers.iter().map(|(name, value)| (name, value.len() as u64)))
    }

    pub(in crate::recording) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Headers<String>, D::Error> {
        let mut left = super::VALUES_LONGEST;
        let mut stand_in = |len: u64| {
            let len = usize::try_from(len).unwrap_or(left).min(left);
            left -= len;
            "*".repeat(len)
        };
        let headers = Headers::<u64>::deserialize(deserializer)?.into_iter();
        Ok(headers.map(|(name, len)| (name, stand_in(len))).collect())
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
