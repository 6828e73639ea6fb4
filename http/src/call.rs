use bytes::Bytes;
use delayline_core::{JobId, QueueName, Trace};
use percent_encoding::percent_decode_str;

use crate::body::{DOCUMENT_BYTES, JSON_BYTES, PayloadLimit, document_too_large, json_too_large, unexpected};
use crate::{
    Batch, Cancel, Draft, Form, Headers, Inspect, Operation, Options, Problem, Publish, Question, Reschedule,
    Route, Segment, Show, named, trace,
};

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
    Array(QueueName, Option<Trace>),
    Due(QueueName, JobId),
    /// Nothing: a body is refused.
    Nothing(Question),
    /// Nothing: a body is ignored, since its kind of request has none.
    Anything(Question),
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
        let (operation, parameters) = Route::find(method, path)?;
        let options = || Options::new(query, headers);
        let wants = match (operation, parameters.as_slice()) {
            (Operation::Publish, [queue]) => {
                let (publish, draft) = Publish::read(segment(queue)?, options()?, headers)?;
                Wants::Payload(publish, draft, payload)
            }
            (Operation::PublishBatch, [queue]) => {
                let queue = segment(queue)?;
                options()?.finish()?;
                is_array(headers)?;
                Wants::Array(queue, trace(headers))
            }
            (Operation::InspectJob, [queue, id]) => {
                let inspect = Inspect::read(segment(queue)?, segment(id)?, options()?)?;
                Wants::Anything(Question::Inspect(inspect))
            }
            (Operation::CancelJob, [queue, id]) => {
                let cancel = Cancel::read(segment(queue)?, segment(id)?, options()?)?;
                Wants::Nothing(Question::Cancel(cancel))
            }
            (Operation::RescheduleJob, [queue, id]) => {
                let (queue, id) = (segment(queue)?, segment(id)?);
                options()?.finish()?;
                Wants::Due(queue, id)
            }
            (Operation::ShowQueue, [queue]) => {
                Wants::Anything(Question::Show(Show::read(segment(queue)?, options()?)?))
            }
            _ => return Err(Problem::no_such_route(method, path)),
        };
        Ok(Call(wants))
    }

    /// How many bytes of the body can matter. Of a longer one, any more are enough for [`Call::with_body`] to refuse it.
    pub fn body_limit(&self) -> usize {
        match &self.0 {
            Wants::Payload(_, _, limit) => limit.bytes,
            Wants::Array(..) => JSON_BYTES,
            Wants::Due(..) => DOCUMENT_BYTES,
            Wants::Nothing(_) | Wants::Anything(_) => 0,
        }
    }

    /// Reads the body.
    pub fn with_body(self, body: Bytes) -> Result<Asked, Problem> {
        let is_too_long = body.len() > self.body_limit();
        match self.0 {
            Wants::Payload(_, _, limit) if is_too_long => Err(limit.exceeded()),
            Wants::Array(..) if is_too_long => Err(json_too_large()),
            Wants::Due(..) if is_too_long => Err(document_too_large()),
            Wants::Nothing(_) if is_too_long => Err(unexpected()),
            Wants::Payload(publish, draft, _) => {
                let draft = publish.with_body(draft, body)?;
                Ok(Asked::Publish(publish, draft))
            }
            Wants::Array(queue, trace) => {
                let (batch, drafts) = Batch::read(&body, trace.as_ref())?;
                Ok(Asked::Batch(queue, batch, drafts))
            }
            Wants::Due(queue, id) => {
                Ok(Asked::Question(Question::Reschedule(Reschedule::read(queue, id, &body)?)))
            }
            Wants::Nothing(question) | Wants::Anything(question) => Ok(Asked::Question(question)),
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
