use delayline_core::{Config, Subscription};
use delayline_http::Problem;
use wasm_bindgen::prelude::*;

use super::handler::Handler;
use super::options::Options;
use crate::Limits;

/// A queue's jobs in hand, at most.
const SLOTS: u16 = 200;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What a run of `pump` delivers to, and what it may take. */
export interface PumpOptions {
  /**
   * Gets the queue's due jobs. When it returns, or its promise resolves, the job is done, unless it returned a verdict;
   * what it throws is a failed attempt, and the message its reason. Without a handler the run takes no jobs: it only
   * tends the queues (leases end, jobs expire, what forwards is forwarded).
   */
  handler?: (job: Job) => unknown;
  /** The most requests to Redis and by the handler, all in all: 50 if not given. */
  requests?: number;
  /** How many of them the handler makes for a job: 1 if not given. */
  requestsPerJob?: number;
  /** The most requests and deliveries side by side: 6 if not given. */
  atOnce?: number;
  /** For how long new jobs are taken: 55 s if not given. The run may take longer, by a delivery and two requests. */
  forMs?: number;
  /** How far ahead a due time may be for the run to wait for it: 55 s if not given; 0 leaves when nothing is due. */
  stayMs?: number;
  /** The longest that a delivery takes, after which it is a failed attempt: 10 s if not given. */
  deliveryMs?: number;
  /** When an answer of Redis is overdue: 5 s if not given. */
  flightMs?: number;
}

/** What a run did. */
export interface Summary {
  /** Jobs whose delivery was begun. */
  delivered: number;
  /** Of them, those that are done. */
  acked: number;
  /** Of them, those that are to be tried again. */
  retried: number;
  /** Of them, those that are dead letters now. */
  died: number;
  /** Jobs taken and given back, as there was no time to deliver them. */
  released: number;
  /** Jobs whose verdict may not have been recorded: they come again when their lease ends. */
  unsettled: number;
  /** Ended leases, expired jobs, dead letters past their retention and forwarded jobs, by tending. */
  tended: number;
  /** Requests that were made, those of the handler included. */
  requests: number;
  /** Requests to Redis that brought no answer. */
  lost: number;
  /** Why it ended: nothing was left that is due soon, its time was over, its requests were used up. */
  ended: "idle" | "time" | "requests";
  /** In how many milliseconds the next thing is due of what it saw. */
  nextMs: number | null;
  /** What went wrong last, though the run may have got over it. */
  trouble: string | null;
}
"#;

/// A run, as its caller wants it.
pub(super) struct Pump {
    pub(super) limits: Limits,
    pub(super) handler: Handler,
}

impl Pump {
    pub(super) fn read(given: &JsValue) -> Result<Pump, Problem> {
        let mut options = Options::new("pump", given)?;
        let function = options.function("handler")?;
        let usual = Limits::default();
        let per_job = options.count("requestsPerJob")?.unwrap_or(usual.per_job);
        let at_once: Option<u32> = options.count("atOnce")?;
        let limits = Limits {
            requests: options.count("requests")?.unwrap_or(usual.requests),
            per_job: if function.is_some() { per_job } else { 0 },
            at_once: at_once.map_or(usual.at_once, |at_once| at_once.max(1) as usize),
            for_ms: options.ms("forMs")?.unwrap_or(usual.for_ms),
            stay_ms: options.ms("stayMs")?.unwrap_or(usual.stay_ms),
            delivery_ms: options.ms("deliveryMs")?.unwrap_or(usual.delivery_ms),
            flight_ms: options.ms("flightMs")?.unwrap_or(usual.flight_ms),
        };
        options.finish()?;
        let delivery_ms = limits.delivery_ms;
        Ok(Pump { limits, handler: Handler { function, delivery_ms } })
    }

    /// The engine's config for it.
    pub(super) fn config(&self, config: Config, queue: &delayline_core::QueueName) -> Config {
        let subscription = Subscription { queue: queue.clone(), weight: 1, max: SLOTS };
        let subscriptions = self.handler.function.iter().map(|_| subscription.clone()).collect();
        crate::run::config(&self.limits, Config { subscriptions, slots: SLOTS, ..config })
    }
}
