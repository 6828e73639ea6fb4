use bytes::Bytes;
use delayline_http::{Problem, essence, is_json, is_unstated};
use js_sys::{ArrayBuffer, JSON, Reflect, Symbol, Uint8Array};
use wasm_bindgen::prelude::*;

const JSON_TYPE: &str = "application/json";
const BYTES_TYPE: &str = "application/octet-stream";

/// What a payload is stored as, and what it is said to be.
pub(super) struct Stored {
    pub(super) body: Bytes,
    pub(super) content_type: String,
}

/// Bytes stay as they are, a string that is said to be no JSON is text, and all else is JSON.
pub(super) fn store(payload: &JsValue, content_type: Option<String>) -> Result<Stored, Problem> {
    if let Some(bytes) = bytes(payload) {
        let content_type = content_type.unwrap_or_else(|| BYTES_TYPE.to_owned());
        return Ok(Stored { body: bytes.to_vec().into(), content_type });
    }
    let content_type = content_type.unwrap_or_else(|| JSON_TYPE.to_owned());
    let body = match payload.as_string() {
        Some(text) if !is_json(&essence(&content_type)) => text,
        _ => json(payload)?,
    };
    Ok(Stored { body: body.into(), content_type })
}

/// The payload as its consumer wants it: what its JSON says, else its text, else its bytes.
pub(super) fn read(content_type: Option<&str>, body: &[u8]) -> JsValue {
    let media_type = content_type.map(essence);
    let Ok(text) = str::from_utf8(body) else { return Uint8Array::from(body).into() };
    match media_type.as_deref() {
        Some(BYTES_TYPE) => Uint8Array::from(body).into(),
        Some(said) if !is_unstated(said) && !is_json(said) => text.into(),
        _ => JSON::parse(text).unwrap_or_else(|_| text.into()),
    }
}

/// The bytes of what is made of bytes, whatever realm it is of.
pub(super) fn bytes(value: &JsValue) -> Option<Uint8Array> {
    if ArrayBuffer::is_view(value) {
        let view: &Uint8Array = value.unchecked_ref();
        return Some(Uint8Array::new_with_byte_offset_and_length(
            &view.buffer(),
            view.byte_offset(),
            view.byte_length(),
        ));
    }
    let tag = value.is_object().then(|| Reflect::get(value, &Symbol::to_string_tag()).ok()).flatten();
    (tag?.as_string()? == "ArrayBuffer").then(|| Uint8Array::new(value))
}

fn json(payload: &JsValue) -> Result<String, Problem> {
    let refused =
        |why: &str| Problem::bad("bad_payload", format!("the payload cannot be written as JSON: {why}"));
    let json = JSON::stringify(payload).map_err(|error| refused(&crate::fetch::said(&error)))?;
    JsValue::from(json).as_string().ok_or_else(|| {
        refused("undefined, functions and symbols have none; publish null, or say what is meant")
    })
}
