mod command;
mod faults;
mod item;
mod origins;
mod refusal;
mod request;
mod rescue;
mod token;
mod upstream;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use delayline_tokio::redis::Value;
use serde::Serialize;
use tokio::sync::watch;

pub(crate) use self::origins::Origin;
pub(crate) use self::token::Token;
pub(crate) use self::upstream::Upstream;

use self::command::Command;
use self::faults::Faults;
use self::item::{Encoding, Item};
use self::refusal::Refusal;
use self::request::Request;
use crate::body::Inbound;
use crate::limits::Patience;
use crate::peers::Peers;

const ENCODING: &str = "upstash-encoding";
const FORMAT: &str = "upstash-response-format";
const SYNC_TOKEN: &str = "upstash-sync-token";
const FAULTS: &str = "/_faults";

/// Runs the Redis commands that requests carry, as Upstash's REST API does.
pub(crate) struct Endpoint {
    token: Token,
    admin: bool,
    upstream: Upstream,
    requests: AtomicU64,
    faults: Option<Faults>,
    peers: Arc<Peers>,
    patience: Patience,
    closing: watch::Receiver<bool>,
}

impl Endpoint {
    /// `admin` if clients may do more than read and write data, `faults` if tests may have requests go wrong.
    pub(crate) fn new(
        token: Token,
        admin: bool,
        upstream: Upstream,
        faults: bool,
        (peers, patience): (Arc<Peers>, Patience),
        closing: watch::Receiver<bool>,
    ) -> Endpoint {
        let faults = faults.then(Faults::default);
        let requests = AtomicU64::new(0);
        Endpoint { token, admin, upstream, requests, faults, peers, patience, closing }
    }

    /// Every path is a route: it may be a command. A browser may ask from these origins.
    pub(crate) fn router(self, origins: &[Origin]) -> Router {
        let router = Router::new().fallback(answer).with_state(Arc::new(self));
        match origins::layer(origins) {
            Some(layer) => router.layer(layer),
            None => router,
        }
    }

    async fn answer(&self, request: axum::extract::Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        self.token.check(&parts)?;
        let body = Inbound::of(&parts, body, &self.peers, self.patience);
        let body = request::whole(body).await?;
        if let Some(faults) = self.faults.as_ref().filter(|_| parts.uri.path() == FAULTS) {
            return faults.control(&parts.method, &body, self.requests.load(Ordering::Relaxed));
        }
        if ![Method::GET, Method::HEAD, Method::POST, Method::PUT].contains(&parts.method) {
            return Err(Refusal::Method);
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let fault = self.faults.as_ref().and_then(Faults::next);
        let carried_out = async {
            let answer = self.carry_out(&parts, body).await;
            synced(answer.unwrap_or_else(Refusal::into_response), &parts.headers, number)
        };
        match fault {
            Some(fault) => Ok(fault.befall(carried_out, &self.upstream, self.closing()).await),
            None => Ok(carried_out.await),
        }
    }

    async fn carry_out(&self, parts: &Parts, body: Bytes) -> Result<Response, Refusal> {
        let encoding = match parts.headers.get(ENCODING) {
            Some(encoding) if encoding == "base64" => Encoding::Base64,
            _ => Encoding::Text,
        };
        if let Some(format) = parts.headers.get(FORMAT).filter(|format| *format != "json") {
            return Err(Refusal::Format(String::from_utf8_lossy(format.as_bytes()).into_owned()));
        }
        match Request::read(&parts.uri, body)? {
            Request::One(command) => self.one(command, encoding).await,
            Request::Pipeline(commands) => self.pipeline(commands, encoding).await,
            Request::Transaction(commands) => self.transaction(commands, encoding).await,
        }
    }

    async fn one(&self, command: Command, encoding: Encoding) -> Result<Response, Refusal> {
        command.check(self.admin)?;
        let replies = self.upstream.ask([command.packed()]).await?;
        let item = Item::new(replies.first().unwrap_or(&Value::Nil), encoding);
        let status = if item.is_error() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        Ok(json(status, &item))
    }

    /// Each command fails by itself, one that is refused too.
    async fn pipeline(&self, commands: Vec<Command>, encoding: Encoding) -> Result<Response, Refusal> {
        let check = |command: &Command| command.check(self.admin).err();
        let refusals: Vec<Option<Refusal>> = commands.iter().map(check).collect();
        let allowed = commands.into_iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
        let replies = self.upstream.ask(allowed.map(|(command, _)| command.packed())).await?;
        let mut replies = replies.iter();
        let items = refusals.iter().map(|refusal| match refusal {
            Some(refusal) => Item::Error(refusal.to_string()),
            None => Item::new(replies.next().unwrap_or(&Value::Nil), encoding),
        });
        Ok(json(StatusCode::OK, &items.collect::<Vec<Item>>()))
    }

    async fn transaction(&self, commands: Vec<Command>, encoding: Encoding) -> Result<Response, Refusal> {
        commands.iter().try_for_each(|command| command.check(self.admin))?;
        let replies = self.upstream.transact(commands.into_iter().map(Command::packed)).await?;
        let items = replies.iter().map(|reply| Item::new(reply, encoding));
        Ok(json(StatusCode::OK, &items.collect::<Vec<Item>>()))
    }

    fn closing(&self) -> impl Future<Output = ()> + use<> {
        let mut closing = self.closing.clone();
        async move {
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, request: axum::extract::Request) -> Response {
    endpoint.answer(request).await.unwrap_or_else(Refusal::into_response)
}

/// With the token that a client echoes to read its own writes, if it asks for one. There are no replicas: any will do.
fn synced(mut response: Response, asked: &HeaderMap, number: u64) -> Response {
    if asked.contains_key(SYNC_TOKEN) {
        response.headers_mut().insert(SYNC_TOKEN, HeaderValue::from(number));
    }
    response
}

fn json(status: StatusCode, document: &impl Serialize) -> Response {
    let body = serde_json::to_vec(document).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}
