//! The jobs of a batch, each for itself.

use std::collections::BTreeMap;

use delayline_core::{Backoff, JobId, Published, Span, Trace};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::draft::due;
use crate::payload::Encoding;
use crate::{Draft, Object, Problem, Time, Written};

/// A job of a batch.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = BatchItem))]
#[serde(deny_unknown_fields)]
pub(crate) struct Item<'a> {
    /// The payload, as `encoding` says.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    payload: &'a RawValue,
    /// How the payload is written here.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    encoding: Encoding,
    /// The media type of the payload; that of its encoding unless said.
    content_type: Option<String>,
    /// The id of the job; drawn unless said.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Id>))]
    id: Option<Written<JobId>>,
    /// Take the place of a waiting job of this id.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false, default = false))]
    replace: bool,
    /// How long until it is due; not with `at`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    delay: Option<Written<Span>>,
    /// When it is due; not with `delay`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    at: Option<Written<Time>>,
    /// The most attempts; the queue's unless said.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 999))]
    attempts: Option<u16>,
    /// The delay before another attempt; the queue's unless said.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::BackoffText>))]
    backoff: Option<Written<Backoff>>,
    /// When it expires, counted from the call; not shorter than the delay.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    ttl: Option<Written<Span>>,
    /// What else its consumer should know, by name.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<BTreeMap<String, String>>))]
    headers: Option<&'a RawValue>,
}

/// What its fields are called.
const FIELDS: [&str; 11] = [
    "payload",
    "encoding",
    "content_type",
    "id",
    "replace",
    "delay",
    "at",
    "attempts",
    "backoff",
    "ttl",
    "headers",
];

/// The most bytes of the JSON of a job's headers: a record holds less, and a map of small ones takes a multiple of it.
pub(crate) const HEADERS_BYTES: usize = 64 << 10;

/// What became of a job of a batch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = BatchOutcome))]
pub struct Outcome {
    /// `duplicate`: the id was in use, and nothing has changed.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::PublishStatus))]
    status: &'static str,
    /// The id of the job, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Id>))]
    id: Option<String>,
    /// When it is due, if it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    due: Option<Time>,
    /// It took the place of a waiting job of its id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replaced: bool,
    /// The code of the problem, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Code>))]
    code: Option<&'static str>,
    /// What happened, to what, and what to do, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Reads a job of a batch, which belongs to the trace of its request.
pub fn read(json: &[u8], trace: Option<&Trace>) -> Result<Draft, Problem> {
    let item: Item = Object::read(json)
        .map_err(|error| Problem::bad("bad_item", format!("this is not a job: {error}")))?;
    Ok(Draft {
        body: item.encoding.decode(item.payload)?,
        content_type: item.content_type.or_else(|| item.encoding.content_type().map(String::from)),
        id: item.id.map(|id| id.0),
        replace: item.replace,
        due: due(item.delay.map(|delay| delay.0), item.at.map(|at| at.0))?,
        attempts: item.attempts,
        backoff: item.backoff.map(|backoff| backoff.0),
        ttl: item.ttl.map(|ttl| ttl.0),
        headers: item.headers.map(headers).transpose()?.unwrap_or_default(),
        trace: trace.cloned(),
    })
}

fn headers(json: &RawValue) -> Result<Vec<(String, String)>, Problem> {
    if json.get().len() > HEADERS_BYTES {
        return Err(Problem::bad(
            "bad_job",
            "the headers are over 64 KiB: put what is in them into the payload",
        ));
    }
    let headers: BTreeMap<String, String> = serde_json::from_str(json.get())
        .map_err(|error| Problem::bad("bad_item", format!("this is not a job: headers: {error}")))?;
    Ok(headers.into_iter().collect())
}

/// Whether a body is written as a job of a batch with options, where the whole body would be the payload: its publisher has
/// taken one for the other.
pub(crate) fn is_described(body: &[u8]) -> bool {
    // Most bodies are told apart by their first field: the error that says so in full would take longer to write.
    if !first_field(body).is_some_and(|first| FIELDS.iter().any(|field| field.as_bytes() == first)) {
        return false;
    }
    // It is read no further than to the first field that a job of a batch has not.
    let Ok(item) = Object::<Item>::read(body) else { return false };
    let Item { payload: _, encoding, content_type, id, replace, delay, at, attempts, backoff, ttl, headers } =
        item;
    encoding != Encoding::default()
        || content_type.is_some()
        || id.is_some()
        || replace
        || delay.is_some()
        || at.is_some()
        || attempts.is_some()
        || backoff.is_some()
        || ttl.is_some()
        || headers.is_some()
}

/// The first field of what may be an object, as it is written.
fn first_field(body: &[u8]) -> Option<&[u8]> {
    let fields = body.trim_ascii_start().strip_prefix(b"{")?;
    let name = fields.trim_ascii_start().strip_prefix(b"\"")?;
    name.iter().position(|byte| *byte == b'"').map(|end| &name[..end])
}

impl Outcome {
    /// What became of the job that was to have this id, if it was to have one.
    pub fn of(id: Option<&JobId>, published: Result<Published, Problem>) -> Outcome {
        match published {
            Ok(published) => Outcome::published(&published),
            Err(problem) => Outcome::error(id, problem),
        }
    }

