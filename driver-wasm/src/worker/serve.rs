use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::wire::All;
use delayline_core::{
    Answer, Ask, Config as Engines, Engine, Fault, Identity, JobId, JobIds, NewJob, Published, QueueName,
    Request as Question, RescheduleOutcome, Token, UnixMs,
};
use delayline_http::body::PayloadLimit;
use delayline_http::{
    Asked, BearerToken, Call, Draft, Headers, Problem, Response as Answered, Terms, inspected, published,
};
use futures_util::StreamExt;
use worker::{Request, Response, Stub};

use super::config::Config;
use super::opened;
use super::ticker;
use crate::calls::NotOpened;
use crate::redis::{Live, Nobody};
use crate::target::target;
use crate::{calls, timer};

/// How long a caller waits for Redis.
const TIMEOUT_MS: u64 = 10_000;
const PAYLOAD: PayloadLimit = PayloadLimit { bytes: 1 << 20, setting: "nothing: a worker takes no more" };
/// How many engines are kept for the requests to come.
const IDLE_MAX: usize = 8;

thread_local! {
    /// Engines that nobody uses, by deployment. A request has one to itself, since it must not wait for another's I/O.
    static IDLE: RefCell<BTreeMap<String, Vec<Engine>>> = const { RefCell::new(BTreeMap::new()) };
    static IDS: RefCell<JobIds> = RefCell::new(JobIds::default());
}

/// Answers a publisher's request as the native service does: `POST /v1/queues/{queue}/jobs` and `…/batch` (an array),
/// `GET`, `DELETE` and `PATCH /v1/queues/{queue}/jobs/{id}`, `GET /v1/queues/{queue}`. Who calls must know the token of
/// `DELAYLINE_API_TOKEN`; without one all are refused.
///
/// # Errors
/// If the platform fails; what the queue answers is a response.
pub async fn serve(request: Request, config: &Config) -> worker::Result<Response> {
    Served::new(config).answer(request).await
}

/// The same, and brings the alarm of a Durable Object forward to what was published or moved: see
/// [`arm`](super::arm). That the object cannot be told is logged; its own look finds the job later.
///
/// # Errors
/// If the platform fails.
pub async fn serve_and_ask(request: Request, config: &Config, stub: &Stub) -> worker::Result<Response> {
    let mut served = Served::new(config);
    let response = served.answer(request).await?;
    if let Some(due) = served.due
        && let Err(error) = ticker::ask(stub, Some(due)).await
    {
        worker::console_error!("the alarm is not brought forward, so jobs may be late: {error}");
    }
    Ok(response)
}

struct Served<'a> {
    config: &'a Config,
    /// The earliest due time that was given to a job.
    due: Option<UnixMs>,
}

impl Served<'_> {
    fn new(config: &Config) -> Served<'_> {
        Served { config, due: None }
    }

    async fn answer(&mut self, mut request: Request) -> worker::Result<Response> {
        let answered = self.call(&mut request).await.unwrap_or_else(Answered::from);
        let mut response = Response::from_bytes(answered.body.to_vec())?.with_status(answered.status);
        for (name, value) in answered.headers {
            response.headers_mut().set(name, &value)?;
        }
        Ok(response)
    }

    async fn call(&mut self, request: &mut Request) -> Result<Answered, Problem> {
        let broken = |error: worker::Error| Problem::bad("bad_request", error);
        let url = request.inner().url();
        let (path, query) = target(&url);
        let headers: Vec<(String, String)> = request.headers().entries().collect();
        let headers: Headers =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        BearerToken::admit(&self.config.api_tokens, &headers)?;
        let method = request.inner().method();
        let call = Call::read(&method, path, query, &headers, PAYLOAD)?;
        let body = body(request, call.body_limit()).await.map_err(broken)?;
        match call.with_body(body)? {
            Asked::Publish(publish, draft) => {
                let is_named = draft.id.is_some();
                let job = draft.into_job(publish.queue.clone(), terms(), draw)?;
                let published = published(self.ask(vec![Verb::Publish(job)]).await?.remove(0), is_named)?;
                self.note(published.due);
                let found = match publish.ask(&published) {
                    Some(ask) => inspected(self.ask(vec![Verb::Ask(ask)]).await?.remove(0)),
                    None => Ok(None),
                };
                publish.answer(&published, found)
            }
            Asked::Batch(queue, batch, drafts) => {
                let published = self.publish_all(&queue, drafts).await?;
                Ok(batch.answer(published))
            }
            Asked::Question(question) => {
                let ask = question.ask(timer::wall())?;
                let answer = self.ask(vec![Verb::Ask(ask)]).await?.remove(0);
                if let Ok(Answer::Rescheduled(outcomes)) = &answer {
                    let moved = outcomes.iter().find(|(outcome, _)| *outcome == RescheduleOutcome::Moved);
                    self.note(moved.map(|(_, due)| *due));
                }
                question.answer(answer)
            }
        }
    }
}

