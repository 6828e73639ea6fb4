use base64ct::{Base64, Encoding as _};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Problem;
use crate::readable::Readable;

const TEXT: &str = "text/plain; charset=utf-8";
const BYTES: &str = "application/octet-stream";

/// How a payload is written within JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// As the JSON it is.
    #[default]
    Json,
    /// As a string.
    Text,
    /// As a string in base64, for bytes that are no text.
    Base64,
}

impl Encoding {
    /// The content type that makes a payload come back as it was sent, if the publisher names none.
    pub(crate) fn content_type(self) -> Option<&'static str> {
        match self {
            Encoding::Json => None,
            Encoding::Text => Some(TEXT),
            Encoding::Base64 => Some(BYTES),
        }
    }

    /// The bytes that `payload` stands for.
    pub(crate) fn decode(self, payload: &RawValue) -> Result<Bytes, Problem> {
        if self == Encoding::Json {
            return Ok(Bytes::copy_from_slice(payload.get().as_bytes()));
        }
        let text: String = serde_json::from_str(payload.get()).map_err(|_| {
            Problem::bad("bad_payload", "with encoding text or base64 the payload must be a JSON string")
        })?;
        if self == Encoding::Text {
            return Ok(text.into());
        }
        Base64::decode_vec(&text).map(Bytes::from).map_err(|_| {
            Problem::bad("bad_payload", "the payload is not base64: use the standard alphabet with padding")
        })
    }
}

/// A payload within JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Payload {
    /// How the payload is written here.
    encoding: Encoding,
    /// The payload, as `encoding` says.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    payload: Box<RawValue>,
}

impl Payload {
    /// Writes `body` as JSON where it is said to be JSON, or nothing is said, and it is; else as text; else as base64.
    pub(crate) fn new(content_type: Option<&str>, body: &[u8]) -> Payload {
        let media_type = content_type.map(essence);
        let may_be_json =
            media_type.as_deref().is_none_or(|essence| is_unstated(essence) || is_json(essence));
        if let Some(payload) = may_be_json.then(|| inline(body)).flatten() {
            return Payload { encoding: Encoding::Json, payload };
        }
        match str::from_utf8(body) {
            Ok(text) if media_type.as_deref() != Some(BYTES) => {
                Payload { encoding: Encoding::Text, payload: quoted(text) }
            }
            _ => Payload { encoding: Encoding::Base64, payload: quoted(&Base64::encode_string(body)) },
        }
    }
}

/// Whether a content type says nothing: curl sends the form type unless told otherwise.
pub fn is_unstated(essence: &str) -> bool {
    essence == "application/x-www-form-urlencoded"
}

/// Whether a content type is that of JSON.
pub fn is_json(essence: &str) -> bool {
    essence == "application/json" || essence.ends_with("+json")
}

/// The media type without its parameters.
pub fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// JSON that is [`Readable`] for all: one payload that is not would make the whole answer unreadable.
fn inline(body: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice::<Readable>(body).ok()?;
    serde_json::from_slice(body).ok()
}

fn quoted(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(content_type: Option<&str>, body: &[u8]) -> String {
        serde_json::to_string(&Payload::new(content_type, body)).unwrap()
    }

    #[test]
    fn writes_json_text_or_bytes() {
        let form = Some("application/x-www-form-urlencoded");
        for (content_type, body, json) in [
            (None, &b"{\"a\": 1}"[..], r#"{"encoding":"json","payload":{"a": 1}}"#),
            (form, b"{\"a\": 1}", r#"{"encoding":"json","payload":{"a": 1}}"#),
            (form, b"hello", r#"{"encoding":"text","payload":"hello"}"#),
            (None, b"\xff", r#"{"encoding":"base64","payload":"/w=="}"#),
            (None, b"", r#"{"encoding":"text","payload":""}"#),
            (Some("application/json; charset=utf-8"), b"[1]", r#"{"encoding":"json","payload":[1]}"#),
            (Some("Application/Vnd.x+JSON"), b"[1]", r#"{"encoding":"json","payload":[1]}"#),
            (Some("application/json"), b"[1", r#"{"encoding":"text","payload":"[1"}"#),
            (Some("text/plain"), b"[1]", r#"{"encoding":"text","payload":"[1]"}"#),
            (Some("image/png"), b"\x89PNG", r#"{"encoding":"base64","payload":"iVBORw=="}"#),
            (Some("application/octet-stream"), b"abc", r#"{"encoding":"base64","payload":"YWJj"}"#),
        ] {
            assert_eq!(shown(content_type, body), json, "{content_type:?}");
        }
    }

    #[test]
    fn json_that_some_reader_refuses_is_text() {
        for body in ["1e999", "\"\\ud800\"", &"[".repeat(1_000)] {
            assert!(shown(None, body.as_bytes()).starts_with(r#"{"encoding":"text""#), "{body}");
        }
    }

    #[test]
    fn a_payload_comes_back_as_it_was_sent() {
        for (encoding, sent, stored) in [
            (Encoding::Json, "{\"a\":[1, 2]}", &b"{\"a\":[1, 2]}"[..]),
            (Encoding::Json, "\"x\"", b"\"x\""),
            (Encoding::Text, "\"17\"", b"17"),
            (Encoding::Base64, "\"/wA=\"", b"\xff\0"),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(sent).unwrap();
            let body = encoding.decode(&raw).unwrap();
            assert_eq!(body, stored);
            let back = Payload::new(encoding.content_type(), &body);
            assert_eq!((back.encoding, back.payload.get()), (encoding, sent));
        }
    }

    #[test]
    fn a_payload_that_is_not_as_it_says_is_refused() {
        for (encoding, sent) in
            [(Encoding::Text, "17"), (Encoding::Base64, "{}"), (Encoding::Base64, "\"/\"")]
        {
            let raw: Box<RawValue> = serde_json::from_str(sent).unwrap();
            assert_eq!(encoding.decode(&raw).unwrap_err().code, "bad_payload");
        }
    }
}
