mod answers;
mod command;
mod events;
mod faults;
mod feed;
mod item;
mod limits;
mod refusal;
mod request;
mod rescue;
mod resp;
mod subscriptions;
mod sync;
mod token;
mod topic;
mod upstream;

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use delayline_tokio::redis::Value;
use serde::Serialize;
use tokio::sync::watch;

pub(crate) use self::limits::Limits;
pub(crate) use self::token::Token;
pub(crate) use self::upstream::Upstream;

use self::answers::{Answers, Form, Replies, Reply};
use self::command::Command;
use self::faults::Faults;
use self::item::Encoding;
use self::limits::RequestLimits;
use self::refusal::Refusal;
use self::request::Request;
use self::subscriptions::Subscriptions;
use self::sync::{SYNC_TOKEN, SyncTokens};
use self::topic::Topic;
use crate::service::body::Inbound;
use crate::service::limits::Patience;
use crate::service::origins::{Origin, Origins, Sharing};
use crate::service::peers::{Crowded, Peers, TooManyTakes};
use crate::service::rate::{Bucket, RateLimit};
use crate::service::reception::Reception;
use crate::service::request_context::RequestContext;

const ENCODING: &str = "upstash-encoding";
const FORMAT: &str = "upstash-response-format";
const FAULTS: &str = "/_faults";

/// What pages may do whose origin is allowed.
const SHARING: Sharing = Sharing {
    methods: &[Method::GET, Method::HEAD, Method::POST, Method::PUT],
    exposed: &[SYNC_TOKEN, "retry-after"],
};

/// The most bytes of a body that means nothing.
const UNREAD_BODY: usize = 64 << 10;
/// The most channels or patterns of a subscription: each has an event that says so before the first message.
const MAX_TOPICS: usize = 100;

/// What clients may do.
pub(crate) struct Permissions {
    /// What they must show.
    pub(crate) token: Token,
    /// Whether they may do more than read and write data.
    pub(crate) admin: bool,
    /// Whether they may have requests go wrong: for tests.
    pub(crate) faults: bool,
}

/// Runs the Redis commands that requests carry, as Upstash's REST API does.
pub(crate) struct Endpoint {
    token: Token,
    admin: bool,
    upstream: Upstream,
    subscriptions: Subscriptions,
    requests: AtomicU64,
    sync_tokens: SyncTokens,
    faults: Option<Faults>,
    peers: Arc<Peers>,
    patience: Patience,
    limits: RequestLimits,
    rate: Option<(RateLimit, Mutex<Bucket>)>,
    answers: Answers,
    closing: watch::Receiver<bool>,
}

impl Endpoint {
    /// Answers `peers` within these limits, until `closing` says so.
    pub(crate) fn new(
        permissions: Permissions,
        upstream: Upstream,
        limits: &Limits,
        peers: Arc<Peers>,
        closing: watch::Receiver<bool>,
    ) -> Endpoint {
        let Permissions { token, admin, faults } = permissions;
        let of_request = limits.of_request();
        Endpoint {
            token,
            admin,
            subscriptions: upstream.subscriptions(limits.max_subscriptions(peers.max_connections())),
            upstream,
            requests: AtomicU64::new(0),
            sync_tokens: SyncTokens::new(),
            faults: faults.then(Faults::default),
            peers,
            patience: limits.patience(),
            limits: of_request,
            rate: limits.max_command_rate().map(|limit| (limit, Mutex::default())),
            answers: Answers::new(of_request.answer_bytes, limits.answer_memory()),
            closing,
        }
    }

    /// Every path is a route: it may be a command. A browser may ask from these origins.
    pub(crate) fn reception(self, origins: &[Origin]) -> Reception {
        let router = Router::new().fallback(answer).with_state(Arc::new(self));
        Reception::open(match Origins::new(origins).layer(&SHARING) {
            Some(layer) => router.layer(layer),
            None => router,
        })
    }

