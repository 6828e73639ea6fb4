use std::collections::BTreeMap;

use delayline_core::{Backoff, Contents, Held, Inspected, Job};
use delayline_http::{Written, joined, state};
use js_sys::{Object, Uint8Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::object::{object, set};
use super::payload;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A delivered job. Whoever has it settles it by its lease, before that ends. Times are milliseconds since 1970. */
export interface Job<T = any> {
  id: string;
  queue: string;
  /** The right to end this delivery, or to extend it; any process may use it. */
  lease: string;
  /** Which attempt this is, from 1. */
  attempt: number;
  maxAttempts: number;
  /** Which delivery this is, from 1; snoozes and releases count here only. */
  deliveries: number;
  /** When it was due, by Redis's clock. */
  dueMs: number;
  /** How long after its due time it was handed out, in milliseconds. */
  lateMs: number;
  /** When the lease ends unless it is extended, by Redis's clock. */
  leaseEndsMs: number;
  /** When it was published, by the publisher's clock. */
  publishedMs: number;
  headers: Record<string, string>;
  contentType: string | null;
  /** Why the last attempt failed. */
  lastReason: string | null;
  /**
   * What the JSON says if the content type is that of JSON, or there is none, and it can be read; else a string; else,
   * and for `application/octet-stream`, a Uint8Array.
   */
  payload: T;
  /** The payload as it is stored. */
  body: Uint8Array;
}

/** A job as it is in its queue. Times are milliseconds since 1970, by Redis's clock unless it is said otherwise. */
export interface KeptJob<T = any> {
  id: string;
  state: "ready" | "delayed" | "leased" | "dead";
  dueMs: number | null;
  leaseEndsMs: number | null;
  diedMs: number | null;
  expiresMs: number | null;
  /** Attempts spent, the current one included. */
  attempt: number;
  /** `null` leaves it to the queue. */
  maxAttempts: number | null;
  deliveries: number;
  /** Why the last attempt failed, or why it died. */
  lastReason: string | null;
  /** Why the rest is missing: this version cannot read it. */
  unreadable?: string;
  /** By the publisher's clock. */
  publishedMs?: number;
  headers?: Record<string, string>;
  contentType?: string | null;
  /** `null` leaves it to the queue. */
  backoff?: string | null;
  payload?: T;
  body?: Uint8Array;
}
"#;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivered {
    id: String,
    queue: String,
    lease: String,
    attempt: u16,
    max_attempts: u16,
    deliveries: u16,
    due_ms: u64,
    late_ms: u64,
    lease_ends_ms: u64,
    published_ms: u64,
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    last_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    id: String,
    state: &'static str,
    due_ms: Option<u64>,
    lease_ends_ms: Option<u64>,
    died_ms: Option<u64>,
    expires_ms: Option<u64>,
    attempt: u16,
    max_attempts: Option<u16>,
    deliveries: u16,
    last_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    #[serde(flatten)]
    contents: Option<Described>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    published_ms: u64,
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    backoff: Option<Written<Backoff>>,
}

/// A delivered job.
pub(super) fn delivered(job: Job) -> Object {
    let described = object(&Delivered {
        id: job.lease.id.to_string(),
        queue: job.lease.queue.to_string(),
        lease: job.lease.to_string(),
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        deliveries: job.deliveries,
        due_ms: job.due.0,
        late_ms: job.late_ms,
        lease_ends_ms: job.lease_ends.0,
        published_ms: job.published.0,
        headers: joined(job.headers),
        content_type: job.content_type.clone(),
        last_reason: Some(job.last_reason.to_string()).filter(|reason| !reason.is_empty()),
        held: job.held,
    });
    with_payload(described, job.content_type.as_deref(), &job.body)
}

/// A job as it is in its queue.
pub(super) fn kept(job: Inspected) -> Object {
    let mut fields = Kept {
        id: job.id.to_string(),
        state: state(job.place),
        due_ms: job.due().map(|at| at.0),
        lease_ends_ms: job.lease_ends().map(|at| at.0),
        died_ms: job.died().map(|at| at.0),
        expires_ms: job.expires.map(|at| at.0),
        attempt: job.attempt(),
        max_attempts: job.max_attempts(),
        deliveries: job.deliveries(),
        last_reason: job.last_reason().map(String::from),
        unreadable: None,
        contents: None,
    };
    match job.contents {
        Err(error) => {
            fields.unreadable = Some(error.to_string());
            object(&fields)
        }
        Ok(Contents { published, headers, content_type, backoff, body, .. }) => {
            let (published_ms, headers, backoff) = (published.0, joined(headers), backoff.map(Written));
            let described = Described { published_ms, headers, content_type: content_type.clone(), backoff };
            fields.contents = Some(described);
            with_payload(object(&fields), content_type.as_deref(), &body)
        }
    }
}

fn with_payload(job: Object, content_type: Option<&str>, body: &[u8]) -> Object {
    set(&job, "payload", &payload::read(content_type, body));
    set(&job, "body", &Uint8Array::from(body));
    job
}
