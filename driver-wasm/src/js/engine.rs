use std::collections::BTreeMap;

use delayline_core::wire::decode;
use delayline_core::{
    Ask, Config, Credit, Held, Identity, JobIds, Keyspace, Kind, Millis, Prefix, Pumping, QueueName, Shards,
    Subscription, Ticket, Token,
};
use delayline_http::{Problem, Terms, named};
use js_sys::Array;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

use super::deployment::{self, Want, draw};
use super::error::Thrown;
use super::options::{Options, bad};
use super::value::value;
use super::{event, publish, take, transmit, verdict};
use crate::number::{number, whole};
use crate::timer;

/// How many round trips are remembered whose answers may still come.
const TICKETS_MAX: usize = 1_024;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What an engine is to do, and its limits. Times are in milliseconds. */
export interface EngineConfig {
  /** What every key begins with, in braces: `dl` if not given. */
  prefix?: string;
  /** How many shards the deployment was made with: 1 if not given. */
  shards?: number;
  /** The queues whose jobs come as `run` events; none if not given. */
  subscriptions?: { queue: string; weight?: number; max?: number }[];
  /** How many of those jobs may be in hand at once, over all queues: 100 if not given. */
  slots?: number;
  /**
   * When the engine tends shards: never, while a take waits (if not given), once where something is due (for a run that
   * cron starts), or always (for a worker).
   */
  pump?: "never" | "whileTaking" | "whenDue" | "always";
  /** How long the leases of subscribed jobs last; they are renewed at a third. 30 s if not given. */
  leaseMs?: number;
  /** How often an idle queue is asked: 1 s if not given. */
  pollMs?: number;
  /** When an answer is overdue: 5 s if not given. */
  flightMs?: number;
  /** How long a call waits for its answer: 10 s if not given. */
  timeoutMs?: number;
  /** The largest payload: 1 MiB if not given. */
  maxPayloadBytes?: number;
}
"#;

/// The queue without any I/O, for those who bring their own transport: it says what to send and when to look again.
///
/// Create one with the reading of a clock that never goes back, such as `performance.now()`; all `nowMs` are of it. Tell
/// it what you want (`publish`, `take`, ...; each with a token of your choice, by which it is answered once), and what
/// happened (`handleReplies`, `handleLoss`, `handleTimeout`). After each of these calls, alternate `pollTransmit` and
/// `pollEvent` until both answer `undefined`, then call `handleTimeout` at the time that `pollTimeout` says.
///
/// Each transmit is one round trip. A reply that never comes needs no report: the engine sends again by itself, and
/// what arrives twice has the effect of once. Only drawn ids and the time of publishing are read from outside.
#[wasm_bindgen]
pub struct Engine {
    core: delayline_core::Engine,
    keys: Keyspace,
    shards: Shards,
    ids: JobIds,
    timeout_ms: u64,
    max_payload: usize,
    /// What decoding the answers needs, by the round trip.
    kinds: BTreeMap<Ticket, Vec<Kind>>,
}

