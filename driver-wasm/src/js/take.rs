use delayline_core::{Ask, Invalid, QueueName, Take};
use delayline_http::{Problem, named};
use wasm_bindgen::prelude::*;

use super::options::{Options, bad};

/// How long a lease lasts if nothing is said.
const LEASE_MS: u64 = 30_000;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** How jobs are taken. */
export interface TakeOptions {
  /** At most so many, 1 to 256; one if not given. */
  count?: number;
  /** How long the leases last, 1 s to 24 h; 30 s if not given. Nobody renews them but you, by `extend`. */
  leaseMs?: number;
  /** How long to wait for a job, at most 5 min; not at all if not given. While it waits, Redis is asked again and again. */
  waitMs?: number;
}
"#;

/// A take from these queues.
pub(super) fn take(queues: Vec<QueueName>, options: &mut Options) -> Result<Take, Problem> {
    let take = Take {
        queues,
        count: options.count("count")?.unwrap_or(1),
        lease_ms: options.ms("leaseMs")?.unwrap_or(LEASE_MS),
        wait_ms: options.ms("waitMs")?.unwrap_or(0),
    };
    take.validate()?;
    Ok(take)
}

/// A longer life for a lease.
pub(super) fn extend(text: &str, given: &JsValue) -> Result<Ask, Problem> {
    let mut options = Options::new("extend", given)?;
    let lease_ms = options.ms("leaseMs")?.ok_or_else(|| bad("extend needs leaseMs".to_owned()))?;
    options.finish()?;
    Invalid::lease(lease_ms)?;
    Ok(Ask::Extend { lease: named(text)?, lease_ms })
}