/// What an engine is told.
enum Verb {
    Publish(NewJob),
    Ask(Ask),
}

impl Served<'_> {
    async fn publish_all(
        &mut self,
        queue: &QueueName,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Result<Published, Problem>>, Problem> {
        let mut outcomes = Vec::with_capacity(drafts.len());
        let mut verbs = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let is_named = draft.id.is_some();
            match draft.into_job(queue.clone(), terms(), draw) {
                Ok(job) => {
                    verbs.push(Verb::Publish(job));
                    outcomes.push(Ok(is_named));
                }
                Err(problem) => outcomes.push(Err(problem)),
            }
        }
        let mut answers = if verbs.is_empty() { Vec::new() } else { self.ask(verbs).await? }.into_iter();
        let unanswered = || Err(Fault::Unknown);
        let outcomes = outcomes.into_iter().map(|outcome| {
            let is_named = outcome?;
            let published = published(answers.next().unwrap_or_else(unanswered), is_named)?;
            self.note(published.due);
            Ok(published)
        });
        Ok(outcomes.collect())
    }

    fn note(&mut self, due: Option<UnixMs>) {
        self.due = match (self.due, due) {
            (Some(earlier), Some(due)) => Some(earlier.min(due)),
            (earlier, due) => earlier.or(due),
        };
    }

    /// One engine's answers, in the order of what it was told.
    async fn ask(&self, verbs: Vec<Verb>) -> Result<Vec<Result<Answer, Fault>>, Problem> {
        let redis = self.config.redis(All);
        let world = Live { redis: &redis, to: Nobody };
        let deployment = self.config.deployment();
        let mut engine = self.engine(&deployment)?;
        if !opened::is_known(&deployment) {
            self.open(&world, &mut engine).await?;
            opened::remember(deployment.clone());
        }
        let (now, count) = (timer::now(), verbs.len());
        for (verb, token) in verbs.into_iter().zip((0..).map(Token)) {
            match verb {
                Verb::Publish(job) => told(engine.publish(now, token, job))?,
                Verb::Ask(ask) => told(engine.request(now, token, Question { ask, timeout_ms: TIMEOUT_MS }))?,
            }
        }
        let mut answers = calls::answers(&world, &mut engine, count).await;
        answers.sort_unstable_by_key(|(token, _)| *token);
        if engine.is_drained() {
            opened::forget(&deployment);
        } else if engine.is_idle() {
            IDLE.with_borrow_mut(|idle| {
                let idle = idle.entry(deployment).or_default();
                idle.push(engine);
                idle.truncate(IDLE_MAX);
            });
        }
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    async fn open(&self, world: &Live<'_, All, Nobody>, engine: &mut Engine) -> Result<(), Problem> {
        let opened = calls::open(world, engine, self.config.shards(), TIMEOUT_MS).await;
        opened.map_err(|why| match why {
            NotOpened::Other(failure) => Problem::new(500, "wrong_deployment", failure),
            NotOpened::Silent(fault) => fault.into(),
        })
    }

    fn engine(&self, deployment: &str) -> Result<Engine, Problem> {
        if let Some(engine) = IDLE.with_borrow_mut(|idle| idle.get_mut(deployment)?.pop()) {
            return Ok(engine);
        }
        let broken = |why: String| Problem::new(500, "broken", why);
        let identity = Identity(getrandom::u64().map_err(|error| broken(error.to_string()))?);
        let config = Engines { shards: self.config.shards(), ..Engines::default() };
        Engine::new(config, identity, timer::now()).map_err(|error| broken(error.to_string()))
    }
}

fn told<T>(told: Result<(), T>) -> Result<(), Problem> {
    told.map_err(|_| Problem::later("busy", "this request asks for too much at once: send fewer jobs"))
}

fn terms() -> Terms {
    Terms { now: timer::wall(), max_payload: PAYLOAD.bytes, timeout_ms: TIMEOUT_MS }
}

fn draw() -> JobId {
    let random = getrandom::u64().unwrap_or_default();
    IDS.with_borrow_mut(|ids| ids.next(timer::wall(), random))
}

/// The body; of one over the limit only as much as shows that.
async fn body(request: &mut Request, limit: usize) -> worker::Result<Bytes> {
    let mut read = Vec::new();
    let Some(_) = request.inner().body() else { return Ok(Bytes::new()) };
    let mut chunks = request.stream()?;
    while let Some(chunk) = chunks.next().await {
        read.extend(chunk?);
        if read.len() > limit {
            break;
        }
    }
    Ok(read.into())
}
