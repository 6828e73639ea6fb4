use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{Backoff, Change, JobEdit, JobId, NotEditable, QueueName, RecordError, Span, UnixMs};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::draft::due;
use crate::item::HEADERS_BYTES;
use crate::jobs::{leased, no_such_job};
use crate::payload::Encoding;
use crate::{Object, Problem, Reschedule, Response, Time, Written};

/// `PATCH queues/{queue}/jobs/{id}`: changes what the body names of a waiting job.
#[derive(Debug)]
pub enum Patch {
    /// Nothing but its due time: that takes no look at the job.
    Due(Reschedule),
    /// More than that.
    Edit(Edit),
}

/// What is to change about a job.
#[derive(Debug)]
pub struct Edit {
    /// Where it is.
    pub queue: QueueName,
    /// Which.
    pub id: JobId,
    /// What is named.
    pub changes: JobEdit,
}

/// What is to change about a job, as JSON Merge Patch (RFC 7396) has it: what is null has its default again.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = JobEdit))]
#[serde(deny_unknown_fields)]
pub(crate) struct Named<'a> {
    /// The payload, as `encoding` says.
    #[serde(borrow, default, deserialize_with = "raw")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>, required = false))]
    payload: Option<&'a RawValue>,
    /// How the payload is written here.
    encoding: Option<Encoding>,
    /// The media type of the payload; that of its encoding, if one is said.
    #[serde(default, deserialize_with = "change")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false))]
    content_type: Change<String>,
    /// How long until it is due; not with `at`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    delay: Option<Written<Span>>,
    /// When it is due; not with `delay`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    at: Option<Written<Time>>,
    /// The most attempts; null leaves them to the queue.
    #[serde(default, deserialize_with = "change")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u16>, required = false, minimum = 1, maximum = 999))]
    attempts: Change<u16>,
    /// The delay before another attempt; null leaves it to the queue.
    #[serde(default, deserialize_with = "change")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::BackoffText>, required = false))]
    backoff: Change<Written<Backoff>>,
    /// When it expires, counted from the call; null for never.
    #[serde(default, deserialize_with = "change")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>, required = false))]
    ttl: Change<Written<Span>>,
    /// Headers by name, each in place of what the job has of that name; null removes it.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<BTreeMap<String, Option<String>>>))]
    headers: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Edited<'a> {
    id: &'a str,
    due: Time,
}

impl Patch {
    /// Reads the body; the options are to be none.
    pub fn read(queue: QueueName, id: JobId, body: &[u8]) -> Result<Patch, Problem> {
        let named: Named<'_> = Object::read(body).map_err(|error| {
            Problem::bad("bad_json", format!("the body cannot be read: {error}: write {WANTED}"))
        })?;
        let due = due(named.delay.map(|delay| delay.0), named.at.map(|at| at.0))?;
        let changes = JobEdit {
            body: body_of(named.payload, named.encoding)?,
            content_type: content_type(named.content_type, named.encoding),
            headers: named.headers.map(headers).transpose()?.unwrap_or_default(),
            attempts: named.attempts,
            backoff: unwritten(named.backoff),
            ttl: unwritten(named.ttl),
            due: None,
        };
        match due {
            None if changes == JobEdit::default() => {
                Err(Problem::bad("nothing_to_change", format!("the body names nothing: write {WANTED}")))
            }
            Some(due) if changes == JobEdit::default() => Ok(Patch::Due(Reschedule { queue, id, due })),
            due => Ok(Patch::Edit(Edit { queue, id, changes: JobEdit { due, ..changes } })),
        }
    }
}

const WANTED: &str =
    "one or more of payload (with encoding), content_type, headers, attempts, backoff, ttl, and delay or at";

impl Edit {
    /// The answer where the job is as asked.
    pub fn done(&self, due: UnixMs) -> Response {
        Response::json(200, &Edited { id: self.id.as_str(), due: Time(due) })
    }

    /// Why the job stays as it is.
    pub fn refused(&self, why: NotEditable) -> Problem {
        let id = &self.id;
        match why {
            NotEditable::Leased => leased(id, "edited"),
            NotEditable::Dead => {
                let detail = format!("job {id} is a dead letter and cannot be edited: requeue it first");
                Problem::conflict("dead", detail)
            }
            NotEditable::Expires => {
                let detail = format!(
                    "job {id} would expire before that: choose an earlier time, or another ttl with it"
                );
                Problem::conflict("expires", detail)
            }
            NotEditable::Unreadable(why) => self.unreadable(&why),
            NotEditable::Invalid(invalid) => invalid.into(),
        }
    }

    /// There is no such job.
    pub fn gone(&self) -> Problem {
        no_such_job(&self.queue, &self.id)
    }

    /// Others were faster each time.
    pub fn contended(&self) -> Problem {
        let detail = format!(
            "job {} changed each time it was to be edited, and is as others left it: try again",
            self.id
        );
        Problem::conflict("changed", detail)
    }

    fn unreadable(&self, why: &RecordError) -> Problem {
        let detail = format!(
            "job {} cannot be read, so what is not named could not be kept ({why}): publish another with replace, or cancel it",
            self.id
        );
        Problem::conflict("unreadable", detail)
    }
}

