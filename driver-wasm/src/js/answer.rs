use delayline_core::{Answer, Inspected, Published, RescheduleOutcome, Shards, UnixMs};
use delayline_http::{Problem, outcome};
use js_sys::Array;
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::error::Thrown;
use super::object::{counted, object};
use super::{job, stats};
use crate::Failure;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/**
 * What became of a lease that was settled: `ok` as asked; `dead` as asked, and the job is a dead letter now; `repeat` this
 * verdict was carried out before; `expired` the job expired while it was held.
 */
export type Settled = "ok" | "dead" | "repeat" | "expired";

/** What became of a job that was to be cancelled: one that is being run, or is dead, stays. */
export type Cancelled = "cancelled" | "leased" | "dead" | "gone";

/** What became of a job that was to be rescheduled: one that is being run, is dead, or would expire before, stays. */
export interface Rescheduled {
  outcome: "moved" | "leased" | "dead" | "gone" | "expires";
  /** The new due time if it moved, in milliseconds since 1970. */
  dueMs: number | null;
}
"#;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Accepted<'a> {
    id: &'a str,
    due_ms: Option<u64>,
    duplicate: bool,
    replaced: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rescheduled {
    outcome: &'static str,
    due_ms: Option<u64>,
}

/// What the engine answered, as JavaScript has it; the deployment is to have so many shards.
pub(super) fn shown(answer: Answer, shards: Shards) -> Result<JsValue, Thrown> {
    match answer {
        Answer::Taken(jobs) => Ok(jobs.into_iter().map(job::delivered).collect::<Array>().into()),
        Answer::Settled(outcome) => Ok(outcome::settled(outcome)?.into()),
        Answer::Extended(outcome, ends) => Ok(counted(outcome::extended(outcome, ends)?.0)),
        Answer::Inspected(stored) => {
            let found = stored.map(|stored| job::kept(Inspected::from(stored)));
            Ok(found.map_or(JsValue::NULL, JsValue::from))
        }
        Answer::Counted(counted) => Ok(stats::shown(counted).into()),
        Answer::Opened { layout, shards: found } => {
            Failure::if_other(shards, layout, found)?;
            Ok(JsValue::UNDEFINED)
        }
        Answer::Cancelled(outcomes) => match outcomes.first() {
            Some(outcome) => Ok(outcome::cancelled(*outcome).into()),
            None => Err(unexpected(&outcomes).into()),
        },
        Answer::Rescheduled(outcomes) => match outcomes.first() {
            Some((outcome, due)) => Ok(rescheduled(*outcome, *due)),
            None => Err(unexpected(&outcomes).into()),
        },
        other => match Published::try_from(other) {
            Ok(published) => Ok(accepted(&published)),
            Err(other) => Err(unexpected(&other).into()),
        },
    }
}

fn unexpected(answer: &impl std::fmt::Debug) -> Problem {
    Problem::broken(format!("unexpected answer {answer:?}"))
}

fn accepted(published: &Published) -> JsValue {
    let Published { id, due, duplicate, replaced } = published;
    let due_ms = due.map(|due| due.0);
    object(&Accepted { id: id.as_str(), due_ms, duplicate: *duplicate, replaced: *replaced }).into()
}

fn rescheduled(outcome: RescheduleOutcome, due: UnixMs) -> JsValue {
    let due_ms = (outcome == RescheduleOutcome::Moved).then_some(due.0);
    object(&Rescheduled { outcome: outcome::rescheduled(outcome), due_ms }).into()
}
