use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use axum::body::HttpBody;
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::Response;
use delayline_core::Trace;
use tracing::field::{Empty, display};
use tracing::{Instrument, Level, Span};

use crate::service::request_context::RequestContext;
use crate::service::request_id::RequestId;
use crate::service::seldom::Seldom;
use crate::service::tokens::Caller;

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
    context: Arc<RequestContext>,
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

    /// Gives a request that a client sent an id, and a span if those are wanted.
    pub(crate) fn begin<B>(&self, request: &Request<B>, context: &Arc<RequestContext>) -> Exchange {
        let id = if self.draws_ulids { RequestId::draw_ulid() } else { RequestId::of(request.headers()) };
        let line = self.is_each().then(|| {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            Line { begun: Instant::now(), method, uri, context: Arc::clone(context) }
        });
        let span = span(&id, request.method(), request.headers());
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
    pub(crate) async fn answered(self, answer: impl Future<Output = Response>) -> Response {
        let Exchange { id, span, line, seldom } = self;
        let mut response = answer.instrument(span).await;
        if let Some(line) = line {
            line.write(&id, &response);
        }
        let status = response.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            warn(&id, &response, &seldom);
        }
        id.put_into(response.headers_mut());
        response
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
        let Line { begun, method, uri, context } = self;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let route = context.route();
        let path = route.filter(|route| !SECRETS.iter().any(|secret| route.contains(secret)));
        tracing::info!(
            request_id = id.as_str(),
            %method,
            route = route.unwrap_or("unmatched"),
            path = path.map(|_| uri.path()),
            status = response.status().as_u16(),
            ms,
            bytes = response.body().size_hint().exact(),
            client = context.client.map(display),
            token = context.caller().and_then(Caller::name),
            "a request was answered"
        );
    }
}
