use std::convert::Infallible;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::body::HttpBody;
use axum::extract::MatchedPath;
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::Response;
use delayline_core::Trace;
use tracing::field::{Empty, display};
use tracing::{Instrument, Level, Span};

use crate::service::client_address::ClientAddress;
use crate::service::request_id::RequestId;
use crate::service::seldom::Seldom;

/// Parts of a path with which whoever reads the log could do what it says.
const SECRETS: [&str; 2] = ["{lease}", "{token}"];

/// Why a request was refused, beside its answer.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

/// The log lines about requests, and the ids by which they are found; clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// Whether each has a line.
    each: Arc<AtomicBool>,
    /// Whether ids are those of lmstfy: ULIDs, whatever a request brings.
    draws_ulids: bool,
    seldom: Arc<Seldom>,
}

/// A request and its answer.
pub(crate) struct Exchange {
    id: RequestId,
    span: Span,
    /// What its line is to say, if it has one.
    line: Option<Line>,
    seldom: Arc<Seldom>,
}

/// A line about a request. It has no query, in which tokens may be, and neither header nor body.
struct Line {
    begun: Instant,
    method: Method,
    uri: Uri,
    client: Option<ClientAddress>,
    noted: Arc<Noted>,
}

/// What a request's route knows that its line is to say.
#[derive(Default)]
pub(crate) struct Noted {
    route: OnceLock<MatchedPath>,
    token: OnceLock<String>,
}

impl Access {
    pub(crate) fn new(each: bool) -> Access {
        Access { each: Arc::new(each.into()), ..Access::default() }
    }

    /// The same, for a listener whose clients know ULIDs.
    pub(crate) fn with_ulids(self) -> Access {
        Access { draws_ulids: true, ..self }
    }

    /// Whether each request has a line.
    pub(crate) fn is_each(&self) -> bool {
        self.each.load(Relaxed)
    }

    pub(crate) fn set_each(&self, each: bool) {
        self.each.store(each, Relaxed);
    }

    /// Gives a request that a client sent an id, which its extensions have from now on, and a span if those are wanted.
    pub(crate) fn begin<B>(&self, request: &mut Request<B>, client: Option<ClientAddress>) -> Exchange {
        let id = if self.draws_ulids { RequestId::draw_ulid() } else { RequestId::of(request.headers()) };
        let line = self.is_each().then(|| {
            let noted = Arc::<Noted>::default();
            request.extensions_mut().insert(Arc::clone(&noted));
            let (method, uri) = (request.method().clone(), request.uri().clone());
            Line { begun: Instant::now(), method, uri, client, noted }
        });
        let span = span(&id, request.method(), request.headers());
        request.extensions_mut().insert(id.clone());
        Exchange { id, span, line, seldom: Arc::clone(&self.seldom) }
    }
}

/// What is logged while a request is answered is inside of this, where anybody reads it.
fn span(id: &RequestId, method: &Method, headers: &HeaderMap) -> Span {
    if !tracing::enabled!(Level::DEBUG) {
        return Span::none();
    }
    let span =
        tracing::debug_span!("request", request_id = id.as_str(), %method, route = Empty, trace_id = Empty);
    let trace = headers.get("traceparent").and_then(|trace| trace.to_str().ok()?.parse::<Trace>().ok());
    if let Some(Trace { trace_id, .. }) = trace {
        span.record("trace_id", display(format_args!("{:032x}", u128::from_be_bytes(trace_id))));
    }
    span
}

impl Exchange {
    /// Awaits the answer, and says of it what is to be said.
    pub(crate) async fn answered(
        self,
        answer: impl Future<Output = Result<Response, Infallible>>,
    ) -> Result<Response, Infallible> {
        let Exchange { id, span, line, seldom } = self;
        let mut response = answer.instrument(span).await?;
        if let Some(line) = line {
            line.write(&id, &response);
        }
        let status = response.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            warn(&id, &response, &seldom);
        }
        id.put_into(response.headers_mut());
        Ok(response)
    }
}

fn warn(id: &RequestId, response: &Response, seldom: &Seldom) {
    let Some(Refused { code, detail }) = response.extensions().get() else { return };
    if let Some(more) = seldom.is_due(code) {
        let (status, request_id) = (response.status().as_u16(), id.as_str());
        tracing::warn!(status, code, more, request_id, "requests are refused: {detail}");
    }
}

impl Line {
    fn write(self, id: &RequestId, response: &Response) {
        let Line { begun, method, uri, client, noted } = self;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let route = noted.route.get().map(MatchedPath::as_str);
        let path = route.filter(|route| !SECRETS.iter().any(|secret| route.contains(secret)));
        tracing::info!(
            request_id = id.as_str(),
            %method,
            route = route.unwrap_or("unmatched"),
            path = path.map(|_| uri.path()),
            status = response.status().as_u16(),
            ms,
            bytes = response.body().size_hint().exact(),
            client = client.map(display),
            token = noted.token.get().map(String::as_str),
            "a request was answered"
        );
    }
}

/// A request came to this route.
pub(crate) fn note_route<B>(request: &Request<B>, route: &MatchedPath) {
    if let Some(noted) = request.extensions().get::<Arc<Noted>>() {
        let _ = noted.route.set(route.clone());
    }
    if tracing::enabled!(Level::DEBUG) {
        Span::current().record("route", route.as_str());
    }
}

/// A request showed the token of this name.
pub(crate) fn note_token<B>(request: &Request<B>, name: &str) {
    if let Some(noted) = request.extensions().get::<Arc<Noted>>() {
        let _ = noted.token.set(name.to_owned());
    }
}
