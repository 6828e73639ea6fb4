use std::fmt::Display;

use delayline_core::{Backlogged, Fault, Invalid, NameError, RecordError, TooLarge};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Response;

const DETAIL_CHARS: usize = 2_000;

/// Why a request was not carried out, as problem details (RFC 9457). `code` never changes its meaning.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The status code.
    pub status: u16,
    /// What kind of problem it is, for programs.
    pub code: &'static str,
    /// What happened, to what, and what to do, for people.
    pub detail: String,
    job: Option<Box<RawValue>>,
    headers: Vec<(&'static str, String)>,
}

#[derive(Serialize)]
struct Body<'a> {
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a RawValue>,
}

impl Problem {
    /// A problem of this status and code.
    pub fn new(status: u16, code: &'static str, detail: impl Display) -> Problem {
        let mut detail = detail.to_string();
        // What was sent is quoted, however long it is.
        if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS) {
            detail.truncate(end);
            detail.push('…');
        }
        Problem { status, code, detail, job: None, headers: Vec::new() }
    }

    /// The request says what cannot be.
    pub fn bad(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(400, code, detail)
    }

    /// The request does not fit what is there.
    pub fn conflict(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(409, code, detail)
    }

    /// There is no such thing.
    pub fn not_found(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(404, code, detail)
    }

    /// There is too much of it.
    pub fn too_large(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(413, code, detail)
    }

    /// It may be otherwise soon.
    pub fn later(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(503, code, detail).retry_after(1)
    }

    /// What is behind the service does not do as it should.
    pub fn behind(code: &'static str, detail: impl Display) -> Problem {
        Problem::new(502, code, detail)
    }

    /// There is no such route.
    pub fn no_such_route(method: &str, path: &str) -> Problem {
        let detail = format!(
            "there is no {method} {path}: the routes are in docs/http.md, and at /v1/docs of a service"
        );
        Problem::not_found("no_such_route", detail)
    }

    /// The route is there, but not by this method; the header `Allow` is to say by which.
    pub fn method_not_allowed(method: &str, path: &str) -> Problem {
        let detail = format!("{path} does not take {method}: the header Allow says what it takes");
        Problem::new(405, "method_not_allowed", detail)
    }

    /// The queue holds as much as it may.
    pub fn queue_full(detail: impl Display) -> Problem {
        Problem::new(429, "queue_full", detail).retry_after(10)
    }

    /// Certainly not done, for want of an answer.
    pub fn not_sent(detail: impl Display) -> Problem {
        Problem::later("not_sent", detail)
    }

    /// It may have been done, and a repeat does no harm.
    pub fn unknown(detail: impl Display) -> Problem {
        Problem::later("unknown", detail)
    }

    /// It may have been done, and a repeat could do it twice.
    pub fn unrepeatable(detail: impl Display) -> Problem {
        Problem::new(504, "unknown", detail)
    }

    /// There is no room for more requests.
    pub fn busy(detail: impl Display) -> Problem {
        Problem::later("busy", detail)
    }

    /// Nothing new is accepted.
    pub fn shutting_down(detail: impl Display) -> Problem {
        Problem::later("shutting_down", detail)
    }

    /// Newer services keep more of the queue than this one knows.
    pub fn gated(detail: impl Display) -> Problem {
        Problem::behind("gated", detail)
    }

    /// What a queue is to forward to is in another slot of a cluster.
    pub fn forward_other_slot(detail: impl Display) -> Problem {
        Problem::new(400, "forward_other_slot", detail)
    }

    /// The deployment was lost, and opened anew otherwise.
    pub fn wrong_shards(detail: impl Display) -> Problem {
        Problem::behind("wrong_shards", detail)
    }

    /// Redis answered what it should not.
    pub fn broken(detail: impl Display) -> Problem {
        Problem::behind("broken", detail)
    }

    /// Shows the job that it is about.
    #[must_use]
    pub fn with_job(mut self, job: &impl Serialize) -> Problem {
        self.job = serde_json::value::to_raw_value(job).ok();
        self
    }

    /// Says when to try again.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Problem {
        self.header("retry-after", seconds.to_string())
    }

    /// Adds a header to its response, whose name must be in lower case.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Problem {
        self.headers.push((name, value.into()));
        self
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Response {
        let Problem { status, code, detail, job, mut headers } = problem;
        let body = Body { title: title(status), status, code, detail: &detail, job: job.as_deref() };
        headers.insert(0, ("content-type", "application/problem+json".to_owned()));
        Response { status, headers, body: serde_json::to_vec(&body).unwrap_or_default().into() }
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Problem {
        Problem::bad("bad_name", error)
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Problem {
        match &invalid {
            Invalid::Delay { .. } => Problem::bad("delay_too_long", invalid),
            Invalid::Ttl { .. } => Problem::bad("ttl_too_short", invalid),
            Invalid::TtlTooLong(_) => Problem::bad("ttl_too_long", invalid),
            Invalid::Attempts { .. } => Problem::bad("bad_attempts", invalid),
            Invalid::Backoff { .. } => Problem::bad("bad_backoff", invalid),
            Invalid::TooLong { .. } => Problem::bad("too_long", invalid),
            _ => Problem::bad("bad_option", invalid),
        }
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Problem {
        Problem::bad("bad_job", error)
    }
}

impl From<TooLarge> for Problem {
    fn from(error: TooLarge) -> Problem {
        Problem::too_large("payload_too_large", error)
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        match fault {
            Fault::Record(error) => error.into(),
            Fault::Invalid(invalid) => invalid.into(),
            Fault::QueueFull { .. } => Problem::queue_full(fault),
            Fault::NotSent(_) => Problem::not_sent(fault),
            Fault::Unknown => Problem::unknown(fault),
            Fault::Draining => Problem::shutting_down(fault),
            Fault::Gated { .. } => Problem::gated(fault),
            Fault::OtherSlot { .. } => Problem::forward_other_slot(fault),
            Fault::OtherDeployment { .. } => Problem::wrong_shards(fault),
            Fault::Config(_) | Fault::Broken(_) => Problem::broken(fault),
        }
    }
}

impl<T> From<Backlogged<T>> for Problem {
    fn from(_: Backlogged<T>) -> Problem {
        Problem::busy("too much is waiting to be sent to Redis: try again later")
    }
}

/// What RFC 9110 calls the status.
fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        507 => "Insufficient Storage",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::{Ceiling, Forward, Full, QueueConfig, QueueName, Refusal, Shards};

    #[test]
    fn a_problem_is_written_as_rfc_9457_has_it() {
        let problem = Problem::queue_full("full").with_job(&17);
        let response = Response::from(problem);
        assert_eq!(response.status, 429);
        assert_eq!(
            response.headers,
            [("content-type", "application/problem+json".to_owned()), ("retry-after", "10".to_owned())]
        );
        assert_eq!(
            response.body,
            r#"{"title":"Too Many Requests","status":429,"code":"queue_full","detail":"full","job":17}"#
        );
    }

    #[test]
    fn each_fault_has_its_status_and_code() {
        let queue = || -> QueueName { "q".parse().unwrap() };
        let four = Shards::new(4).unwrap();
        let full = Full { jobs: 1, dead: 0, bytes: 1, ceiling: Ceiling { jobs: 1, bytes: 0 } };
        let config = QueueConfig { attempts: Some(0), ..QueueConfig::default() }.validate().unwrap_err();
        let record = RecordError::MetadataTooLong { bytes: 4_000, limit: 3_071 };
        for (fault, status, code) in [
            (Fault::NotSent(None), 503, "not_sent"),
            (Fault::NotSent(Some(Refusal::OutOfMemory)), 503, "not_sent"),
            (Fault::Unknown, 503, "unknown"),
            (Fault::QueueFull { queue: queue(), full }, 429, "queue_full"),
            (Fault::Gated { queue: queue(), gate: "flow".into() }, 502, "gated"),
            (
                Fault::OtherSlot { queue: queue(), forward: Forward::List("out".into()) },
                400,
                "forward_other_slot",
            ),
            (Fault::OtherDeployment { layout: 1, found: four, wanted: four }, 502, "wrong_shards"),
            (Fault::Record(record), 400, "bad_job"),
            (Fault::Config(config), 502, "broken"),
            (Fault::Broken("?".into()), 502, "broken"),
            (Fault::Draining, 503, "shutting_down"),
        ] {
            let detail = fault.to_string();
            let problem = Problem::from(fault);
            assert_eq!((problem.status, problem.code, problem.detail), (status, code, detail));
        }
        assert_eq!(Problem::from(Backlogged(())).code, "busy");
    }
}
