use alloc::string::String;

use thiserror::Error;

use super::frame::Frame;
use crate::UnixMs;

pub(super) const MAGIC: &[u8; 10] = b"delayline\0";
/// Raised whenever what is recorded has another form: the engine's state, its inputs or its effects.
pub(super) const FORMAT: u16 = 2;

/// Who made a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the crate that did.
    pub version: String,
    /// The wall clock at the engine's time 0.
    pub origin: UnixMs,
}

/// Bytes that cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// It does not begin as a recording does.
    #[error("this is no recording of delayline")]
    NotOne,
    /// A format that this version does not know.
    #[error(
        "the recording has format {found}, and this version of delayline reads format {FORMAT}: replay it with {}",
        if *found > FORMAT { "a newer one" } else { "the version that made it" }
    )]
    Format {
        /// Which.
        found: u16,
    },
    /// It ends before it says who made it.
    #[error("the recording is cut off in its header")]
    NoHeader,
}

/// Where a recording stops making sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damaged {
    /// Its last entry is cut off, as of a process that was killed while it wrote; all before was replayed.
    #[error(
        "the recording is cut off: its last {bytes} bytes are no whole entry, and all before them was replayed"
    )]
    Cut {
        /// How many bytes were left.
        bytes: usize,
    },
    /// An entry cannot be read.
    #[error("the recording is damaged: the entry at byte {at} cannot be read; made by version {version}")]
    Garbled {
        /// Where it begins.
        at: usize,
        /// The version that made it.
        version: String,
    },
    /// It tells an engine what none is ever told, or begins with no engine.
    #[error("the recording is damaged: it tells an engine what none is ever told; made by version {version}")]
    Senseless {
        /// The version that made it.
        version: String,
    },
    /// The state it begins with cannot be read.
    #[error(
        "the recording begins with a state of the engine that cannot be read: it was made by version {version}, and only \
         that version reads it"
    )]
    State {
        /// The version that made it.
        version: String,
    },
}

/// Reads the entries of a recording, whatever the bytes are.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
    pub(super) header: Header,
}

impl<'a> Reader<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Reader<'a>, Unreadable> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(Unreadable::NotOne)?;
        let (format, rest) = rest.split_first_chunk().ok_or(Unreadable::NoHeader)?;
        let found = u16::from_le_bytes(*format);
        if found != FORMAT {
            return Err(Unreadable::Format { found });
        }
        let header = Header { version: String::new(), origin: UnixMs(0) };
        let mut reader = Reader { rest, len: bytes.len(), header };
        let Some(Ok(Frame::Header { version, origin })) = reader.next() else {
            return Err(Unreadable::NoHeader);
        };
        reader.header = Header { version, origin };
        Ok(reader)
    }

    /// Nothing is read any more.
    pub(super) fn end(&mut self) {
        self.rest = &[];
    }

    fn fail(&mut self, damaged: Damaged) -> Result<Frame, Damaged> {
        self.end();
        Err(damaged)
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Frame, Damaged>;

    fn next(&mut self) -> Option<Result<Frame, Damaged>> {
        if self.rest.is_empty() {
            return None;
        }
        let (at, left) = (self.len - self.rest.len(), self.rest.len());
        let version = self.header.version.clone();
        let (len, rest) = match postcard::take_from_bytes::<u64>(self.rest) {
            Ok((len, rest)) => (usize::try_from(len).unwrap_or(usize::MAX), rest),
            Err(postcard::Error::DeserializeUnexpectedEnd) => {
                return Some(self.fail(Damaged::Cut { bytes: left }));
            }
            Err(_) => return Some(self.fail(Damaged::Garbled { at, version })),
        };
        let Some((frame, rest)) = rest.split_at_checked(len) else {
            return Some(self.fail(Damaged::Cut { bytes: left }));
        };
        self.rest = rest;
        match postcard::from_bytes(frame) {
            Ok(frame) => Some(Ok(frame)),
            Err(_) => Some(self.fail(Damaged::Garbled { at, version })),
        }
    }
}
