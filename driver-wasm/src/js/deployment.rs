use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;

use delayline_core::wire::All;
use delayline_core::{
    Answer, Ask, Backlogged, Config, Engine, Fault, Identity, Job, JobId, JobIds, Millis, NewJob, Prefix,
    Pumping, QueueName, Request, Shards, Take, Token, Transmit, Verdict,
};
use delayline_http::{Draft, Problem, Terms};
use futures_util::future::{Either, select};
use wasm_bindgen::prelude::*;

use super::answer::shown;
use super::error::Thrown;
use super::options::{Options, bad};
use super::pump::Pump;
use crate::air::trouble;
use crate::calls::{self, NotOpened, concluded};
use crate::redis::{Deliver, Live, Nobody, Redis};
use crate::rest::{Endpoint, Landed};
use crate::{Summary, World, run, timer};

/// How many engines are kept for the calls to come.
const IDLE_MAX: usize = 8;
/// How long a deployment is taken to be the one that it was: Redis may be emptied, and another client open it otherwise.
const OPENED_MS: u64 = 600_000;
/// How much longer than its engine a call waits, so that it is the engine that tells what became of it.
const PATIENCE_MS: u64 = 500;
/// What is said of a job without an id when nobody knows whether it was accepted.
const NAMELESS: &str = "it is not known whether Redis accepted the job: publish it again if it may run twice; with an id \
                        it could be repeated safely";

/// A deployment behind a REST endpoint, and engines to ask it.
///
/// Each call has an engine to itself, so that none waits for another: in a worker, an invocation must not wait for what
/// another one has begun. One that has nothing under way is used again.
pub(super) struct Deployment {
    redis: Redis<All>,
    shards: Shards,
    timeout_ms: u64,
    max_payload: usize,
    config: Config,
    /// When the layout was found to be the one that was asked for.
    opened: Cell<Option<Millis>>,
    idle: RefCell<Vec<Engine>>,
    ids: RefCell<JobIds>,
}

/// What a call wants of the engine.
pub(super) enum Want {
    Publish(NewJob),
    Take(Take),
    Ask(Ask),
}

/// A call, and what became of it, once that is known.
struct Asked {
    /// Whether nobody can repeat it.
    is_nameless: bool,
    outcome: Option<Result<Answer, Problem>>,
}

impl Deployment {
    /// Reads `url`, `token`, `fetch`, `prefix`, `shards`, `timeoutMs`, `pollMs` and `maxPayloadBytes`.
    pub(super) fn read(given: &JsValue) -> Result<Deployment, Thrown> {
        let mut options = Options::new("a DelayQueue", given)?;
        let endpoint = Endpoint::new(&options.required("url")?, &options.required("token")?)?;
        let fetch = options.function("fetch")?;
        let prefix: Prefix = options.parsed("prefix")?.unwrap_or_default();
        let shards = shards(&mut options)?;
        let timeout_ms = options.ms("timeoutMs")?.unwrap_or(10_000);
        let poll_ms = options.ms("pollMs")?.unwrap_or(1_000);
        let max_payload = options.count::<u32>("maxPayloadBytes")?.map_or(1 << 20, |bytes| bytes as usize);
        options.finish()?;
        let usual = Config::default();
        let flight_ms = usual.flight_ms.min(timeout_ms);
        let config = Config {
            shards,
            pump: Pumping::WhileTaking,
            poll_ms,
            pump_lease_ms: 10_000,
            flight_ms,
            pending_jobs: 1 << 20,
            pending_bytes: 1 << 30,
            ..usual
        };
        config.validate().map_err(|error| bad(error.to_string()))?;
        Ok(Deployment {
            redis: Redis::new(All, endpoint, &prefix, shards, fetch, flight_ms),
            shards,
            timeout_ms,
            max_payload,
            config,
            opened: Cell::new(None),
            idle: RefCell::default(),
            ids: RefCell::default(),
        })
    }

