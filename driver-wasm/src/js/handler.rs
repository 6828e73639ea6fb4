use std::pin::pin;

use delayline_core::{Job, Reason, Verdict};
use futures_util::future::{Either, select};
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::job::delivered;
use super::verdict;
use crate::redis::Deliver;
use crate::timer;

/// Who gets jobs: a function of JavaScript, within bounded time.
pub(super) struct Handler {
    pub(super) function: Option<Function>,
    pub(super) delivery_ms: u64,
}

impl Deliver for Handler {
    async fn deliver(&self, job: Job) -> Verdict {
        let Some(function) = &self.function else { return Verdict::Release };
        let (handled, slept) = (pin!(handle(function, job)), pin!(timer::sleep(self.delivery_ms)));
        match select(handled, slept).await {
            Either::Left((verdict, _)) => verdict,
            Either::Right(_) => failed(&format!("the handler took longer than {} ms", self.delivery_ms)),
        }
    }
}

async fn handle(function: &Function, job: Job) -> Verdict {
    let called = function.call1(&JsValue::UNDEFINED, &delivered(job));
    let answered = match called {
        Ok(answered) => JsFuture::from(Promise::resolve(&answered)).await,
        Err(error) => Err(error),
    };
    match answered {
        Ok(said) if verdict::is_verdict(&said) => {
            verdict::verdict(&said).unwrap_or_else(|problem| failed(&problem.detail))
        }
        Ok(_) => Verdict::Ack,
        Err(error) => failed(&reason(&error)),
    }
}

fn failed(reason: &str) -> Verdict {
    Verdict::Nack { after_ms: None, reason: Reason::new(reason) }
}

/// What was thrown, in words.
fn reason(thrown: &JsValue) -> String {
    let message =
        js_sys::Reflect::get(thrown, &"message".into()).ok().and_then(|message| message.as_string());
    message.or_else(|| thrown.as_string()).unwrap_or_else(|| "the handler threw what is no Error".to_owned())
}
