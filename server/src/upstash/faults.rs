use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use delayline_tokio::redis::cmd;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::refusal::Refusal;
use super::upstream::Upstream;

/// What is to go wrong with the requests to come, in their order.
#[derive(Default)]
pub(crate) struct Faults(Mutex<VecDeque<Planned>>);

/// A fault, and how many requests it befalls.
#[derive(Serialize, Deserialize)]
struct Planned {
    #[serde(flatten)]
    fault: Fault,
    #[serde(default = "once")]
    times: u32,
}

/// What goes wrong with a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Fault {
    /// Nothing.
    Pass {},
    /// It is not carried out, and answered so.
    Status {
        status: Status,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        body: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// It is carried out later.
    Delay { ms: u64 },
    /// It is carried out, and its connection closed instead of an answer.
    Drop {},
    /// It is not carried out, and never answered.
    Hang {},
    /// It is carried out, and never answered.
    HangAfter {},
    /// It is carried out, and answered in HTML.
    Garbage {},
    /// It is carried out, and its connection closed in the middle of the answer.
    Cut {},
    /// It finds that Redis has forgotten all scripts.
    Flush {},
}

/// A status of an answer: 200 to 599.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub(crate) struct Status(StatusCode);

impl TryFrom<u16> for Status {
    type Error = String;

    fn try_from(status: u16) -> Result<Status, String> {
        match StatusCode::from_u16(status) {
            Ok(code) if (200..600).contains(&status) => Ok(Status(code)),
            _ => Err(format!("{status} is no status of an answer: give 200 to 599")),
        }
    }
}

impl From<Status> for u16 {
    fn from(status: Status) -> u16 {
        status.0.as_u16()
    }
}

fn once() -> u32 {
    1
}

impl Faults {
    /// Plans more faults (POST), or only tells what is left of them and how many requests there were (GET).
    pub(crate) fn control(&self, method: &Method, body: &[u8], requests: u64) -> Result<Response, Refusal> {
        let mut planned = self.planned();
        if *method == Method::POST {
            let expected = r#"faults, like [{"fault":"drop"}]"#;
            let more: Vec<Planned> =
                serde_json::from_slice(body).map_err(|why| Refusal::Json { expected, why })?;
            planned.extend(more.into_iter().filter(|more| more.times > 0));
        } else if *method != Method::GET {
            return Err(Refusal::Method);
        }
        Ok(super::json(StatusCode::OK, &json!({ "left": &*planned, "requests": requests })))
    }

    /// What befalls the next request.
    pub(crate) fn next(&self) -> Option<Fault> {
        let mut planned = self.planned();
        let first = planned.front_mut()?;
        first.times -= 1;
        let fault = first.fault.clone();
        if first.times == 0 {
            planned.pop_front();
        }
        Some(fault)
    }

    fn planned(&self) -> MutexGuard<'_, VecDeque<Planned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fault {
    /// Answers a request that `carried_out` carries out. `closing` ends when nothing may hang any longer.
    pub(crate) async fn befall(
        self,
        carried_out: impl Future<Output = Response>,
        upstream: &Upstream,
        closing: impl Future<Output = ()>,
    ) -> Response {
        match self {
            Fault::Pass {} => carried_out.await,
            Fault::Status { status, body, retry_after } => {
                let mut response = (status.0, body).into_response();
                if let Some(seconds) = retry_after {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
            Fault::Delay { ms } => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                carried_out.await
            }
            Fault::Drop {} => {
                carried_out.await;
                closed()
            }
            Fault::Hang {} => {
                closing.await;
                closed()
            }
            Fault::HangAfter {} => {
                carried_out.await;
                closing.await;
                closed()
            }
            Fault::Garbage {} => {
                carried_out.await;
                Html("<!doctype html><title>Bad gateway</title>").into_response()
            }
            Fault::Cut {} => halved(carried_out.await).await,
            Fault::Flush {} => {
                let mut flush = cmd("SCRIPT");
                flush.arg("FLUSH");
                match upstream.ask([flush]).await {
                    Ok(_) => carried_out.await,
                    Err(refusal) => refusal.into_response(),
                }
            }
        }
    }
}

/// A connection closed instead of an answer: what fails before anything of it was written is not written at all.
fn closed() -> Response {
    Body::from_stream(stream::once(async { Err::<Bytes, _>(broken()) })).into_response()
}

/// The first half of an answer that announces the whole.
async fn halved(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(whole) = to_bytes(body, usize::MAX).await else { return closed() };
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let half = whole.slice(..whole.len() / 2);
    let end = stream::once(async {
        // The half is written once what follows is waited for.
        tokio::task::yield_now().await;
        Err(broken())
    });
    let body = stream::once(async { Ok(half) }).chain(end);
    Response::from_parts(parts, Body::from_stream(body))
}

fn broken() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANNED: &str = r#"[{"fault":"status","status":429,"body":"slow","retry_after":2,"times":2},
        {"fault":"pass","times":0},{"fault":"delay","ms":3},{"fault":"hang_after"}]"#;

    #[tokio::test]
    async fn each_befalls_as_many_requests_as_it_says() {
        let faults = Faults::default();
        faults.control(&Method::POST, PLANNED.as_bytes(), 0).unwrap();
        assert!(matches!(faults.next(), Some(Fault::Status { retry_after: Some(2), .. })));
        let report = faults.control(&Method::GET, b"", 7).unwrap();
        let report = to_bytes(report.into_body(), usize::MAX).await.unwrap();
        let expected = r#"{"left":[{"fault":"status","status":429,"body":"slow","retry_after":2,"times":1},{"fault":"delay","ms":3,"times":1},{"fault":"hang_after","times":1}],"requests":7}"#;
        assert_eq!(String::from_utf8_lossy(&report), expected);
        assert!(matches!(faults.next(), Some(Fault::Status { .. })));
        faults.control(&Method::POST, br#"[{"fault":"drop"}]"#, 0).unwrap();
        assert!(matches!(faults.next(), Some(Fault::Delay { ms: 3 })));
        assert!(matches!(faults.next(), Some(Fault::HangAfter {})));
        assert!(matches!(faults.next(), Some(Fault::Drop {})));
        assert!(faults.next().is_none());
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        let faults = Faults::default();
        for wrong in [
            "",
            "{}",
            r#"[{"fault":"explode"}]"#,
            r#"[{"fault":"status"}]"#,
            r#"[{"fault":"status","status":100}]"#,
            r#"[{"fault":"status","status":600}]"#,
            r#"[{"fault":"delay","seconds":1}]"#,
            r#"[{"fault":"drop","time":2}]"#,
            r#"[{"fault":"drop","times":-1}]"#,
        ] {
            let refused = faults.control(&Method::POST, wrong.as_bytes(), 0);
            assert!(matches!(refused, Err(Refusal::Json { .. })), "{wrong}");
        }
        assert!(matches!(faults.control(&Method::PUT, b"[]", 0), Err(Refusal::Method)));
        assert!(faults.next().is_none());
    }
}