    /// The job of a draft, with an id if it has none.
    pub(super) fn job(&self, queue: &QueueName, draft: Draft) -> Result<NewJob, Problem> {
        let terms = Terms { now: timer::wall(), max_payload: self.max_payload, timeout_ms: self.timeout_ms };
        let drawn = draw(&mut self.ids.borrow_mut())?;
        draft.into_job(queue.clone(), terms, || drawn)
    }

    /// Asks for one thing.
    pub(super) async fn ask(&self, want: Want) -> Result<JsValue, Thrown> {
        let answers = self.ask_all(vec![want]).await?;
        answers.into_iter().next().unwrap_or_else(|| Err(unanswered().into()))
    }

    /// Asks for several things together, and answers in their order.
    pub(super) async fn ask_all(&self, wants: Vec<Want>) -> Result<Vec<Result<JsValue, Thrown>>, Thrown> {
        let mut engine = self.engine()?;
        let world = Watched { live: Live { redis: &self.redis, to: Nobody }, trouble: RefCell::default() };
        if !self.is_opened() {
            self.open(&world, &mut engine).await?;
        }
        let wait_ms = wants.iter().map(Want::wait_ms).max().unwrap_or(0);
        let mut asked = self.tell(&mut engine, world.now(), wants);
        let waiting = asked.iter().filter(|asked| asked.outcome.is_none()).count();
        for (token, answer) in self.answers(&world, &mut engine, waiting, wait_ms).await {
            if let Some(asked) = usize::try_from(token.0).ok().and_then(|n| asked.get_mut(n)) {
                asked.outcome = Some(answer.map_err(Problem::from));
            }
        }
        if engine.is_drained() {
            self.opened.set(None);
        } else if engine.is_idle() && self.idle.borrow().len() < IDLE_MAX {
            self.idle.borrow_mut().push(engine);
        }
        let trouble = world.trouble.into_inner();
        Ok(asked.into_iter().map(|asked| asked.shown(trouble.as_deref(), self.shards)).collect())
    }

    /// Tells the engine, and answers what it has no room for.
    fn tell(&self, engine: &mut Engine, now: Millis, wants: Vec<Want>) -> Vec<Asked> {
        let tell = |(token, want): (Token, Want)| {
            let is_nameless = want.is_nameless();
            let refused = want.put(engine, now, token, self.timeout_ms).err();
            Asked { is_nameless, outcome: refused.map(Err) }
        };
        (0..).map(Token).zip(wants).map(tell).collect()
    }

    /// What the engine answers to so many calls; none of it if that takes too long.
    async fn answers(
        &self,
        world: &Watched<'_>,
        engine: &mut Engine,
        waiting: usize,
        wait_ms: u64,
    ) -> Vec<(Token, Result<Answer, Fault>)> {
        let linger_ms = if wait_ms > 0 { self.config.flight_ms } else { 0 };
        let concluded = pin!(concluded(world, engine, waiting, linger_ms));
        let limit = pin!(timer::sleep(wait_ms + self.timeout_ms + linger_ms + PATIENCE_MS));
        match select(concluded, limit).await {
            Either::Left((answered, _)) => answered,
            Either::Right(_) => Vec::new(),
        }
    }

    /// A run as cron would start it.
    pub(super) async fn pump(&self, queue: &QueueName, pump: Pump) -> Result<Summary, Thrown> {
        let salt = random()?;
        let config = pump.config(Config { salt, shards: self.shards, ..Config::default() }, queue);
        config.validate().map_err(|error| bad(error.to_string()))?;
        let world = Live { redis: &self.redis, to: pump.handler };
        let identity = Identity(random()?);
        let summary = run::run(&world, config, pump.limits, identity, !self.is_opened()).await?;
        if !self.is_opened() && summary.trouble.is_none() {
            self.opened.set(Some(timer::now()));
        }
        Ok(summary)
    }

    async fn open(&self, world: &Watched<'_>, engine: &mut Engine) -> Result<(), Thrown> {
        let opened = pin!(calls::open(world, engine, self.shards, self.timeout_ms));
        let limit = pin!(timer::sleep(self.timeout_ms + PATIENCE_MS));
        let why = match select(opened, limit).await {
            Either::Left((Ok(()), _)) => {
                self.opened.set(Some(timer::now()));
                return Ok(());
            }
            Either::Left((Err(NotOpened::Other(failure)), _)) => return Err(failure.into()),
            Either::Left((Err(NotOpened::Silent(fault)), _)) => fault,
            Either::Right(_) => Fault::NotSent(None),
        };
        Err(Thrown::from(Problem::from(why)).caused_by(world.trouble.borrow().as_deref()))
    }

