use std::collections::BTreeMap;

use base64ct::{Base64, Encoding};
use bytes::Bytes;
use serde::Deserialize;

/// What the names of headers begin with that were lmstfy's attributes.
const ATTRIBUTE: &str = "lmstfy-attr-";
/// How long the id of a job is whose body has attributes beside it: the digit 1, then a ULID.
const VERSION_1: (usize, u8) = (27, b'1');

/// Names and values.
type Headers = Vec<(String, String)>;

/// A body of version 1 as lmstfy keeps it.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    attributes: Option<BTreeMap<String, String>>,
}

/// Reads what lmstfy keeps under the key of a job's body: bytes as they are, or, if its id says so, JSON with the body in
/// base 64 and attributes. The bytes and the headers that they are to have.
pub(super) fn read(id: &str, kept: Vec<u8>) -> Result<(Bytes, Headers), &'static str> {
    if (id.len(), id.as_bytes().first()) != (VERSION_1.0, Some(&VERSION_1.1)) {
        return Ok((kept.into(), Vec::new()));
    }
    let versioned: Versioned =
        serde_json::from_slice(&kept).map_err(|_| "its body is not the JSON of version 1")?;
    let body = Base64::decode_vec(&versioned.body.unwrap_or_default())
        .map_err(|_| "its body of version 1 is not in base 64")?;
    let headers = versioned.attributes.unwrap_or_default().into_iter();
    Ok((body.into(), headers.map(|(name, value)| (format!("{ATTRIBUTE}{name}"), value)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let (old, new) = ("01M7XABF4514NXTZ825W000000", "101M7XABF4514NXTZ825W000000");
        assert_eq!(read(old, b"{\xff}".to_vec()), Ok((Bytes::from_static(b"{\xff}"), Vec::new())));
        let kept = br#"{"body":"AP8=","attributes":{"flag":"a","zone":"b"}}"#;
        let headers = vec![
            ("lmstfy-attr-flag".to_owned(), "a".to_owned()),
            ("lmstfy-attr-zone".to_owned(), "b".to_owned()),
        ];
        assert_eq!(read(new, kept.to_vec()), Ok((Bytes::from_static(b"\0\xff"), headers)));
        assert_eq!(read(new, br#"{"body":null}"#.to_vec()), Ok((Bytes::new(), Vec::new())));
        for bad in [&b"plain"[..], br#"{"body":"?"}"#, br#"{"body":7}"#, b"\xff"] {
            assert!(read(new, bad.to_vec()).is_err(), "{bad:?}");
        }
    }
}