    async fn answer(&self, request: axum::extract::Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        self.token.check(&parts)?;
        let body = Inbound::of(&parts, body, self.patience);
        if let Some(topics) = Topic::asked(&parts.uri, &parts.headers, MAX_TOPICS)? {
            let events = self.subscribe(&parts, body, topics).await?;
            return Ok(self.sync_tokens.stamp(events, &parts.headers));
        }
        let body = request::whole(body, self.limits.bytes).await?;
        if let Some(faults) = self.faults.as_ref().filter(|_| parts.uri.path() == FAULTS) {
            return faults.control(&parts.method, &body, self.requests.load(Ordering::Relaxed));
        }
        if ![Method::GET, Method::HEAD, Method::POST, Method::PUT].contains(&parts.method) {
            return Err(Refusal::Method);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let fault = self.faults.as_ref().and_then(Faults::next);
        let carried_out = async {
            let answer = self.carry_out(&parts, body).await;
            self.sync_tokens.stamp(answer.unwrap_or_else(Refusal::into_response), &parts.headers)
        };
        match fault {
            Some(fault) => Ok(fault.befall(carried_out, &self.upstream, self.closing()).await),
            None => Ok(carried_out.await),
        }
    }

    async fn carry_out(&self, parts: &Parts, body: Bytes) -> Result<Response, Refusal> {
        let form = form(&parts.headers)?;
        let request = Request::read(&parts.uri, body, self.limits)?;
        self.let_through(request.commands())?;
        match request {
            Request::One(command) => {
                let reply = self.one(command).await?;
                self.answers.response(Replies::One(Ok(reply)), form).await
            }
            Request::Pipeline(commands) => {
                let replies = self.pipeline(commands).await?;
                self.answers.response(Replies::Several(replies), form).await
            }
            // As Upstash has it, there is no other form for them.
            Request::Transaction(commands) => {
                let replies = self.transaction(commands).await?;
                let form = if form == Form::Resp2 { Form::Json(Encoding::Text) } else { form };
                self.answers.response(Replies::Several(replies), form).await
            }
        }
    }

    async fn one(&self, command: Command) -> Result<Value, Refusal> {
        command.check(self.admin)?;
        let mut replies = self.upstream.ask([command.packed()]).await?;
        Ok(replies.pop().unwrap_or(Value::Nil))
    }

    /// Each command fails by itself, one that is refused too.
    async fn pipeline(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Refusal> {
        let check = |command: &Command| command.check(self.admin).err();
        let refusals: Vec<Option<Refusal>> = commands.iter().map(check).collect();
        let allowed = commands.into_iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
        let replies = self.upstream.ask(allowed.map(|(command, _)| command.packed())).await?;
        let mut replies = replies.into_iter();
        let each = refusals.into_iter().map(|refusal| match refusal {
            Some(refusal) => Err(refusal),
            None => Ok(replies.next().unwrap_or(Value::Nil)),
        });
        Ok(each.collect())
    }

    async fn transaction(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Refusal> {
        commands.iter().try_for_each(|command| command.check(self.admin))?;
        let replies = self.upstream.transact(commands.into_iter().map(Command::packed)).await?;
        Ok(replies.into_iter().map(Ok).collect())
    }

    /// Answers with the messages on channels, as they come. What the body says is ignored: the client of Upstash sends one.
    async fn subscribe(&self, parts: &Parts, body: Inbound, topics: Vec<Topic>) -> Result<Response, Refusal> {
        if ![Method::GET, Method::POST].contains(&parts.method) {
            return Err(Refusal::Method);
        }
        request::whole(body, UNREAD_BODY).await?;
        self.let_through(1)?;
        let RequestContext { peer, client, .. } = &**RequestContext::of(&parts.extensions);
        let of_client = client.map(|client| self.peers.waits(client)).transpose();
        let of_client = of_client.map_err(|TooManyTakes { most }| Refusal::TooManyOfClient { most })?;
        let subscription = self.subscriptions.subscribe(topics).await?;
        let serving = peer.also_serves();
        Ok(events::response(subscription, Arc::clone(peer), self.closing(), (of_client, serving)))
    }

    /// Refuses so many commands if more have come of late than may.
    fn let_through(&self, commands: usize) -> Result<(), Refusal> {
        let Some((limit, bucket)) = &self.rate else { return Ok(()) };
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let amount = u64::try_from(commands).unwrap_or(u64::MAX);
        Ok(bucket.take(*limit, amount, Instant::now())?)
    }

    fn closing(&self) -> impl Future<Output = ()> + use<> {
        let mut closing = self.closing.clone();
        async move {
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }
}

/// What is said over a connection for which there is no room.
pub(crate) fn too_many_connections(_: Crowded) -> Response {
    Refusal::TooManyConnections.into_response()
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, request: axum::extract::Request) -> Response {
    endpoint.answer(request).await.unwrap_or_else(Refusal::into_response)
}

/// In which form a request wants its answer.
fn form(headers: &HeaderMap) -> Result<Form, Refusal> {
    let is_base64 = headers.get(ENCODING).is_some_and(|encoding| encoding == "base64");
    match headers.get(FORMAT) {
        Some(format) if format == "resp2" && is_base64 => Err(Refusal::EncodedResp2),
        Some(format) if format == "resp2" => Ok(Form::Resp2),
        Some(format) if format != "json" => {
            Err(Refusal::Format(String::from_utf8_lossy(format.as_bytes()).into_owned()))
        }
        _ if is_base64 => Ok(Form::Json(Encoding::Base64)),
        _ => Ok(Form::Json(Encoding::Text)),
    }
}

fn json(status: StatusCode, document: &impl Serialize) -> Response {
    let body = serde_json::to_vec(document).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}
