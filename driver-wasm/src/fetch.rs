//! HTTP by JavaScript's `fetch`, in whatever runs it: it follows no redirect and gives up by itself.

use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::number::number;
use crate::rest::Cut;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = fetch, catch)]
    fn global_fetch(url: &str, init: &Object) -> Result<Promise, JsValue>;

    type AbortSignal;
    #[wasm_bindgen(static_method_of = AbortSignal)]
    fn timeout(ms: f64) -> AbortSignal;

    type Response;
    #[wasm_bindgen(method, getter)]
    fn status(this: &Response) -> u16;
    #[wasm_bindgen(method, getter)]
    fn headers(this: &Response) -> Headers;
    #[wasm_bindgen(method, getter)]
    fn body(this: &Response) -> Option<Stream>;
    #[wasm_bindgen(method, js_name = arrayBuffer, catch)]
    fn array_buffer(this: &Response) -> Result<Promise, JsValue>;

    type Headers;
    #[wasm_bindgen(method)]
    fn get(this: &Headers, name: &str) -> Option<String>;

    type Stream;
    #[wasm_bindgen(method, js_name = getReader, catch)]
    fn get_reader(this: &Stream) -> Result<Reader, JsValue>;

    type Reader;
    #[wasm_bindgen(method, catch)]
    fn read(this: &Reader) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &Reader) -> Result<Promise, JsValue>;
}

/// A request by `POST`.
pub(crate) struct Post<'a> {
    pub(crate) url: &'a str,
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    pub(crate) body: &'a [u8],
    /// When to give up.
    pub(crate) timeout_ms: u64,
}

/// What came back; its body may be still on its way.
pub(crate) struct Got(Response);

impl Post<'_> {
    /// Sends it with `fetch`, or with the function that is given for it.
    pub(crate) async fn send(&self, fetch: Option<&Function>) -> Result<Got, Cut> {
        let init = self.init().map_err(|error| cut(&error))?;
        let promise: Promise = match fetch {
            None => global_fetch(self.url, &init).map_err(|error| cut(&error))?,
            Some(fetch) => {
                let answered = fetch.call2(&JsValue::UNDEFINED, &self.url.into(), &init);
                Promise::resolve(&answered.map_err(|error| cut(&error))?)
            }
        };
        let response: JsValue = JsFuture::from(promise).await.map_err(|error| cut(&error))?;
        Ok(Got(response.unchecked_into()))
    }

    fn init(&self) -> Result<Object, JsValue> {
        let headers: Array =
            self.headers.iter().map(|(name, value)| Array::of2(&(*name).into(), &(*value).into())).collect();
        let signal = AbortSignal::timeout(number(self.timeout_ms));
        let init = Object::new();
        let body = Uint8Array::from(self.body);
        let fields: [(&str, &JsValue); 5] = [
            ("method", &"POST".into()),
            ("headers", &headers),
            ("body", &body),
            ("redirect", &"manual".into()),
            ("signal", signal.as_ref()),
        ];
        for (name, value) in fields {
            Reflect::set(&init, &name.into(), value)?;
        }
        Ok(init)
    }
}

impl Got {
    pub(crate) fn status(&self) -> u16 {
        self.0.status()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.0.headers().get(name)
    }

    /// The whole body.
    pub(crate) async fn bytes(&self) -> Result<Vec<u8>, Cut> {
        let promise = self.0.array_buffer().map_err(|error| cut(&error))?;
        let buffer: JsValue = JsFuture::from(promise).await.map_err(|error| cut(&error))?;
        Ok(Uint8Array::new(&buffer).to_vec())
    }

    /// The beginning of the body, as far as it comes; the rest is not waited for.
    pub(crate) async fn beginning(&self, limit: usize) -> Vec<u8> {
        let mut read = Vec::new();
        let Some(reader) = self.0.body().and_then(|stream| stream.get_reader().ok()) else { return read };
        while read.len() < limit {
            let Ok(promise) = reader.read() else { break };
            let Ok(chunk): Result<JsValue, _> = JsFuture::from(promise).await else { break };
            match Reflect::get(&chunk, &"value".into()) {
                Ok(bytes) if !bytes.is_undefined() => read.extend(Uint8Array::new(&bytes).to_vec()),
                _ => break,
            }
        }
        if let Ok(cancelled) = reader.cancel() {
            drop(JsFuture::from(cancelled).await);
        }
        read.truncate(limit);
        read
    }
}

/// What an error of JavaScript says.
pub(crate) fn said(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message.or_else(|| error.as_string()).unwrap_or_else(|| "the request failed".to_owned())
}

fn cut(error: &JsValue) -> Cut {
    let name = Reflect::get(error, &"name".into()).ok().and_then(|name| name.as_string());
    if name.as_deref() == Some("TimeoutError") { Cut::TimedOut } else { Cut::Failed(said(error)) }
}
