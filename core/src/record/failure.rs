//! What stands in for a record that could not be read, where it was recorded: it fails for the same reason.

use super::RecordError;

/// What it begins with; no record does.
pub(crate) const FAILURE: &[u8] = b"\0elided ";

/// All that can be wrong with a record, by its number: only added to.
pub(crate) const WHATS: [&str; 18] = [
    "shorter than a head",
    "no format",
    "length of head",
    "length of metadata",
    "flags",
    "priority",
    "attempts",
    "delay after a lost lease",
    "length of deduplication key",
    "deduplication key",
    "shorter than its metadata",
    "base64url",
    "metadata",
    "size of compressed body",
    "compressed body",
    "its format",
    "its flags",
    "its backoff",
];

/// The failure that this stands for, if it does.
pub(super) fn stood_for(stored: &[u8]) -> Option<RecordError> {
    let text = core::str::from_utf8(stored.strip_prefix(FAILURE)?).ok()?;
    let (kind, rest) = text.split_once(' ')?;
    let what = || WHATS.get(rest.parse::<usize>().ok()?).copied();
    match kind {
        "newer" => Some(RecordError::Newer { what: what()? }),
        "unreadable" => Some(RecordError::Unreadable { what: what()? }),
        "large" => {
            let (bytes, limit) = rest.split_once(' ')?;
            Some(RecordError::BodyTooLarge { bytes: bytes.parse().ok()?, limit: limit.parse().ok()? })
        }
        _ => None,
    }
}
