use std::time::Duration;

use delayline_core::{DELAY_MAX_MS, Invalid, Reason, Verdict};
use delayline_http::Problem;
use js_sys::Reflect;
use wasm_bindgen::prelude::*;

use super::options::{Options, bad};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/**
 * How a delivery ends. `nack` is a failed attempt: without a delay the job's backoff decides when the next one is.
 * `snooze` is later, without spending the attempt; `release` as if never delivered; `bury` dead at once.
 */
export type Verdict =
  | { verdict: "ack" }
  | { verdict: "nack"; delayMs?: number; reason?: string }
  | { verdict: "snooze"; delayMs: number }
  | { verdict: "release" }
  | { verdict: "bury"; reason?: string };

/** What may be said of a failed attempt. */
export interface NackOptions {
  /** How long until the next attempt; the job's backoff decides if not given. */
  delayMs?: number;
  /** Why it failed: kept with the job, at most 1 KiB. */
  reason?: string;
}
"#;

/// The verdict that an object says.
pub(super) fn verdict(said: &JsValue) -> Result<Verdict, Problem> {
    let mut options = Options::new("a verdict", said)?;
    let name = options.required("verdict")?;
    read(&name, options)
}

/// Whether a handler's answer is an object that says a verdict.
pub(super) fn is_verdict(said: &JsValue) -> bool {
    said.is_object() && Reflect::has(said, &"verdict".into()).unwrap_or(false)
}

/// The verdict of that name.
pub(super) fn read(name: &str, mut options: Options) -> Result<Verdict, Problem> {
    let verdict = match name {
        "ack" => Verdict::Ack,
        "nack" => Verdict::Nack { after_ms: delay(&mut options)?, reason: reason(&mut options)? },
        "snooze" => {
            let needed = || bad("a snooze needs a delay: add delayMs".to_owned());
            Verdict::Snooze { after_ms: delay(&mut options)?.ok_or_else(needed)? }
        }
        "release" => Verdict::Release,
        "bury" => Verdict::Bury { reason: reason(&mut options)? },
        other => {
            let other: String = other.chars().take(80).collect();
            return Err(bad(format!("{other:?} is no verdict: use ack, nack, snooze, release or bury")));
        }
    };
    options.finish()?;
    Ok(verdict)
}

fn delay(options: &mut Options) -> Result<Option<u64>, Problem> {
    match options.ms("delayMs")? {
        Some(ms) if ms > DELAY_MAX_MS => {
            Err(Invalid::TooLong { what: "delay", length: Duration::from_millis(ms) }.into())
        }
        ms => Ok(ms),
    }
}

fn reason(options: &mut Options) -> Result<Reason, Problem> {
    Ok(Reason::new(&options.text("reason")?.unwrap_or_default()))
}
