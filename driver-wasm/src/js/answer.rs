use delayline_core::{
    Answer, CancelOutcome, ExtendOutcome, Inspected, RescheduleOutcome, SettleOutcome, Shards,
};
use delayline_core::{Published, UnixMs};
use delayline_http::Problem;
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
 * What became of a lease that was settled: `ok` as asked; `dead` as asked, and the job is a dead letter now; `repeat` a
 * verdict under this lease was carried out before; `expired` the job expired while it was held.
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
        Answer::Settled(outcome) => Ok(settled(outcome)?.into()),
        Answer::Extended(outcome, ends) => Ok(extended(outcome, ends)?),
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
            Some(outcome) => Ok(cancelled(*outcome).into()),
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

/// What became of a lease, or why it is no longer one.
pub(super) fn settled(outcome: SettleOutcome) -> Result<&'static str, Problem> {
    match outcome {
        SettleOutcome::Done => Ok("ok"),
        SettleOutcome::Died => Ok("dead"),
        SettleOutcome::Repeat => Ok("repeat"),
        SettleOutcome::Expired => Ok("expired"),
        SettleOutcome::Stale => Err(stale()),
        SettleOutcome::Gone => Err(gone()),
    }
}

fn extended(outcome: ExtendOutcome, ends: UnixMs) -> Result<JsValue, Problem> {
    match outcome {
        ExtendOutcome::Extended => Ok(counted(ends.0)),
        ExtendOutcome::Stale => Err(stale()),
        ExtendOutcome::Gone => Err(gone()),
    }
}

fn stale() -> Problem {
    Problem::conflict(
        "stale",
        "this lease has ended, so the job may be another consumer's: stop working on it, and extend sooner next time",
    )
}

fn gone() -> Problem {
    Problem::new(410, "gone", "the job no longer exists: it was acked, purged or destroyed")
}

fn cancelled(outcome: CancelOutcome) -> &'static str {
    match outcome {
        CancelOutcome::Cancelled => "cancelled",
        CancelOutcome::Leased => "leased",
        CancelOutcome::Dead => "dead",
        CancelOutcome::Gone => "gone",
    }
}

fn rescheduled(outcome: RescheduleOutcome, due: UnixMs) -> JsValue {
    let due_ms = (outcome == RescheduleOutcome::Moved).then_some(due.0);
    let outcome = match outcome {
        RescheduleOutcome::Moved => "moved",
        RescheduleOutcome::Leased => "leased",
        RescheduleOutcome::Dead => "dead",
        RescheduleOutcome::Gone => "gone",
        RescheduleOutcome::Expires => "expires",
    };
    object(&Rescheduled { outcome, due_ms }).into()
}
