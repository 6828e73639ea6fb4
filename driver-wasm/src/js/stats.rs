use std::collections::BTreeMap;

use delayline_core::{Backoff, Forward, QueueConfig, Stats};
use delayline_http::{Sizes, Written};
use js_sys::Object;
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::object::object;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A queue's sizes, counters and config. */
export interface QueueStats {
  paused: boolean;
  /** How many jobs it holds: due and not held, due later, held by consumers, dead letters. */
  sizes: { ready: number; delayed: number; leased: number; dead: number };
  /** The earliest due time of a waiting job, in milliseconds since 1970. */
  oldestDueMs: number | null;
  /** What happened so far. */
  counters: Record<
    | "published" | "granted" | "acked" | "nacked" | "snoozed" | "released" | "ended" | "died" | "requeued" | "purged"
    | "cancelled" | "expired" | "forwarded" | "lost" | "unreadable" | "newer" | "broken",
    number
  >;
  /** The mean of its records' lengths. */
  meanBytes: number;
  config: QueueConfig;
  /** The version of its config; 0 if it was never configured. */
  configVersion: number;
}

/** What a queue says of its jobs where they say nothing themselves; `null` is the default. */
export interface QueueConfig {
  attempts: number | null;
  backoff: string | null;
  retentionMs: number | null;
  buryExpired: boolean;
  maxJobs: number | null;
  maxBytes: number | null;
  forward: string | null;
  push: string | null;
}
"#;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    paused: bool,
    sizes: Sizes,
    oldest_due_ms: Option<u64>,
    counters: BTreeMap<&'static str, u64>,
    mean_bytes: u64,
    config: Config,
    config_version: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    attempts: Option<u16>,
    backoff: Option<Written<Backoff>>,
    retention_ms: Option<u64>,
    bury_expired: bool,
    max_jobs: Option<u64>,
    max_bytes: Option<u64>,
    forward: Option<Written<Forward>>,
    push: Option<String>,
}

/// A queue's statistics.
pub(super) fn shown(stats: Stats) -> Object {
    let Stats { ready, delayed, leased, dead, .. } = stats;
    object(&Shown {
        paused: stats.paused,
        sizes: Sizes { ready, delayed, leased, dead },
        oldest_due_ms: stats.oldest_due.map(|at| at.0),
        counters: stats.counters.named().into_iter().collect(),
        mean_bytes: stats.mean_bytes,
        config: stats.config.into(),
        config_version: stats.cfgver,
    })
}

impl From<QueueConfig> for Config {
    fn from(config: QueueConfig) -> Config {
        Config {
            attempts: config.attempts,
            backoff: config.backoff.map(Written),
            retention_ms: config.retention_ms,
            bury_expired: config.bury_expired,
            max_jobs: config.max_jobs,
            max_bytes: config.max_bytes,
            forward: config.forward.map(Written),
            push: config.push,
        }
    }
}
