use delayline_core::{Event, Fault, Shards};
use delayline_http::{Problem, outcome};
use js_sys::Object;
use serde_json::json;
use wasm_bindgen::prelude::*;

use super::answer;
use super::error::Thrown;
use super::job::delivered;
use super::object::{object, set};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What an engine tells. */
export type Event =
  /** The answer to a call, exactly one each unless it was forgotten: its `answer`, or else its `error`. */
  | { type: "answered"; token: number; answer: any; error?: undefined }
  | { type: "answered"; token: number; answer?: undefined; error: DelaylineError }
  /** A job of a subscription is to be run, then settled by its `held`: the engine renews its lease until then. */
  | { type: "run"; job: Job & { held: number } }
  /** The lease is lost: whoever runs the job should stop. Settling it does nothing any more. */
  | { type: "abandon"; held: number }
  /** What became of a settled job; `settled`: another verdict came first, and stands. */
  | { type: "settled"; held: number; outcome: Settled | "stale" | "gone" | "settled" }
  /** The verdict may not have been carried out: if not, the job comes again when its lease ends. */
  | { type: "unsettled"; held: number }
  /** What happened in a queue though nobody asked. */
  | { type: "tended"; queue: string; ended: number; expired: number; purged: number; forwarded: number }
  /** Something went wrong that no call waits for. */
  | { type: "fault"; error: DelaylineError }
  /** Redis lost the deployment, and it was opened anew otherwise: all that waited is answered with this, and nothing new is sent. */
  | { type: "ended"; error: DelaylineError }
  /** All is done and sent: nothing more will happen. */
  | { type: "drained" };
"#;

/// What an engine tells, as JavaScript has it.
pub(super) fn shown(event: Event, shards: Shards) -> Object {
    match event {
        Event::Answered { token, answer } => {
            let answered = object(&json!({ "type": "answered", "token": token }));
            let answer = answer.map_err(|fault| Thrown::from(Problem::from(fault)));
            match answer.and_then(|answer| answer::shown(answer, shards)) {
                Ok(answer) => set(&answered, "answer", &answer),
                Err(error) => set(&answered, "error", &error.into()),
            }
            answered
        }
        Event::Run(job) => {
            let run = object(&json!({ "type": "run" }));
            set(&run, "job", &delivered(job));
            run
        }
        Event::Abandon(held) => object(&json!({ "type": "abandon", "held": held })),
        Event::Settled { held, outcome } => {
            let outcome = outcome::settled(outcome).unwrap_or_else(|problem| problem.code);
            object(&json!({ "type": "settled", "held": held, "outcome": outcome }))
        }
        Event::Unsettled(held) => object(&json!({ "type": "unsettled", "held": held })),
        Event::Tended { queue, ended, expired, purged, forwarded } => object(&json!({
            "type": "tended", "queue": queue, "ended": ended, "expired": expired, "purged": purged,
            "forwarded": forwarded,
        })),
        Event::Fault(fault) => failed("fault", fault),
        Event::Ended(fault) => failed("ended", fault),
        Event::Drained => object(&json!({ "type": "drained" })),
    }
}

fn failed(what: &str, fault: Fault) -> Object {
    let told = object(&json!({ "type": what }));
    set(&told, "error", &Thrown::from(Problem::from(fault)).into());
    told
}
