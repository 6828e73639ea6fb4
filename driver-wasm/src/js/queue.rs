use delayline_core::{Ask, JobId, Lease, QueueName};
use delayline_http::{Problem, named};
use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use super::deployment::{Deployment, Want};
use super::error::Thrown;
use super::object::{object, set};
use super::options::Options;
use super::pump::Pump;
use super::{publish, take, verdict};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Where a queue is. */
export interface DelayQueueOptions {
  /** The REST endpoint: `https://NAME.upstash.io`, or that of `delayline rest`. */
  url: string;
  /** What proves that one may. */
  token: string;
  /** Called instead of the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** What every key begins with, in braces: `dl` if not given. */
  prefix?: string;
  /** How many shards the deployment was made with: 1 if not given. A wrong number is an error. */
  shards?: number;
  /** How long a call waits for its answer, in milliseconds: 10 s if not given. */
  timeoutMs?: number;
  /** How often a `take` that waits asks Redis, in milliseconds: 1 s if not given. */
  pollMs?: number;
  /** The largest payload: 1 MiB if not given. */
  maxPayloadBytes?: number;
}
"#;

/// A queue of delayed jobs, on any Redis behind Upstash's REST API.
///
/// Jobs are delivered at least once, never before they are due by Redis's clock, and tried again with backoff. Queues
/// are made by their first job; making this object asks nothing. Calls may overlap.
///
/// A promise is rejected with a `DelaylineError`, whose `code` is stable, if the call was not carried out or nobody knows.
#[wasm_bindgen]
pub struct DelayQueue {
    name: QueueName,
    deployment: Deployment,
}