/// Null is a payload too.
fn raw<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn headers(json: &RawValue) -> Result<Vec<(String, Option<String>)>, Problem> {
    if json.get().len() > HEADERS_BYTES {
        let detail = "the headers are over 64 KiB: put what is in them into the payload";
        return Err(Problem::bad("bad_job", detail));
    }
    let headers: BTreeMap<String, Option<String>> = serde_json::from_str(json.get())
        .map_err(|error| Problem::bad("bad_json", format!("the headers cannot be read: {error}")))?;
    Ok(headers.into_iter().collect())
}

fn change<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Change<T>, D::Error> {
    Option::deserialize(deserializer).map(|value| value.map_or(Change::Unset, Change::Set))
}

fn unwritten<T>(change: Change<Written<T>>) -> Change<T> {
    match change {
        Change::Keep => Change::Keep,
        Change::Unset => Change::Unset,
        Change::Set(Written(value)) => Change::Set(value),
    }
}

fn body_of(payload: Option<&RawValue>, encoding: Option<Encoding>) -> Result<Option<Bytes>, Problem> {
    match (payload, encoding) {
        (None, Some(_)) => {
            Err(Problem::bad("bad_json", "encoding is of a payload: add one, or leave it out"))
        }
        (payload, encoding) => {
            payload.map(|payload| encoding.unwrap_or_default().decode(payload)).transpose()
        }
    }
}

/// A payload in another encoding than JSON says what it is, as at a publish.
fn content_type(named: Change<String>, encoding: Option<Encoding>) -> Change<String> {
    match (named, encoding.and_then(Encoding::content_type)) {
        (Change::Keep, Some(usual)) => Change::Set(usual.to_owned()),
        (named, _) => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::Due;

    fn read(body: &str) -> Result<Patch, Problem> {
        Patch::read("q".parse().unwrap(), "a".parse().unwrap(), body.as_bytes())
    }

    fn changes(body: &str) -> JobEdit {
        match read(body) {
            Ok(Patch::Edit(edit)) => edit.changes,
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn what_is_named_is_read_and_nothing_else() {
        let all = r#"{"payload":"aGk=","encoding":"base64","content_type":"text/x","delay":"5s","attempts":3,
            "backoff":"15s 3m","ttl":"1h","headers":{"a":"1","b":null}}"#;
        let expected = JobEdit {
            due: Some(Due::After { ms: 5_000 }),
            body: Some(Bytes::from_static(b"hi")),
            content_type: Change::Set("text/x".into()),
            headers: vec![("a".into(), Some("1".into())), ("b".into(), None)],
            attempts: Change::Set(3),
            backoff: Change::Set(Backoff::Ladder(vec![15_000, 180_000])),
            ttl: Change::Set(Span(3_600_000)),
        };
        assert_eq!(changes(all), expected);
        let unset = changes(r#"{"attempts":null,"backoff":null,"ttl":null,"content_type":null}"#);
        let expected = JobEdit {
            attempts: Change::Unset,
            backoff: Change::Unset,
            ttl: Change::Unset,
            content_type: Change::Unset,
            ..JobEdit::default()
        };
        assert_eq!(unset, expected);
        assert_eq!(changes(r#"{"payload":null}"#).body.as_deref(), Some(&b"null"[..]));
        let text = changes(r#"{"payload":"hi","encoding":"text"}"#);
        assert_eq!(text.content_type, Change::Set("text/plain; charset=utf-8".into()));
    }

    #[test]
    fn a_due_time_alone_moves_the_job() {
        for body in [r#"{"delay":"5s"}"#, r#"{"at":"2026-11-21T10:00:05Z"}"#] {
            assert!(matches!(read(body), Ok(Patch::Due(_))), "{body}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_an_edit() {
        for (body, code, says) in [
            ("{}", "nothing_to_change", "names nothing: write one or more of payload"),
            ("", "bad_json", "the body cannot be read"),
            (r#"{"dealy":"5s"}"#, "bad_json", "unknown field `dealy`"),
            (r#"{"delay":"5s","at":"2026-11-21T10:00:05Z"}"#, "bad_due", "exclude each other"),
            (r#"{"encoding":"text"}"#, "bad_json", "encoding is of a payload"),
            (r#"{"payload":1,"encoding":"text"}"#, "bad_payload", "must be a JSON string"),
            (r#"{"attempts":70000}"#, "bad_json", "invalid value"),
            (r#"{"headers":{"a":1}}"#, "bad_json", "the headers cannot be read"),
        ] {
            let problem = read(body).unwrap_err();
            assert!(problem.code == code && problem.detail.contains(says), "{body}: {problem:?}");
        }
    }

    #[test]
    fn each_refusal_has_its_answer() {
        let Ok(Patch::Edit(edit)) = read(r#"{"attempts":3}"#) else { panic!() };
        for (problem, status, code) in [
            (edit.refused(NotEditable::Leased), 409, "leased"),
            (edit.refused(NotEditable::Dead), 409, "dead"),
            (edit.refused(NotEditable::Expires), 409, "expires"),
            (
                edit.refused(NotEditable::Unreadable(RecordError::Unreadable { what: "its head" })),
                409,
                "unreadable",
            ),
            (edit.gone(), 404, "no_such_job"),
            (edit.contended(), 409, "changed"),
        ] {
            assert_eq!((problem.status, problem.code), (status, code), "{problem:?}");
        }
        let done = edit.done(UnixMs(1_795_255_205_000));
        assert_eq!(&done.body[..], br#"{"id":"a","due":"2026-11-21T10:00:05.000Z"}"#);
    }
}
