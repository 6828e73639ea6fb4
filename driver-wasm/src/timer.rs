//! Time, as JavaScript tells it.

use delayline_core::{Millis, UnixMs};
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::number::{number, whole};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, ms: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(id: &JsValue);

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
}

/// The longest that `setTimeout` knows.
const LONGEST_MS: u64 = i32::MAX as u64;

/// Milliseconds that never go back. In a worker they stand still between awaits.
pub(crate) fn now() -> Millis {
    Millis(whole(performance_now()))
}

/// The wall clock.
pub(crate) fn wall() -> UnixMs {
    UnixMs(whole(js_sys::Date::now()))
}

/// Ends when so long has passed; leaves no timer behind when it is dropped.
pub(crate) async fn sleep(ms: u64) {
    let mut id = JsValue::UNDEFINED;
    let promise: Promise =
        Promise::new(&mut |resolve, _| id = set_timeout(&resolve, number(ms.min(LONGEST_MS))));
    let _timer = Timer(id);
    drop(JsFuture::from(promise).await);
}

struct Timer(JsValue);

impl Drop for Timer {
    fn drop(&mut self) {
        clear_timeout(&self.0);
    }
}
