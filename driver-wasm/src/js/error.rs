use delayline_http::Problem;
use js_sys::{Error, Object};
use wasm_bindgen::prelude::*;

use super::object::{object, set};
use crate::Failure;
use crate::rest::EndpointError;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What every failed call throws, or rejects its promise with. */
export interface DelaylineError extends Error {
  readonly name: "DelaylineError";
  /** What kind of failure it is. A code never changes its meaning. */
  readonly code: ErrorCode;
  /** What went wrong last on the way to Redis, where that is known. */
  readonly cause?: Error;
  /** With `partly_published`: what became of each job, in their order. */
  readonly outcomes?: PromiseSettledResult<Published>[];
  /** With `unsettled`: what the run did. */
  readonly summary?: Summary;
}

/**
 * Was it carried out? Certainly not, after `not_sent`, `queue_full`, `busy` and whatever names an option. Nobody knows,
 * after `unknown`: repeat it; a publish with an id can be repeated safely.
 */
export type ErrorCode =
  | "not_sent" | "unknown" | "queue_full" | "busy" | "shutting_down" | "gated" | "broken"
  | "stale" | "gone" | "settled"
  | "partly_published" | "unsettled" | "unreachable" | "wrong_shards" | "newer_layout"
  | "bad_option" | "unknown_option" | "bad_endpoint" | "bad_queue_name" | "bad_job_id" | "bad_lease" | "bad_name"
  | "bad_payload" | "payload_too_large" | "bad_job" | "bad_due" | "bad_attempts" | "bad_backoff"
  | "delay_too_long" | "ttl_too_short" | "ttl_too_long" | "too_long";
"#;

/// What JavaScript catches: an `Error` with a code.
#[derive(Debug)]
pub struct Thrown(Error);

impl Thrown {
    /// Says what went wrong last on the way to Redis.
    pub(super) fn caused_by(self, trouble: Option<&str>) -> Thrown {
        if let Some(trouble) = trouble {
            self.0.set_cause(&Error::new(trouble));
        }
        self
    }

    /// Says something else besides.
    pub(super) fn with(self, name: &str, value: &JsValue) -> Thrown {
        set(self.0.unchecked_ref::<Object>(), name, value);
        self
    }
}

impl From<Problem> for Thrown {
    fn from(problem: Problem) -> Thrown {
        let error = Error::new(&problem.detail);
        error.set_name("DelaylineError");
        Thrown(error).with("code", &problem.code.into())
    }
}

impl From<Failure> for Thrown {
    fn from(failure: Failure) -> Thrown {
        let code = match &failure {
            Failure::Unreachable { .. } => "unreachable",
            Failure::Shards { .. } => "wrong_shards",
            Failure::Layout { .. } => "newer_layout",
            Failure::Config(_) => "bad_option",
            Failure::Unsettled { .. } => "unsettled",
        };
        let thrown = Thrown::from(Problem::behind(code, &failure));
        match &failure {
            Failure::Unsettled { summary } => thrown.with("summary", &object(summary)),
            _ => thrown,
        }
    }
}

impl From<EndpointError> for Thrown {
    fn from(error: EndpointError) -> Thrown {
        Problem::bad("bad_endpoint", error).into()
    }
}

impl From<Thrown> for JsValue {
    fn from(thrown: Thrown) -> JsValue {
        thrown.0.into()
    }
}