#[wasm_bindgen]
impl Engine {
    /// A new engine. It has an identity of its own, drawn at random.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        #[wasm_bindgen(unchecked_optional_param_type = "EngineConfig")] config: &JsValue,
    ) -> Result<Engine, Thrown> {
        let mut options = Options::new("an Engine", config)?;
        let prefix: Prefix = options.parsed("prefix")?.unwrap_or_default();
        let shards = deployment::shards(&mut options)?;
        let timeout_ms = options.ms("timeoutMs")?.unwrap_or(10_000);
        let max_payload = options.count::<u32>("maxPayloadBytes")?.map_or(1 << 20, |bytes| bytes as usize);
        let config = read(&mut options, shards)?;
        options.finish()?;
        let identity = Identity(deployment::random()?);
        let core = delayline_core::Engine::new(config, identity, at(now_ms))
            .map_err(|error| bad(error.to_string()))?;
        let keys = Keyspace::new(&prefix, shards);
        let (ids, kinds) = (JobIds::default(), BTreeMap::new());
        Ok(Engine { core, keys, shards, ids, timeout_ms, max_payload, kinds })
    }

    /// Checks that the deployment has so many shards and a layout that is known; answered by `undefined`. Ask it first.
    pub fn open(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64, token: f64) -> Result<(), Thrown> {
        let shards = self.shards;
        self.put(now_ms, token, Want::Ask(Ask::Open { shards }))
    }

    /// Publishes a job; answered by a `Published`.
    pub fn publish(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        queue: &str,
        #[wasm_bindgen(unchecked_param_type = "unknown")] payload: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "PublishOptions")] options: &JsValue,
    ) -> Result<(), Thrown> {
        let draft = publish::draft(payload, options)?;
        let drawn = draw(&mut self.ids)?;
        let (now, timeout_ms) = (timer::wall(), self.timeout_ms);
        let terms = Terms { now, max_payload: self.max_payload, timeout_ms };
        let job = draft.into_job(named(queue)?, terms, || drawn)?;
        self.put(now_ms, token, Want::Publish(job))
    }

    /// Takes due jobs from the first of these queues that has any; answered by a `Job[]`, which is empty if none came.
    pub fn take(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        #[wasm_bindgen(unchecked_param_type = "string[]")] queues: &Array,
        #[wasm_bindgen(unchecked_optional_param_type = "TakeOptions")] options: &JsValue,
    ) -> Result<(), Thrown> {
        let queues = queues.iter().map(|queue| named(&queue.as_string().unwrap_or_default()));
        let queues: Vec<QueueName> = queues.collect::<Result<_, _>>()?;
        if queues.is_empty() {
            return Err(bad("no queue is named: name at least one".to_owned()).into());
        }
        let mut options = Options::new("take", options)?;
        let take = take::take(queues, &mut options)?;
        options.finish()?;
        self.put(now_ms, token, Want::Take(take))
    }

    /// Ends a delivery by its lease; answered by a `Settled`, or by the error `stale`, `gone` or `settled`.
    pub fn settle(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        lease: &str,
        #[wasm_bindgen(unchecked_param_type = "Verdict")] verdict: &JsValue,
    ) -> Result<(), Thrown> {
        let (lease, verdict) = (named(lease)?, verdict::verdict(verdict)?);
        self.put(now_ms, token, Want::Ask(Ask::Settle { lease, verdict }))
    }

    /// Makes a lease last so long from now; answered by its new end, or by the error `stale` or `gone`.
    pub fn extend(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        lease: &str,
        #[wasm_bindgen(unchecked_param_type = "{ leaseMs: number }")] options: &JsValue,
    ) -> Result<(), Thrown> {
        let ask = take::extend(lease, options)?;
        self.put(now_ms, token, Want::Ask(ask))
    }

    /// Takes a waiting job away; answered by a `Cancelled`.
    pub fn cancel(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        queue: &str,
        id: &str,
    ) -> Result<(), Thrown> {
        let ask = Ask::Cancel { queue: named(queue)?, ids: vec![named(id)?] };
        self.put(now_ms, token, Want::Ask(ask))
    }

    /// Gives a waiting job another due time; answered by a `Rescheduled`.
    pub fn reschedule(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        queue: &str,
        id: &str,
        #[wasm_bindgen(unchecked_param_type = "When")] when: &JsValue,
    ) -> Result<(), Thrown> {
        let ask = publish::reschedule(&named(queue)?, id, when)?;
        self.put(now_ms, token, Want::Ask(ask))
    }

    /// Reads a job; answered by a `KeptJob`, or `null`.
    pub fn inspect(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        queue: &str,
        id: &str,
    ) -> Result<(), Thrown> {
        let ask = Ask::Inspect { queue: named(queue)?, id: named(id)? };
        self.put(now_ms, token, Want::Ask(ask))
    }

    /// Reads a queue's sizes, counters and config; answered by a `QueueStats`.
    pub fn stats(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        token: f64,
        queue: &str,
    ) -> Result<(), Thrown> {
        let ask = Ask::Stats { queue: named(queue)?, hours: 0 };
        self.put(now_ms, token, Want::Ask(ask))
    }

    /// A job of a `run` event ends. A second call, and one after the job was abandoned, does nothing.
    #[wasm_bindgen(js_name = settleHeld)]
    pub fn settle_held(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        held: f64,
        #[wasm_bindgen(unchecked_param_type = "Verdict")] verdict: &JsValue,
    ) -> Result<(), Thrown> {
        let verdict = verdict::verdict(verdict)?;
        if let Some(held) = numbered::<Held>(held) {
            self.core.settle(at(now_ms), held, verdict);
        }
        Ok(())
    }

    /// Nobody waits for the token any more. Jobs that a take is still granted are given back; all else is carried out.
    pub fn forget(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64, token: f64) -> Result<(), Thrown> {
        self.core.forget(at(now_ms), self::token(token)?);
        Ok(())
    }

    /// Takes nothing new, answers takes, sends what is in hand, waits for jobs to be settled; then comes `drained`.
    pub fn drain(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) {
        self.core.drain(at(now_ms));
    }

    /// What Redis answered to a round trip, one reply a command in their order; missing ones count as lost. Replies that
    /// come later than was waited for are welcome; tickets that are not known are ignored.
    #[wasm_bindgen(js_name = handleReplies)]
    pub fn handle_replies(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        ticket: f64,
        #[wasm_bindgen(unchecked_param_type = "Reply[]")] replies: &Array,
    ) {
        let Some(ticket) = numbered::<Ticket>(ticket) else { return };
        let Some(kinds) = self.kinds.remove(&ticket) else { return };
        let replies = kinds.into_iter().zip(replies.iter()).map(|(kind, reply)| decode(kind, value(&reply)));
        self.core.handle_replies(at(now_ms), ticket, replies);
    }

    /// A round trip failed, and may or may not have been carried out.
    #[wasm_bindgen(js_name = handleLoss)]
    pub fn handle_loss(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64, ticket: f64) {
        if let Some(ticket) = numbered::<Ticket>(ticket) {
            self.core.handle_loss(at(now_ms), ticket);
        }
    }

    /// Time has come to `nowMs`.
    #[wasm_bindgen(js_name = handleTimeout)]
    pub fn handle_timeout(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) {
        self.core.handle_timeout(at(now_ms));
    }

    /// The next round trip to make, if there is one.
    #[wasm_bindgen(js_name = pollTransmit, unchecked_return_type = "Transmit | undefined")]
    pub fn poll_transmit(&mut self) -> JsValue {
        let Some(transmit) = self.core.poll_transmit(Credit::UNLIMITED) else { return JsValue::UNDEFINED };
        self.kinds.insert(transmit.ticket, transmit.kinds());
        let shown = transmit::shown(&self.keys, &transmit).into();
        while self.kinds.len() > TICKETS_MAX {
            self.kinds.pop_first();
        }
        shown
    }

    /// The next thing to know, if there is one.
    #[wasm_bindgen(js_name = pollEvent, unchecked_return_type = "Event | undefined")]
    pub fn poll_event(&mut self) -> JsValue {
        let event = self.core.poll_event();
        event.map_or(JsValue::UNDEFINED, |event| event::shown(event, self.shards).into())
    }

    /// When to call `handleTimeout`, at the latest, by the engine's clock; after all else is polled.
    #[wasm_bindgen(js_name = pollTimeout)]
    pub fn poll_timeout(&self) -> Option<f64> {
        self.core.poll_timeout().map(|(at, _)| number(at.0))
    }

    /// How many publishes would be accepted now; beyond that they throw `busy`.
    #[wasm_bindgen(getter)]
    pub fn room(&self) -> f64 {
        number(self.core.room() as u64)
    }

    /// How many jobs of `run` events are in hand.
    #[wasm_bindgen(getter)]
    pub fn held(&self) -> f64 {
        number(self.core.held() as u64)
    }

    /// Whether nothing is under way.
    #[wasm_bindgen(getter, js_name = isIdle)]
    pub fn is_idle(&self) -> bool {
        self.core.is_idle()
    }

    /// Whether it was drained and nothing is left to do.
    #[wasm_bindgen(getter, js_name = isDrained)]
    pub fn is_drained(&self) -> bool {
        self.core.is_drained()
    }

    fn put(&mut self, now_ms: f64, token: f64, want: Want) -> Result<(), Thrown> {
        let token = self::token(token)?;
        want.put(&mut self.core, at(now_ms), token, self.timeout_ms).map_err(Thrown::from)
    }
}

