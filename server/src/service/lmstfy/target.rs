use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use delayline_http::Scope;
use delayline_tokio::{Namespace, QueueName};

use super::answer::Refusal;
use super::query::Query;
use super::tokens::{self, Named};
use super::{Lmstfy, Shared, throttle};
use crate::service::request_context::RequestContext;
use crate::service::tokens::Caller;

const NAME_BYTES: usize = 255;
/// The most queues of one consume: each is asked by itself.
const QUEUES: usize = 256;

/// What a limit of a token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Consume,
    Produce,
}

/// What a route asks of a request before its handler sees it.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Whether its queue may be several, with commas between them.
    pub(super) takes_many: bool,
    /// What a token must be for; `None` where none is asked for.
    pub(super) scopes: Option<&'static [Scope]>,
    pub(super) throttled: Option<Action>,
}

impl Rules {
    /// One queue, and a token for this.
    pub(super) const fn of(scopes: &'static [Scope]) -> Rules {
        Rules { takes_many: false, scopes: Some(scopes), throttled: None }
    }
}

/// What the path of a request names, once the request may go on.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) namespace: Namespace,
    /// As it stands there: one queue, or several with commas.
    queue: String,
    pub(super) job: String,
    /// Who asks, if they have shown a token of this service.
    pub(super) caller: Option<Caller>,
}

impl Target {
    /// The one queue.
    pub(super) fn queue(&self) -> Result<QueueName, Refusal> {
        QueueName::within(&self.namespace, &self.queue).map_err(|_| bad_queue())
    }

    /// The queues in their order, each once.
    pub(super) fn queues(&self) -> Result<Vec<QueueName>, Refusal> {
        let mut queues = Vec::new();
        for own in self.queue.split(',').filter(|own| !own.is_empty()) {
            let queue = QueueName::within(&self.namespace, own).map_err(|_| bad_queues())?;
            if !queues.contains(&queue) {
                queues.push(queue);
            }
            if queues.len() > QUEUES {
                return Err(bad_queues());
            }
        }
        if queues.is_empty() { Err(bad_queues()) } else { Ok(queues) }
    }

    /// The queue's own name, as clients know it.
    pub(super) fn own(&self) -> &str {
        &self.queue
    }
}

/// Checks a request in lmstfy's order: names, pool, token, limit.
pub(super) async fn enter(
    State((lmstfy, rules)): State<(Shared, Rules)>,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let mut target = target(&params, rules)?;
    let given = given(request.uri(), request.headers());
    let named = Named::parse(&given);
    let Some(token) = named.in_default_pool() else {
        return Err(Refusal::error(StatusCode::NOT_FOUND, "pool not found"));
    };
    if let Some(scopes) = rules.scopes.filter(|_| !lmstfy.is_open) {
        target.caller = tokens::admit(&lmstfy, &target, token, scopes).await?;
    }
    if let Some(caller) = &target.caller {
        RequestContext::of(request.extensions()).note_caller(caller.clone());
    }
    let bytes = request.body().size_hint().lower();
    let _under_way = target.caller.as_ref().map(|caller| caller.requests(bytes)).transpose()?;
    let ticket = match rules.throttled {
        Some(action) => throttled(&lmstfy, &target.namespace, token, action).await?,
        None => None,
    };
    request.extensions_mut().insert(target);
    let response = next.run(request).await;
    if let Some(ticket) = ticket.filter(|_| matches!(response.status().as_u16(), 200 | 201)) {
        ticket.keep();
    }
    Ok(response)
}

async fn throttled(
    lmstfy: &Arc<Lmstfy>,
    namespace: &Namespace,
    token: &str,
    action: Action,
) -> Result<Option<throttle::Ticket>, Refusal> {
    let key = tokens::key(namespace, token);
    // An open service asks Redis for nothing else before a job.
    let Some(limiter) = throttle::limiter(&lmstfy.registry, &key).await? else { return Ok(None) };
    lmstfy.throttle.enter(key, action, limiter).map_err(|throttle::Reached| {
        let action = match action {
            Action::Consume => "consume",
            Action::Produce => "produce",
        };
        let text = format!("token({token}) {action} reach the limit rate, please retry later");
        Refusal::message(StatusCode::TOO_MANY_REQUESTS, text)
    })
}

fn target(params: &RawPathParams, rules: Rules) -> Result<Target, Refusal> {
    let param = |name| params.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value);
    let (namespace, queue) = (param("namespace"), param("queue"));
    let is_long = |name: &str| name.len() > NAME_BYTES;
    if is_long(namespace) || is_long(queue) && !rules.takes_many {
        return Err(Refusal::bad("namespace or queue name too long"));
    }
    if !is_name(namespace) {
        return Err(Refusal::bad("namespace name contains forbidden characters"));
    }
    let is_good = if rules.takes_many {
        !queue.is_empty() && queue.bytes().all(|byte| is_of_name(byte) || byte == b',')
    } else {
        !queue.starts_with('_') && is_name(queue)
    };
    if !is_good {
        return Err(bad_queue());
    }
    let namespace =
        namespace.parse().map_err(|_| Refusal::bad("namespace name contains forbidden characters"))?;
    Ok(Target { namespace, queue: queue.to_owned(), job: param("job_id").to_owned(), caller: None })
}

/// Whether it names a namespace, or a queue.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_of_name)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn bad_queue() -> Refusal {
    Refusal::bad("queue name contains forbidden characters")
}

fn bad_queues() -> Refusal {
    Refusal::bad("invalid queue name(s)")
}

/// The token of a request with its pool, or nothing.
fn given(uri: &Uri, headers: &HeaderMap) -> String {
    let header = headers.get("x-token").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let header = header.filter(|token| !token.is_empty());
    header.unwrap_or_else(|| Query::of(uri.query()).get("token").unwrap_or_default().to_owned())
}
