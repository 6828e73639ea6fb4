use alloc::string::String;

use base64ct::{Base64UrlUnpadded, Encoding};
use bytes::Bytes;

use super::{Head, RecordError, unreadable};

/// Turns a record into text, for transports that cannot carry bytes such as JSON: metadata and body become base64url
/// without padding, and the head says so.
///
/// Takes the two parts of an [`Encoded`](super::Encoded); a record that is armoured already comes back as it is.
pub fn armour(head: &[u8], rest: &[u8]) -> Result<String, RecordError> {
    let mut head = Head::decode(head)?;
    let (metadata, body) =
        rest.split_at_checked(head.metadata_len).ok_or(unreadable("shorter than its metadata"))?;
    let rest = if head.armoured {
        text(rest)?
    } else {
        let (metadata, body) =
            (Base64UrlUnpadded::encode_string(metadata), Base64UrlUnpadded::encode_string(body));
        head.metadata_len = metadata.len();
        head.armoured = true;
        metadata + &body
    };
    Ok(text(&head.encode()?)? + &rest)
}

pub(super) fn strip(part: &[u8]) -> Result<Bytes, RecordError> {
    let text = core::str::from_utf8(part).map_err(|_| unreadable("base64url"))?;
    Base64UrlUnpadded::decode_vec(text).map(Bytes::from).map_err(|_| unreadable("base64url"))
}

fn text(bytes: &[u8]) -> Result<String, RecordError> {
    core::str::from_utf8(bytes).map(String::from).map_err(|_| unreadable("armour that is not text"))
}
