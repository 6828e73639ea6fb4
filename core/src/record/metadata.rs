use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{RecordError, Trace, unreadable};
use crate::{Backoff, UnixMs};

/// What fits into 4,095 characters of base64.
const LEN_MAX: usize = 4095 / 4 * 3 + 2;
const BACKOFFS: u32 = 4;

/// What a record says to engines only; scripts pass it on unread.
///
/// Stored as its fields in order, each in postcard's format. The list only ever grows at its end: a writer leaves out
/// what is empty at the end, a reader takes what is missing as empty and ignores what it does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// When the job was published.
    pub published: UnixMs,
    /// The media type of the body.
    pub content_type: Option<String>,
    /// Names and values that travel with the body, in the publisher's order.
    pub headers: Vec<(String, String)>,
    /// The wait after failed attempts; `None` leaves it to the queue.
    pub backoff: Option<Backoff>,
    /// The trace that the publishing belongs to.
    pub trace: Option<Trace>,
}

impl Metadata {
    /// Writes the metadata, at most 3,071 bytes so that they fit armoured too.
    pub(super) fn encode(&self) -> Result<Vec<u8>, RecordError> {
        let mut fields = Fields::default();
        fields.put(&self.published.0, false)?;
        fields.put(&self.content_type, self.content_type.is_none())?;
        fields.put(&self.headers, self.headers.is_empty())?;
        fields.put(&self.backoff, self.backoff.is_none())?;
        fields.put(&self.trace, self.trace.is_none())?;
        fields.finish()
    }

    /// Reads metadata of this or another version; a backoff of an unknown kind makes the record a newer one.
    pub(super) fn decode(mut stored: &[u8]) -> Result<Metadata, RecordError> {
        let stored = &mut stored;
        Ok(Metadata {
            published: UnixMs(take(stored)?),
            content_type: take(stored)?,
            headers: take(stored)?,
            backoff: take_backoff(stored)?,
            trace: take(stored)?,
        })
    }
}

#[derive(Default)]
struct Fields {
    bytes: Vec<u8>,
    needed: usize,
}

impl Fields {
    fn put(&mut self, field: &impl Serialize, empty: bool) -> Result<(), RecordError> {
        let bytes = core::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(field, bytes).map_err(|_| unreadable("metadata"))?;
        if !empty {
            self.needed = self.bytes.len();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u8>, RecordError> {
        self.bytes.truncate(self.needed);
        if self.needed > LEN_MAX {
            return Err(RecordError::MetadataTooLong { bytes: self.needed, limit: LEN_MAX });
        }
        Ok(self.bytes)
    }
}

fn take<T: DeserializeOwned + Default>(stored: &mut &[u8]) -> Result<T, RecordError> {
    if stored.is_empty() {
        return Ok(T::default());
    }
    let (field, rest) = postcard::take_from_bytes(stored).map_err(|_| unreadable("metadata"))?;
    *stored = rest;
    Ok(field)
}

fn take_backoff(stored: &mut &[u8]) -> Result<Option<Backoff>, RecordError> {
    let kind: Option<u32> = take(&mut &**stored)?;
    if kind.is_some_and(|kind| kind >= BACKOFFS) {
        return Err(RecordError::Newer { what: "its backoff" });
    }
    take(stored)
}
