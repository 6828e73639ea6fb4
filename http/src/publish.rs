use std::ops::Not;

use bytes::Bytes;
use delayline_core::{ATTEMPTS, Ask, Inspected, JobId, Published, QueueName};
use serde::Serialize;

use crate::cloud_event::attributes;
use crate::draft::due;
use crate::item::is_described;
use crate::{
    Draft, Headers, Kept, Options, Problem, Response, Time, essence, is_json, is_unstated, named, trace,
};

/// `POST queues/{queue}/jobs`: publishes a job, whose payload is the body.
#[derive(Debug)]
pub struct Publish {
    /// Where to.
    pub queue: QueueName,
    is_repeatable: bool,
    replaces: bool,
}

/// A job that was accepted, now or before.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Published))]
pub(crate) struct Told<'a> {
    /// The id of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Id))]
    id: &'a str,
    /// When the job is due; `null` if a repeat found the job gone.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<crate::openapi::text::Moment>))]
    due: Option<Time>,
    /// The job took the place of a waiting job of its id.
    #[serde(skip_serializing_if = "Not::not")]
    replaced: bool,
    /// A repeat by the same `Idempotency-Key`: nothing has changed.
    #[serde(skip_serializing_if = "Not::not")]
    duplicate: bool,
}

impl Publish {
    /// Reads all but the body, which the draft lacks.
    pub fn read(
        queue: QueueName,
        mut options: Options,
        headers: &Headers<'_>,
    ) -> Result<(Publish, Draft), Problem> {
        let key = idempotency_key(headers)?;
        let mut draft = described(&mut options, headers)?;
        options.finish()?;
        if key.is_some() && draft.id.is_some() {
            return Err(Problem::bad("bad_option", "id and Idempotency-Key exclude each other: give one"));
        }
        if key.is_some() && draft.replace {
            let detail =
                "replace and Idempotency-Key exclude each other, as a repeat would replace: give an id";
            return Err(Problem::bad("bad_option", detail));
        }
        let publish = Publish { queue, is_repeatable: key.is_some(), replaces: draft.replace };
        draft.id = draft.id.or(key);
        Ok((publish, draft))
    }

    /// The draft with its payload.
    pub fn with_body(&self, draft: Draft, body: Bytes) -> Result<Draft, Problem> {
        let may_be_json = draft.content_type.as_deref().map(essence);
        let may_be_json = may_be_json.is_none_or(|essence| is_json(&essence) || is_unstated(&essence));
        if may_be_json && is_described(&body) {
            let detail = format!(
                "the body is the payload, and options go into the query, as in ?delay=5s; this one has the options of a job \
                 of a batch: POST it to /v1/queues/{}/batch as [{{\"payload\": …}}], as one whose payload it is if it is meant",
                self.queue
            );
            return Err(Problem::bad("options_in_body", detail));
        }
        Ok(Draft { body, ..draft })
    }

    /// What must be asked before it can be answered: a duplicate's answer tells of the job that is there.
    pub fn ask(&self, published: &Published) -> Option<Ask> {
        published.duplicate.then(|| Ask::Inspect { queue: self.queue.clone(), id: published.id.clone() })
    }

    /// The answer, given the job that is there, if one had to be looked for.
    pub fn answer(
        &self,
        published: &Published,
        found: Result<Option<Inspected>, Problem>,
    ) -> Result<Response, Problem> {
        let Published { id, due, duplicate, replaced } = published;
        let told = Told { id: id.as_str(), due: due.map(Time), replaced: *replaced, duplicate: *duplicate };
        match duplicate {
            false => {
                let location = format!("/v1/queues/{}/jobs/{id}", self.queue);
                Ok(Response::json(201, &told).header("location", location))
            }
            true if self.is_repeatable => {
                let due = found?.and_then(|job| job.due()).map(Time);
                Ok(Response::json(200, &Told { due, ..told }))
            }
            true => Err(self.duplicate(id, found.ok().flatten())),
        }
    }

    fn duplicate(&self, id: &JobId, found: Option<Inspected>) -> Problem {
        let instead = if self.replaces {
            "only one that waits is replaced: publish with another id, or once it is gone"
        } else {
            "publish with another id, or reschedule or replace it"
        };
        let detail = format!("queue {} has a job {id}, which is untouched: {instead}", self.queue);
        let problem = Problem::conflict("duplicate", detail);
        match found {
            Some(job) => problem.with_job(&Kept::new(&self.queue, job)),
            None => problem,
        }
    }
}

fn described(options: &mut Options, headers: &Headers<'_>) -> Result<Draft, Problem> {
    let id: Option<String> = options.read("id")?;
    Ok(Draft {
        id: id.as_deref().map(named).transpose()?,
        due: due(options.read("delay")?, options.read("at")?)?,
        attempts: options.in_range("attempts", ATTEMPTS)?,
        backoff: options.read("backoff")?,
        ttl: options.read("ttl")?,
        replace: options.read("replace")?.unwrap_or(false),
        headers: [attributes(headers)?, options.job_headers()].concat(),
        trace: trace(headers),
        content_type: headers.text("content-type")?.map(String::from),
        ..Draft::default()
    })
}