    fn is_opened(&self) -> bool {
        self.opened.get().is_some_and(|at| timer::now().since(at) < OPENED_MS)
    }

    fn engine(&self) -> Result<Engine, Problem> {
        if let Some(engine) = self.idle.borrow_mut().pop() {
            return Ok(engine);
        }
        let config = Config { salt: random()?, ..self.config.clone() };
        Engine::new(config, Identity(random()?), timer::now()).map_err(|error| bad(error.to_string()))
    }
}

impl Want {
    /// Whether nobody can repeat it: it publishes a job whose id was drawn.
    fn is_nameless(&self) -> bool {
        matches!(self, Want::Publish(job) if job.generated)
    }

    fn wait_ms(&self) -> u64 {
        match self {
            Want::Take(take) => take.wait_ms,
            Want::Publish(_) | Want::Ask(_) => 0,
        }
    }

    /// Tells the engine, unless it has no room.
    pub(super) fn put(
        self,
        engine: &mut Engine,
        now: Millis,
        token: Token,
        timeout_ms: u64,
    ) -> Result<(), Problem> {
        match self {
            Want::Publish(job) => engine.publish(now, token, job).map_err(Problem::from),
            Want::Take(take) => engine.take(now, token, take).map_err(Problem::from),
            Want::Ask(ask) => {
                let asked: Result<(), Backlogged<Request>> =
                    engine.request(now, token, Request { ask, timeout_ms });
                asked.map_err(Problem::from)
            }
        }
    }
}

impl Asked {
    fn shown(self, trouble: Option<&str>, shards: Shards) -> Result<JsValue, Thrown> {
        match self.outcome.unwrap_or_else(|| Err(unanswered())) {
            Ok(answer) => shown(answer, shards),
            Err(problem) => {
                let is_lost = problem.code == "unknown" && self.is_nameless;
                let problem = if is_lost { Problem::unknown(NAMELESS) } else { problem };
                let cause = trouble.filter(|_| matches!(problem.code, "not_sent" | "unknown"));
                Err(Thrown::from(problem).caused_by(cause))
            }
        }
    }
}

/// A world that remembers what went wrong last.
struct Watched<'a> {
    live: Live<'a, All, Nobody>,
    trouble: RefCell<Option<String>>,
}

impl<'w> World for Watched<'w> {
    fn now(&self) -> Millis {
        self.live.now()
    }

    fn send<'a>(&'a self, transmit: Transmit<'_>) -> impl Future<Output = Landed> + use<'a, 'w> {
        let sent = self.live.send(transmit);
        async move {
            let landed = sent.await;
            if let Some(why) = trouble(&landed) {
                self.trouble.replace(Some(why));
            }
            landed
        }
    }

    fn deliver(&self, job: Job) -> impl Future<Output = Verdict> {
        self.live.to.deliver(job)
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> {
        self.live.sleep(ms)
    }
}

/// How many shards the deployment is said to have.
pub(super) fn shards(options: &mut Options) -> Result<Shards, Problem> {
    let Some(count) = options.count("shards")? else { return Ok(Shards::default()) };
    Shards::new(count).ok_or_else(|| bad(format!("shards is {count}, but must be 1 to {}", Shards::MAX)))
}

/// An id for a job that was given none.
pub(super) fn draw(ids: &mut JobIds) -> Result<JobId, Problem> {
    Ok(ids.next(timer::wall(), random()?))
}

/// Random bits.
pub(super) fn random() -> Result<u64, Problem> {
    getrandom::u64().map_err(|error| Problem::behind("broken", format!("there is no randomness: {error}")))
}

fn unanswered() -> Problem {
    Problem::unknown(
        "Redis did not answer in time: ask again; jobs that it may have handed out come again when their leases end",
    )
}
