use delayline_core::{Ask, Due, QueueName, Span};
use delayline_http::{Draft, Problem, named};
use wasm_bindgen::prelude::*;

use super::options::Options;
use super::payload;
use crate::timer;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What may be said of a job that is published. */
export interface PublishOptions {
  /**
   * The job's name in its queue: 1 to 128 of letters, digits and `. _ - ~ : @ + = , ! * ( )`. If a job of this name is
   * there, be it a dead letter, nothing changes and the answer is a duplicate. A name is drawn if none is given.
   */
  id?: string;
  /** Due so long after the call, in milliseconds, by Redis's clock; at most 10 years. Excludes `at`. */
  delayMs?: number;
  /** Due at this time, by Redis's clock; at once if it is past. A number is of milliseconds since 1970. */
  at?: Date | number;
  /** When it expires, in milliseconds from the call; not shorter than its delay. */
  ttlMs?: number;
  /** The most attempts, 1 to 999; the queue's if not given. */
  attempts?: number;
  /**
   * The delay before another attempt: `none`, `fixed 5s`, `exponential 1s..1h jitter 10%`, or a ladder such as
   * `15s 3m 10m 1h`; the queue's if not given.
   */
  backoff?: string;
  /** Take the place of a waiting job of this id, in one step. One that is being run, or is dead, stays. */
  replace?: boolean;
  /** What else its consumer should know. */
  headers?: Record<string, string>;
  /**
   * What the payload is. `application/octet-stream` for bytes and `application/json` for all else if not given. A
   * string that is said to be something else than JSON is stored as it is.
   */
  contentType?: string;
}

/** A job of `publishMany`. */
export interface PublishItem extends PublishOptions {
  /** Bytes as they are, all else as JSON. */
  payload: unknown;
}

/** A job that was accepted, now or before. */
export interface Published {
  id: string;
  /** When it is due, by Redis's clock, in milliseconds since 1970; `null` for a duplicate, whose job keeps its own. */
  dueMs: number | null;
  /** Whether the id was in use, so that nothing changed. */
  duplicate: boolean;
  /** Whether it took the place of a waiting job. */
  replaced: boolean;
}

/** Another due time: one of the two. */
export type When = { delayMs: number } | { at: Date | number };
"#;

/// A job from its payload and options.
pub(super) fn draft(payload: &JsValue, options: &JsValue) -> Result<Draft, Problem> {
    read(payload, Options::new("publish", options)?)
}

/// A job from one object, in which its payload is too.
pub(super) fn item(item: &JsValue) -> Result<Draft, Problem> {
    let mut options = Options::new("a job", item)?;
    let missing = || Problem::bad("bad_payload", "a job needs a payload: write { payload: ... }");
    let payload = options.any("payload")?.ok_or_else(missing)?;
    read(&payload, options)
}

fn read(payload: &JsValue, mut options: Options) -> Result<Draft, Problem> {
    let id = options.text("id")?.map(|id| named(&id)).transpose()?;
    let due = when(&mut options)?;
    let draft = Draft {
        id,
        due,
        ttl: options.ms("ttlMs")?.map(Span),
        attempts: options.count("attempts")?,
        backoff: options.parsed("backoff")?,
        replace: options.flag("replace")?,
        headers: options.texts("headers")?,
        ..Draft::default()
    };
    let content_type = options.text("contentType")?;
    options.finish()?;
    let stored = payload::store(payload, content_type)?;
    Ok(Draft { body: stored.body, content_type: Some(stored.content_type), ..draft })
}

/// When, if that is said.
fn when(options: &mut Options) -> Result<Option<Due>, Problem> {
    match (options.ms("delayMs")?, options.time("at")?) {
        (Some(_), Some(_)) => Err(Problem::bad("bad_due", "delayMs and at exclude each other: give one")),
        (delay, at) => Ok(delay.map(|ms| Due::After { ms }).or(at.map(Due::At))),
    }
}

/// Another due time for a job.
pub(super) fn reschedule(queue: &QueueName, id: &str, given: &JsValue) -> Result<Ask, Problem> {
    let mut options = Options::new("reschedule", given)?;
    let due = when(&mut options)?;
    options.finish()?;
    let due = due.ok_or_else(|| Problem::bad("bad_due", "reschedule needs a time: give delayMs or at"))?;
    due.validate(timer::wall())?;
    Ok(Ask::Reschedule { queue: queue.clone(), jobs: vec![(named(id)?, due)] })
}
