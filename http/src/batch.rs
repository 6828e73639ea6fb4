use delayline_core::{JobId, Published, Trace};
use serde::Serialize;

use crate::item::{self, Outcome};
use crate::items::items;
use crate::payload::{essence, is_json, is_unstated};
use crate::{Draft, Headers, Problem, Response};

/// The media type of a batch whose jobs are lines.
pub const NDJSON: &str = "application/x-ndjson";

/// `POST queues/{queue}/batch` of an array: publishes jobs together, each of which succeeds or fails for itself.
#[derive(Debug)]
pub struct Batch(Vec<Result<Option<JobId>, Problem>>);

/// How the jobs of a batch are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a JSON array.
    Array,
    /// As JSON, a line each.
    Lines,
}

/// What became of each job of a batch, in its place.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = BatchResults))]
pub(crate) struct Results {
    /// An outcome for each item, in their order.
    results: Vec<Outcome>,
}

impl Form {
    /// What the content type says.
    pub fn of(headers: &Headers<'_>) -> Result<Form, Problem> {
        let content_type = headers.get("content-type").and_then(|value| str::from_utf8(value).ok());
        let essence = content_type.filter(|content_type| content_type.is_ascii()).map(essence);
        match essence.as_deref() {
            Some(NDJSON | "application/ndjson" | "application/jsonl") => Ok(Form::Lines),
            None => Ok(Form::Array),
            Some(essence) if is_json(essence) || is_unstated(essence) => Ok(Form::Array),
            Some(other) => {
                let detail = format!(
                    "{other} is no batch: send a JSON array as application/json, or lines as {NDJSON}"
                );
                Err(Problem::new(415, "bad_content_type", detail))
            }
        }
    }
}

impl Batch {
    /// Reads an array: the drafts are those items that are jobs, in their order. All belong to the trace of the request.
    pub fn read(body: &[u8], trace: Option<&Trace>) -> Result<(Batch, Vec<Draft>), Problem> {
        let items = items(body, |error| {
            let detail = format!("the body is not a JSON array of jobs: {error}; send lines as {NDJSON}");
            Problem::bad("bad_json", detail)
        })?;
        let (mut read, mut drafts) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            read.push(item::read(item.get().as_bytes(), trace).map(|draft| {
                let id = draft.id.clone();
                drafts.push(draft);
                id
            }));
        }
        Ok((Batch(read), drafts))
    }

    /// The answer, given what became of each draft, in their order.
    pub fn answer(self, published: impl IntoIterator<Item = Result<Published, Problem>>) -> Response {
        let mut published = published.into_iter();
        let results = self.0.into_iter().map(|read| match read {
            Ok(id) => Outcome::of(id.as_ref(), published.next().unwrap_or_else(|| Err(unanswered()))),
            Err(problem) => Outcome::error(None, problem),
        });
        Response::json(200, &Results { results: results.collect() })
    }
}

fn unanswered() -> Problem {
    Problem::unknown("it is not known what became of the job: repeat it with the same id to be sure")
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::UnixMs;

    #[test]
    fn each_item_has_its_result_in_its_place() {
        let body =
            br#"[{"payload":1,"id":"a"},{"payload":1,"dealy":"5s"},{"payload":2},{"payload":3,"id":"c"}]"#;
        let (batch, drafts) = Batch::read(body, None).unwrap();
        assert_eq!(drafts.iter().map(|draft| &draft.body[..]).collect::<Vec<_>>(), [b"1", b"2", b"3"]);
        let new =
            Published { id: "a".parse().unwrap(), due: Some(UnixMs(0)), duplicate: false, replaced: false };
        let response = batch.answer([Ok(new), Err(Problem::queue_full("full"))]);
        let found: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        let results = found["results"].as_array().unwrap();
        let told: Vec<_> = results
            .iter()
            .map(|of| (of["status"].as_str(), of["code"].as_str(), of["id"].as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (Some("created"), None, Some("a")),
                (Some("error"), Some("bad_item"), None),
                (Some("error"), Some("queue_full"), None),
                (Some("error"), Some("unknown"), Some("c")),
            ]
        );
    }

    #[test]
    fn the_content_type_says_how_jobs_are_written() {
        for (content_type, expected) in [
            (None, Ok(Form::Array)),
            (Some("application/json; charset=utf-8"), Ok(Form::Array)),
            (Some("application/x-www-form-urlencoded"), Ok(Form::Array)),
            (Some("Application/X-NDJSON"), Ok(Form::Lines)),
            (Some("application/jsonl"), Ok(Form::Lines)),
            (Some("text/plain"), Err("bad_content_type")),
        ] {
            let headers = content_type.iter().map(|value| ("content-type", value.as_bytes())).collect();
            assert_eq!(Form::of(&headers).map_err(|problem| problem.code), expected, "{content_type:?}");
        }
    }
}