    fn published(published: &Published) -> Outcome {
        Outcome {
            status: if published.duplicate { "duplicate" } else { "created" },
            id: Some(published.id.to_string()),
            due: published.due.map(Time),
            replaced: published.replaced,
            code: None,
            detail: None,
        }
    }

    /// The job was refused.
    pub fn error(id: Option<&JobId>, problem: Problem) -> Outcome {
        Outcome {
            status: "error",
            id: id.map(JobId::to_string),
            due: None,
            replaced: false,
            code: Some(problem.code),
            detail: Some(problem.detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::{Due, UnixMs};

    #[test]
    fn reads_every_field() {
        let json = r#"{"payload":"aGk=","encoding":"base64","content_type":"text/x","id":"a:1","replace":true,"delay":"5s","attempts":3,
            "backoff":"15s 3m","ttl":"1h","headers":{"Tenant":"x"}}"#;
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok();
        let draft = read(json.as_bytes(), trace.as_ref()).unwrap();
        assert_eq!(draft.trace, trace);
        assert_eq!(draft.body, "hi");
        assert_eq!(draft.content_type.as_deref(), Some("text/x"));
        assert_eq!(draft.id.as_ref().map(JobId::as_str), Some("a:1"));
        assert!(draft.replace);
        assert_eq!((draft.due, draft.ttl), (Some(Due::After { ms: 5_000 }), Some(Span(3_600_000))));
        assert_eq!((draft.attempts, draft.backoff), (Some(3), Some(Backoff::Ladder(vec![15_000, 180_000]))));
        assert_eq!(draft.headers, [("Tenant".to_string(), "x".to_string())]);
        let draft = read(br#"{"payload":{"a":1},"at":"2026-11-21T10:00:05Z"}"#, None).unwrap();
        let at = Due::At(UnixMs(1_795_255_205_000));
        assert_eq!((&draft.body[..], draft.due), (&b"{\"a\":1}"[..], Some(at)));
    }

    #[test]
    fn a_body_that_is_a_job_with_options_is_told_from_a_payload() {
        for (option, is_option) in [
            (r#""id":"a""#, true),
            (r#""delay":"5s""#, true),
            (r#""at":"2026-11-21T10:00:05Z""#, true),
            (r#""attempts":3"#, true),
            (r#""backoff":"15s 3m""#, true),
            (r#""ttl":"1h""#, true),
            (r#""replace":true"#, true),
            (r#""headers":{}"#, true),
            (r#""content_type":"a/b""#, true),
            (r#""encoding":"text""#, true),
            (r#""encoding":"json""#, false),
            (r#""delay":5"#, false),
            (r#""delay":"soon""#, false),
            (r#""to":"ann""#, false),
            (r#""id":"a","to":"ann""#, false),
        ] {
            for body in [format!("{{\"payload\":1,{option}}}"), format!(" {{{option}, \"payload\":{{}} }}")] {
                assert_eq!(is_described(body.as_bytes()), is_option, "{body}");
            }
            assert!(!is_described(format!("{{{option}}}").as_bytes()), "{option}");
        }
        for body in ["", "{", "1", r#"{"payload":1}"#, r#"[{"payload":1,"id":"a"}]"#] {
            assert!(!is_described(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn each_field_may_be_the_first() {
        let nothing = serde_json::from_str::<Item>("{\"none\":1}").err().unwrap().to_string();
        let known: Vec<&str> = nothing.split('`').skip(3).step_by(2).collect();
        assert_eq!(known, FIELDS, "{nothing}");
    }

    #[test]
    fn says_what_is_wrong_with_a_job() {
        for (json, detail) in [
            (r#"{"payload":1,"dealy":"5s"}"#, "unknown field `dealy`, expected one of `payload`, `encoding`"),
            (r#"{"delay":"5s"}"#, "missing field `payload`"),
            (r#"{"payload":1,"delay":"5"}"#, "has no unit: write 5s"),
            (r#"{"payload":1,"delay":5}"#, "expected a string"),
            (r#"{"payload":1,"id":"a b"}"#, "job id \"a b\" is not valid"),
            (
                r#"{"payload":1,"encoding":"hex"}"#,
                "unknown variant `hex`, expected one of `json`, `text`, `base64`",
            ),
            (r#"{"payload":1,"attempts":-1}"#, "invalid value"),
            ("17", "this is not a job"),
        ] {
            let problem = read(json.as_bytes(), None).unwrap_err();
            assert!(problem.detail.contains(detail), "{json}: {}", problem.detail);
        }
    }
}