fn read(options: &mut Options, shards: Shards) -> Result<Config, Problem> {
    let usual = Config::default();
    let pump = match options.text("pump")?.as_deref() {
        Some("never") => Pumping::Never,
        None | Some("whileTaking") => Pumping::WhileTaking,
        Some("whenDue") => Pumping::WhenDue,
        Some("always") => Pumping::Always,
        Some(other) => {
            let other: String = other.chars().take(80).collect();
            return Err(bad(format!("pump is {other:?}: use never, whileTaking, whenDue or always")));
        }
    };
    Ok(Config {
        shards,
        subscriptions: subscriptions(options)?,
        slots: options.count("slots")?.unwrap_or(100),
        pump,
        lease_ms: options.ms("leaseMs")?.unwrap_or(usual.lease_ms),
        poll_ms: options.ms("pollMs")?.unwrap_or(1_000),
        flight_ms: options.ms("flightMs")?.unwrap_or(usual.flight_ms),
        salt: deployment::random()?,
        ..usual
    })
}

fn subscriptions(options: &mut Options) -> Result<Vec<Subscription>, Problem> {
    let Some(given) = options.any("subscriptions")? else { return Ok(Vec::new()) };
    if !Array::is_array(&given) {
        return Err(bad("subscriptions must be an array: [{ queue: ... }]".to_owned()));
    }
    let read = |item: JsValue| {
        let mut options = Options::new("a subscription", &item)?;
        let subscription = Subscription {
            queue: named(&options.required("queue")?)?,
            weight: options.count("weight")?.unwrap_or(1),
            max: options.count("max")?.unwrap_or(100),
        };
        options.finish()?;
        Ok(subscription)
    };
    Array::from(&given).iter().map(read).collect()
}

fn at(now_ms: f64) -> Millis {
    Millis(whole(now_ms))
}

fn token(token: f64) -> Result<Token, Problem> {
    numbered(token).ok_or_else(|| bad("a token is a whole number, 0 or more".to_owned()))
}

/// What JavaScript knows by its number.
fn numbered<T: DeserializeOwned>(number: f64) -> Option<T> {
    let is_whole = number.fract() == 0.0 && (0.0..9e15).contains(&number);
    is_whole.then(|| serde_json::from_value(whole(number).into()).ok()).flatten()
}
