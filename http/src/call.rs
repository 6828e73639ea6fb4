use bytes::Bytes;
use delayline_core::{JobId, QueueName};
use percent_encoding::percent_decode_str;

use crate::body::{DOCUMENT_BYTES, JSON_BYTES, PayloadLimit, document_too_large, json_too_large, unexpected};
use crate::{
    Batch, Cancel, Draft, Form, Headers, Inspect, Options, Problem, Publish, Question, Reschedule, Segment,
    Show, named,
};

const ROOT: &str = "/v1/queues/";

/// A request, read up to its body: for whoever serves the calls of publishers, and has no router.
///
/// These are publishing, alone and in arrays, to show, cancel and reschedule a job, and to show a queue. Of any other the
/// answer is that there is no such route, or not by that method.
#[derive(Debug)]
pub struct Call(Wants);

/// A call, read to its end.
#[derive(Debug)]
pub enum Asked {
    /// Publish a job.
    Publish(Publish, Draft),
    /// Publish jobs to a queue.
    Batch(QueueName, Batch, Vec<Draft>),
    /// Ask for something else.
    Question(Question),
}

/// What is still to be read.
#[derive(Debug)]
enum Wants {
    Payload(Publish, Draft, PayloadLimit),
    Array(QueueName),
    Due(QueueName, JobId),
    /// Nothing: a body is refused.
    Nothing(Question),
    /// Nothing: a body is ignored, since its kind of request has none.
    Anything(Question),
}

/// What a path leads to, with its parts as they are in the URL.
#[derive(Clone, Copy)]
enum Route<'a> {
    Jobs(&'a str),
    Batch(&'a str),
    Job(&'a str, &'a str),
    Queue(&'a str),
}

impl Call {
    /// Reads all but the body; `path` and `query` are as they are in the URL, without its `?`.
    pub fn read(
        method: &str,
        path: &str,
        query: &str,
        headers: &Headers<'_>,
        payload: PayloadLimit,
    ) -> Result<Call, Problem> {
        let route = Route::of(path).ok_or_else(|| Problem::no_such_route(method, path))?;
        let options = || Options::new(query, headers);
        let wants = match (route, method) {
            (Route::Jobs(queue), "POST") => {
                let (publish, draft) = Publish::read(segment(queue)?, options()?, headers)?;
                Wants::Payload(publish, draft, payload)
            }
            (Route::Batch(queue), "POST") => {
                let queue = segment(queue)?;
                options()?.finish()?;
                is_array(headers)?;
                Wants::Array(queue)
            }
            (Route::Job(queue, id), "GET" | "HEAD") => {
                let inspect = Inspect::read(segment(queue)?, segment(id)?, options()?)?;
                Wants::Anything(Question::Inspect(inspect))
            }
            (Route::Job(queue, id), "DELETE") => {
                let cancel = Cancel::read(segment(queue)?, segment(id)?, options()?)?;
                Wants::Nothing(Question::Cancel(cancel))
            }
            (Route::Job(queue, id), "PATCH") => {
                let (queue, id) = (segment(queue)?, segment(id)?);
                options()?.finish()?;
                Wants::Due(queue, id)
            }
            (Route::Queue(queue), "GET" | "HEAD") => {
                Wants::Anything(Question::Show(Show::read(segment(queue)?, options()?)?))
            }
            _ => return Err(Problem::method_not_allowed(method, path).header("allow", route.allows())),
        };
        Ok(Call(wants))
    }

    /// How many bytes of the body can matter. Of a longer one, any more are enough for [`Call::with_body`] to refuse it.
    pub fn body_limit(&self) -> usize {
        match &self.0 {
            Wants::Payload(_, _, limit) => limit.bytes,
            Wants::Array(_) => JSON_BYTES,
            Wants::Due(..) => DOCUMENT_BYTES,
            Wants::Nothing(_) | Wants::Anything(_) => 0,
        }
    }

    /// Reads the body.
    pub fn with_body(self, body: Bytes) -> Result<Asked, Problem> {
        let is_too_long = body.len() > self.body_limit();
        match self.0 {
            Wants::Payload(_, _, limit) if is_too_long => Err(limit.exceeded()),
            Wants::Array(_) if is_too_long => Err(json_too_large()),
            Wants::Due(..) if is_too_long => Err(document_too_large()),
            Wants::Nothing(_) if is_too_long => Err(unexpected()),
            Wants::Payload(publish, draft, _) => {
                let draft = publish.with_body(draft, body)?;
                Ok(Asked::Publish(publish, draft))
            }
            Wants::Array(queue) => {
                let (batch, drafts) = Batch::read(&body)?;
                Ok(Asked::Batch(queue, batch, drafts))
            }
            Wants::Due(queue, id) => {
                Ok(Asked::Question(Question::Reschedule(Reschedule::read(queue, id, &body)?)))
            }
            Wants::Nothing(question) | Wants::Anything(question) => Ok(Asked::Question(question)),
        }
    }
}

impl Route<'_> {
    fn of(path: &str) -> Option<Route<'_>> {
        let parts: Vec<&str> = path.strip_prefix(ROOT)?.split('/').collect();
        match *parts.as_slice() {
            [.., ""] => None,
            [queue] => Some(Route::Queue(queue)),
            [queue, "jobs"] => Some(Route::Jobs(queue)),
            [queue, "batch"] => Some(Route::Batch(queue)),
            [queue, "jobs", id] => Some(Route::Job(queue, id)),
            _ => None,
        }
    }

    fn allows(self) -> &'static str {
        match self {
            Route::Jobs(_) | Route::Batch(_) => "POST",
            Route::Job(..) => "GET,HEAD,DELETE,PATCH",
            Route::Queue(_) => "GET,HEAD",
        }
    }
}