/// The id of a publish that may be repeated; quotes, as of a structured field, are not part of it.
fn idempotency_key(headers: &Headers<'_>) -> Result<Option<JobId>, Problem> {
    let Some(key) = headers.text("idempotency-key")? else { return Ok(None) };
    let bare = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    named(bare).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use delayline_core::{Compression, Place, Record, Stored, UnixMs};

    fn read(query: &str, headers: &[(&str, &str)]) -> Result<(Publish, Draft), Problem> {
        let headers: Headers = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        Publish::read("q".parse().unwrap(), Options::new(query, &headers)?, &headers)
    }

    fn published(due: Option<UnixMs>, replaced: bool) -> Published {
        Published { id: "a".parse().unwrap(), due, duplicate: due.is_none(), replaced }
    }

    fn found() -> Inspected {
        let record = Record { body: Bytes::from_static(b"1"), ..Record::default() };
        let record = record.encode(Compression::Off).unwrap().to_bytes();
        let (id, at) = ("a".parse().unwrap(), UnixMs(1_795_255_205_000));
        Stored { id, place: Place::Delayed, at, state: None, expires: None, record }.into()
    }

    fn text(response: &Response) -> &str {
        str::from_utf8(&response.body).unwrap()
    }

    #[test]
    fn reads_what_the_job_is_to_be() {
        let headers =
            [("Content-Type", "text/x"), ("Delayline-Header-Tenant", "acme"), ("Delayline-TTL", "1h")];
        let (publish, draft) = read("delay=5s&id=a&attempts=3&backoff=15s&replace=true", &headers).unwrap();
        assert_eq!((publish.is_repeatable, publish.replaces), (false, true));
        assert_eq!(draft.id.as_ref().map(JobId::as_str), Some("a"));
        assert_eq!(
            (draft.attempts, draft.replace, draft.content_type.as_deref()),
            (Some(3), true, Some("text/x"))
        );
        assert_eq!(draft.headers, [("tenant".to_owned(), "acme".to_owned())]);
        let (publish, draft) = read("", &[("Idempotency-Key", "\"k\"")]).unwrap();
        assert_eq!((publish.is_repeatable, draft.id.as_ref().map(JobId::as_str)), (true, Some("k")));
        assert_eq!(read("", &[("Idempotency-Key", "a b")]).unwrap_err().code, "bad_job_id");
    }

    #[test]
    fn an_event_and_its_trace_go_with_the_job() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let headers = [
            ("ce-specversion", "1.0"),
            ("Ce-Id", "17"),
            ("Delayline-Header-Tenant", "acme"),
            ("traceparent", parent),
            ("tracestate", "a=1"),
        ];
        let (_, draft) = read("", &headers).unwrap();
        let found: Vec<_> = draft.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, [("ce-specversion", "1.0"), ("ce-id", "17"), ("tenant", "acme")]);
        let trace = draft.trace.unwrap();
        assert_eq!((&*trace.to_string(), &*trace.state), (parent, "a=1"));
        let structured = br#"{"specversion":"1.0","id":"17","type":"a","source":"b","data":{"payload":1}}"#;
        let (publish, draft) = read("", &[("Content-Type", "application/cloudevents+json")]).unwrap();
        let draft = publish.with_body(draft, Bytes::from_static(structured)).unwrap();
        assert_eq!(&draft.body[..], structured);
    }

    #[test]
    fn a_new_job_is_answered_with_its_place() {
        let (publish, _) = read("id=a", &[]).unwrap();
        let new = published(Some(UnixMs(1_795_255_205_000)), false);
        assert_eq!(publish.ask(&new), None);
        let response = publish.answer(&new, Ok(None)).unwrap();
        assert_eq!(
            (response.status, text(&response)),
            (201, r#"{"id":"a","due":"2026-11-21T10:00:05.000Z"}"#)
        );
        assert!(response.headers.contains(&("location", "/v1/queues/q/jobs/a".to_owned())));
        let replaced = publish.answer(&published(Some(UnixMs(0)), true), Ok(None)).unwrap();
        assert_eq!(text(&replaced), r#"{"id":"a","due":"1970-01-01T00:00:00.000Z","replaced":true}"#);
    }

    #[test]
    fn a_duplicate_is_answered_with_the_job_that_is_there() {
        let duplicate = published(None, false);
        let (publish, _) = read("", &[("Idempotency-Key", "a")]).unwrap();
        assert!(matches!(publish.ask(&duplicate), Some(Ask::Inspect { id, .. }) if id.as_str() == "a"));
        let repeated = publish.answer(&duplicate, Ok(Some(found()))).unwrap();
        let expected = r#"{"id":"a","due":"2026-11-21T10:00:05.000Z","duplicate":true}"#;
        assert_eq!((repeated.status, text(&repeated)), (200, expected));
        let gone = publish.answer(&duplicate, Ok(None)).unwrap();
        assert_eq!(text(&gone), r#"{"id":"a","due":null,"duplicate":true}"#);
        let unknown = publish.answer(&duplicate, Err(Problem::unknown("x"))).unwrap_err();
        assert_eq!(unknown.code, "unknown");
        for (query, instead) in
            [("id=a", "reschedule or replace it"), ("id=a&replace=true", "once it is gone")]
        {
            let (publish, _) = read(query, &[]).unwrap();
            for (found, has_job) in
                [(Ok(Some(found())), true), (Ok(None), false), (Err(Problem::unknown("x")), false)]
            {
                let problem = publish.answer(&duplicate, found).unwrap_err();
                assert!(problem.detail.contains(instead), "{}", problem.detail);
                let response = Response::from(problem);
                assert_eq!(
                    (response.status, text(&response).contains("\"job\":{\"id\":\"a\"")),
                    (409, has_job)
                );
            }
        }
    }
}
