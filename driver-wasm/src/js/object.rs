use js_sys::{JSON, Object, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::number::number;

/// A plain object, field by field as JSON has them.
pub(super) fn object(fields: &impl Serialize) -> Object {
    let json = serde_json::to_string(fields).unwrap_or_default();
    JSON::parse(&json).ok().and_then(|parsed| parsed.dyn_into().ok()).unwrap_or_default()
}

/// Adds a field to a plain object, which cannot fail.
pub(super) fn set(object: &Object, name: &str, value: &JsValue) {
    let set = Reflect::set(object, &name.into(), value);
    debug_assert!(set.is_ok(), "a plain object takes any field");
}

/// A number of milliseconds, or anything else that is counted, as JavaScript has numbers.
pub(super) fn counted(count: u64) -> JsValue {
    JsValue::from_f64(number(count))
}