fn segment<T: Segment>(part: &str) -> Result<T, Problem> {
    let text = percent_decode_str(part).decode_utf8();
    named(&text.map_err(|_| Problem::bad("bad_path", format!("Invalid UTF-8 in `{}`", T::NAME)))?)
}

fn is_array(headers: &Headers<'_>) -> Result<(), Problem> {
    match Form::of(headers)? {
        Form::Array => Ok(()),
        Form::Lines => {
            let detail = "lines are not read here: send a JSON array as application/json";
            Err(Problem::new(415, "bad_content_type", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Response;

    fn read(method: &str, path: &str, content_type: Option<&str>) -> Result<Call, Problem> {
        let headers = content_type.iter().map(|value| ("content-type", value.as_bytes())).collect();
        Call::read(method, path, "", &headers, PayloadLimit { bytes: 4, setting: "MAX_PAYLOAD" })
    }

    fn asked(method: &str, path: &str, body: &[u8]) -> Result<Asked, Problem> {
        read(method, path, None).and_then(|call| call.with_body(Bytes::copy_from_slice(body)))
    }

    #[test]
    fn no_more_of_a_body_is_read_than_can_matter() {
        for (method, path, limit, code) in [
            ("POST", "/v1/queues/q/jobs", 4, "payload_too_large"),
            ("POST", "/v1/queues/q/batch", JSON_BYTES, "body_too_large"),
            ("PATCH", "/v1/queues/q/jobs/a", DOCUMENT_BYTES, "body_too_large"),
            ("DELETE", "/v1/queues/q/jobs/a", 0, "unexpected_body"),
        ] {
            assert_eq!(read(method, path, None).unwrap().body_limit(), limit, "{method} {path}");
            let problem = asked(method, path, &vec![b' '; limit + 1]).unwrap_err();
            assert_eq!(problem.code, code, "{method} {path}");
        }
        assert!(asked("POST", "/v1/queues/q/jobs", b"1234").is_ok());
        let problem = asked("POST", "/v1/queues/q/jobs", b"12345").unwrap_err();
        assert!(problem.detail.ends_with("or raise MAX_PAYLOAD"), "{}", problem.detail);
        for (method, path) in [("GET", "/v1/queues/q/jobs/a"), ("HEAD", "/v1/queues/q")] {
            assert!(matches!(asked(method, path, b"ignored"), Ok(Asked::Question(_))), "{method} {path}");
        }
    }

    #[test]
    fn what_only_the_service_does_is_not_there() {
        for (method, path, status, allow) in [
            ("GET", "/v1/queues", 404, None),
            ("POST", "/v1/take", 404, None),
            ("POST", "/v1/queues/q/pause", 404, None),
            ("GET", "/v1/queues/q/dead", 404, None),
            ("GET", "/healthz", 404, None),
            ("DELETE", "/v1/queues/q", 405, Some("GET,HEAD")),
            ("post", "/v1/queues/q/jobs", 405, Some("POST")),
        ] {
            let response = Response::from(read(method, path, None).unwrap_err());
            let found = response.headers.iter().find(|(name, _)| *name == "allow").map(|(_, value)| &**value);
            assert_eq!((response.status, found), (status, allow), "{method} {path}");
        }
        let lines = read("POST", "/v1/queues/q/batch", Some("application/x-ndjson")).unwrap_err();
        assert_eq!((lines.status, lines.code), (415, "bad_content_type"));
    }
}