#[wasm_bindgen]
impl DelayQueue {
    /// The queue of this name: each part of `queue` or `namespace~queue` is 1 to 255 of letters, digits, `.`, `_` and `-`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        name: &str,
        #[wasm_bindgen(unchecked_param_type = "DelayQueueOptions")] options: &JsValue,
    ) -> Result<DelayQueue, Thrown> {
        Ok(DelayQueue { name: named(name)?, deployment: Deployment::read(options)? })
    }

    /// Its name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// Publishes a job, due at once unless its options say otherwise.
    ///
    /// A `Uint8Array`, an `ArrayBuffer` and their like are stored as they are; everything else as JSON. After
    /// `unknown`, a job that was given an id can be published again safely.
    #[wasm_bindgen(unchecked_return_type = "Published")]
    pub async fn publish(
        &self,
        #[wasm_bindgen(unchecked_param_type = "unknown")] payload: JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "PublishOptions")] options: JsValue,
    ) -> Result<JsValue, Thrown> {
        let job = self.deployment.job(&self.name, publish::draft(&payload, &options)?)?;
        self.deployment.ask(Want::Publish(job)).await
    }

    /// Publishes jobs together, in as few requests as possible, and answers what became of each, in their order.
    ///
    /// If an option of any of them cannot be used, none is sent. If some of them were not accepted, the promise is
    /// rejected with `partly_published`, and the error's `outcomes` say what became of each.
    #[wasm_bindgen(js_name = publishMany, unchecked_return_type = "Published[]")]
    pub async fn publish_many(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Iterable<PublishItem>")] jobs: JsValue,
    ) -> Result<JsValue, Thrown> {
        let mut wants = Vec::new();
        for (n, item) in items(&jobs)?.iter().enumerate() {
            let job = publish::item(item).and_then(|draft| self.deployment.job(&self.name, draft));
            wants.push(Want::Publish(job.map_err(|problem| of_item(n, problem))?));
        }
        if wants.is_empty() {
            return Ok(Array::new().into());
        }
        let outcomes = self.deployment.ask_all(wants).await?;
        let lost = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        if lost == 0 {
            return Ok(outcomes.into_iter().flatten().collect::<Array>().into());
        }
        let detail = format!("{lost} of {} jobs were not accepted: see outcomes", outcomes.len());
        let outcomes: Array = outcomes.into_iter().map(settled).collect();
        Err(Thrown::from(Problem::behind("partly_published", detail)).with("outcomes", &outcomes))
    }

    /// Takes a waiting job away. One that is being run, or is dead, stays.
    #[wasm_bindgen(unchecked_return_type = "Cancelled")]
    pub async fn cancel(&self, id: String) -> Result<JsValue, Thrown> {
        let (queue, ids) = (self.name.clone(), vec![named::<JobId>(&id)?]);
        self.deployment.ask(Want::Ask(Ask::Cancel { queue, ids })).await
    }

    /// Gives a waiting job another due time. One that is being run, or is dead, stays.
    #[wasm_bindgen(unchecked_return_type = "Rescheduled")]
    pub async fn reschedule(
        &self,
        id: String,
        #[wasm_bindgen(unchecked_param_type = "When")] when: JsValue,
    ) -> Result<JsValue, Thrown> {
        let ask = publish::reschedule(&self.name, &id, &when)?;
        self.deployment.ask(Want::Ask(ask)).await
    }

    /// Reads a job; `null` if there is none of this name.
    #[wasm_bindgen(unchecked_return_type = "KeptJob | null")]
    pub async fn inspect(&self, id: String) -> Result<JsValue, Thrown> {
        let (queue, id) = (self.name.clone(), named(&id)?);
        self.deployment.ask(Want::Ask(Ask::Inspect { queue, id })).await
    }

    /// Reads the queue's sizes, counters and config.
    #[wasm_bindgen(unchecked_return_type = "QueueStats")]
    pub async fn stats(&self) -> Result<JsValue, Thrown> {
        self.deployment.ask(Want::Ask(Ask::Stats { queue: self.name.clone(), hours: 0 })).await
    }

    /// Takes due jobs, and waits for them if told to; none if none came.
    ///
    /// Each is to be settled by its lease: `ack`, `nack`, `snooze`, `release` or `bury`.
    #[wasm_bindgen(unchecked_return_type = "Job[]")]
    pub async fn take(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "TakeOptions")] options: JsValue,
    ) -> Result<JsValue, Thrown> {
        let mut options = Options::new("take", &options)?;
        let take = take::take(vec![self.name.clone()], &mut options)?;
        options.finish()?;
        self.deployment.ask(Want::Take(take)).await
    }

    /// The job is done. Rejected with `stale` if the lease has ended, with `gone` if the job has, and with `settled` if another
    /// verdict came first: that one stands.
    #[wasm_bindgen(unchecked_return_type = "Settled")]
    pub async fn ack(&self, lease: String) -> Result<JsValue, Thrown> {
        self.settle("ack", &lease, &JsValue::UNDEFINED).await
    }

    /// The attempt failed: the job is tried again later, or is a dead letter if that was its last attempt.
    #[wasm_bindgen(unchecked_return_type = "Settled")]
    pub async fn nack(
        &self,
        lease: String,
        #[wasm_bindgen(unchecked_optional_param_type = "NackOptions")] options: JsValue,
    ) -> Result<JsValue, Thrown> {
        self.settle("nack", &lease, &options).await
    }

    /// Later, without spending the attempt.
    #[wasm_bindgen(unchecked_return_type = "Settled")]
    pub async fn snooze(
        &self,
        lease: String,
        #[wasm_bindgen(unchecked_param_type = "{ delayMs: number }")] options: JsValue,
    ) -> Result<JsValue, Thrown> {
        self.settle("snooze", &lease, &options).await
    }

    /// As if never delivered.
    #[wasm_bindgen(unchecked_return_type = "Settled")]
    pub async fn release(&self, lease: String) -> Result<JsValue, Thrown> {
        self.settle("release", &lease, &JsValue::UNDEFINED).await
    }

    /// Dead at once: a dead letter, with its reason.
    #[wasm_bindgen(unchecked_return_type = "Settled")]
    pub async fn bury(
        &self,
        lease: String,
        #[wasm_bindgen(unchecked_optional_param_type = "{ reason?: string }")] options: JsValue,
    ) -> Result<JsValue, Thrown> {
        self.settle("bury", &lease, &options).await
    }

    /// Makes a lease last so long from now, and answers its new end in milliseconds since 1970, by Redis's clock.
    /// Rejected with `stale` if it has ended.
    #[wasm_bindgen(unchecked_return_type = "number")]
    pub async fn extend(
        &self,
        lease: String,
        #[wasm_bindgen(unchecked_param_type = "{ leaseMs: number }")] options: JsValue,
    ) -> Result<JsValue, Thrown> {
        self.deployment.ask(Want::Ask(take::extend(&lease, &options)?)).await
    }

    /// One run as cron would start it: hands the queue's due jobs to a handler, tends all queues, waits for what is due
    /// soon, and leaves within its limits. Runs side by side do not harm each other.
    #[wasm_bindgen(unchecked_return_type = "Summary")]
    pub async fn pump(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "PumpOptions")] options: JsValue,
    ) -> Result<JsValue, Thrown> {
        let summary = self.deployment.pump(&self.name, Pump::read(&options)?).await?;
        Ok(object(&summary).into())
    }

    async fn settle(&self, name: &'static str, lease: &str, options: &JsValue) -> Result<JsValue, Thrown> {
        let lease: Lease = named(lease)?;
        let verdict = verdict::read(name, Options::new(name, options)?)?;
        self.deployment.ask(Want::Ask(Ask::Settle { lease, verdict })).await
    }
}

/// The items of whatever can be iterated.
fn items(jobs: &JsValue) -> Result<Vec<JsValue>, Thrown> {
    let refused = || Problem::bad("bad_option", "publishMany needs an array of jobs: [{ payload: ... }]");
    let items = js_sys::try_iter(jobs).ok().flatten().ok_or_else(refused)?;
    items.collect::<Result<_, _>>().map_err(|_| refused().into())
}

fn of_item(n: usize, mut problem: Problem) -> Problem {
    problem.detail = format!("job {n}: {}", problem.detail);
    problem
}

/// What became of a job, in the form of `Promise.allSettled`.
fn settled(outcome: Result<JsValue, Thrown>) -> Object {
    let settled = Object::new();
    let (status, name, value) = match outcome {
        Ok(published) => ("fulfilled", "value", published),
        Err(thrown) => ("rejected", "reason", thrown.into()),
    };
    set(&settled, "status", &status.into());
    set(&settled, name, &value);
    settled
}
