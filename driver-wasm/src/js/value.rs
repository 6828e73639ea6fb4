use delayline_core::wire::Value;
use js_sys::{Array, BigInt, Error};
use wasm_bindgen::prelude::*;

use super::payload;
use crate::number::whole;

/// A reply of Redis as a client of RESP or of REST gives it.
pub(super) fn value(result: &JsValue) -> Value {
    if let Some(text) = result.as_string() {
        Value::Bytes(text.into())
    } else if let Some(bytes) = payload::bytes(result) {
        Value::Bytes(bytes.to_vec().into())
    } else if let Some(number) = result.as_f64() {
        counted(number)
    } else if let Some(truth) = result.as_bool() {
        Value::Int(truth.into())
    } else if let Some(number) = result.dyn_ref::<BigInt>() {
        number.to_string(10).map_or(Value::Nil, |digits| Value::Bytes(String::from(digits).into()))
    } else if Array::is_array(result) {
        Value::Array(Array::from(result).iter().map(|item| value(&item)).collect())
    } else if let Some(error) = result.dyn_ref::<Error>() {
        Value::Error(error.message().into())
    } else {
        Value::Nil
    }
}

fn counted(number: f64) -> Value {
    match i64::try_from(whole(number.abs())) {
        Ok(count) if number.fract() == 0.0 => Value::Int(if number < 0.0 { -count } else { count }),
        _ => Value::Nil,
    }
}
