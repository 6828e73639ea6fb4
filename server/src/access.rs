use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;

use crate::seldom::Seldom;

/// Why a request was refused, beside its answer.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

/// The log lines about requests.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// Whether each has one.
    each: bool,
    seldom: Arc<Seldom>,
}

impl Access {
    pub(crate) fn new(each: bool) -> Access {
        Access { each, ..Access::default() }
    }

    pub(crate) async fn log(self, request: Request, next: Next) -> Response {
        let asked = self.each.then(|| (request.method().clone(), request.uri().clone(), Instant::now()));
        let response = next.run(request).await;
        if let Some((method, uri, begun)) = asked {
            answered(&method, &uri, response.status().as_u16(), begun.elapsed());
        }
        let status = response.status();
        let speaks = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        if let Some(Refused { code, detail }) = response.extensions().get().filter(|_| speaks)
            && let Some(more) = self.seldom.is_due(code)
        {
            tracing::warn!(status = status.as_u16(), code, more, "requests are refused: {detail}");
        }
        response
    }
}

/// Without the query, in which tokens may be.
fn answered(method: &Method, uri: &Uri, status: u16, took: Duration) {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(status, ms, "{method} {}", uri.path());
}
