//! Many waiting jobs of a queue, cancelled or rescheduled together: each succeeds or fails for itself.

use delayline_core::{CancelOutcome, Due, JobId, RescheduleOutcome, Span, UnixMs};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::draft::due;
use crate::{Object, Problem, Response, Time, Written, items, outcome};

/// `DELETE queues/{queue}/jobs`: takes waiting jobs away.
#[derive(Debug)]
pub struct CancelMany(Vec<Result<JobId, Problem>>);

/// `PATCH queues/{queue}/jobs`: gives waiting jobs other due times.
#[derive(Debug)]
pub struct RescheduleMany(Vec<Result<JobId, Problem>>);

/// The jobs that are to be taken away.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = JobIds))]
#[serde(deny_unknown_fields)]
pub(crate) struct Ids<'a> {
    /// At most 1,000.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::openapi::text::Id>, max_items = 1000))]
    ids: &'a RawValue,
}

/// A job that is to have another due time: `delay` or `at`.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = JobMove))]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
    /// The id of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Id))]
    id: Written<JobId>,
    /// How long until it is due.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Duration>))]
    delay: Option<Written<Span>>,
    /// When it is due.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    at: Option<Written<Time>>,
}

/// What became of each job, in the order in which they were named.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = JobChanges))]
pub(crate) struct Changes {
    /// An outcome for each item.
    results: Vec<Change>,
}

/// What became of one job.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = JobChange))]
struct Change {
    /// `leased` and `dead` jobs stay as they are; `expires`: the job would expire before it is due.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::ChangeStatus))]
    status: &'static str,
    /// The id of the job, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Id>))]
    id: Option<String>,
    /// When the job is due, if it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Moment>))]
    due: Option<Time>,
    /// The code of the problem, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::openapi::text::Code>))]
    code: Option<&'static str>,
    /// What happened, to what, and what to do, if it is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl CancelMany {
    /// Reads the body: the ids are those that can be some, in their order.
    pub fn read(body: &[u8]) -> Result<(CancelMany, Vec<JobId>), Problem> {
        let unread = |error| {
            Problem::bad("bad_json", format!("the body cannot be read: {error}: write {{\"ids\": [\"…\"]}}"))
        };
        let Ids { ids } = Object::read(body).map_err(unread)?;
        let mut named = Vec::new();
        let read = items(ids.get().as_bytes(), unread)?.into_iter().map(|id| {
            let Written(id): Written<JobId> =
                serde_json::from_str(id.get()).map_err(|error| not_one(&error))?;
            named.push(id.clone());
            Ok(id)
        });
        Ok((CancelMany(read.collect()), named))
    }

    /// The answer, given what became of each id, in their order.
    pub fn answer(self, outcomes: impl IntoIterator<Item = Result<CancelOutcome, Problem>>) -> Response {
        answer(self.0, outcomes, |outcome| (outcome::cancelled(outcome), None))
    }
}

impl RescheduleMany {
    /// Reads the body, given the wall clock: the jobs are those that can be moved so, in their order.
    pub fn read(body: &[u8], now: UnixMs) -> Result<(RescheduleMany, Vec<(JobId, Due)>), Problem> {
        let unlisted = |error| {
            let wanted = "write [{\"id\": \"…\", \"delay\": \"5s\"}], or \"at\" instead of \"delay\"";
            Problem::bad("bad_json", format!("the body cannot be read: {error}: {wanted}"))
        };
        let mut moved = Vec::new();
        let read = items(body, unlisted)?.into_iter().map(|item| {
            let Move { id, delay, at } =
                Object::read(item.get().as_bytes()).map_err(|error| not_one(&error))?;
            let due = due(delay.map(|delay| delay.0), at.map(|at| at.0))?;
            let due = due.ok_or_else(|| {
                Problem::bad("bad_due", format!("no time is said for {}: give delay or at", id.0))
            })?;
            due.validate(now)?;
            moved.push((id.0.clone(), due));
            Ok(id.0)
        });
        Ok((RescheduleMany(read.collect()), moved))
    }

    /// The answer, given what became of each job, and its due time if it moved, in their order.
    pub fn answer(
        self,
        outcomes: impl IntoIterator<Item = Result<(RescheduleOutcome, Option<UnixMs>), Problem>>,
    ) -> Response {
        answer(self.0, outcomes, |(outcome, due)| (outcome::rescheduled(outcome), due))
    }
}

fn answer<T>(
    read: Vec<Result<JobId, Problem>>,
    outcomes: impl IntoIterator<Item = Result<T, Problem>>,
    told: impl Fn(T) -> (&'static str, Option<UnixMs>),
) -> Response {
    let mut outcomes = outcomes.into_iter();
    let results = read.into_iter().map(|read| {
        let id = match read {
            Ok(id) => id,
            Err(problem) => return Change::error(None, problem),
        };
        match outcomes.next().unwrap_or_else(|| Err(unanswered())) {
            Ok(outcome) => {
                let (status, due) = told(outcome);
                Change { status, id: Some(id.to_string()), due: due.map(Time), code: None, detail: None }
            }
            Err(problem) => Change::error(Some(&id), problem),
        }
    });
    Response::json(200, &Changes { results: results.collect() })
}

impl Change {
    fn error(id: Option<&JobId>, problem: Problem) -> Change {
        let (code, detail) = (Some(problem.code), Some(problem.detail));
        Change { status: "error", id: id.map(JobId::to_string), due: None, code, detail }
    }
}

fn not_one(error: &serde_json::Error) -> Problem {
    Problem::bad("bad_item", format!("this names no job: {error}"))
}

fn unanswered() -> Problem {
    Problem::unknown("it is not known what became of the job: repeat it to be sure")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::JSON_ITEMS;
    use serde_json::{Value, json};

    const NOW: UnixMs = UnixMs(1_795_255_205_000);

    fn results(response: &Response) -> Value {
        serde_json::from_slice::<Value>(&response.body).unwrap()["results"].clone()
    }

    #[test]
    fn each_id_has_its_outcome_in_its_place() {
        let (cancel, ids) = CancelMany::read(br#"{"ids":["a","b c","d","e"]}"#).unwrap();
        assert_eq!(ids.iter().map(JobId::as_str).collect::<Vec<_>>(), ["a", "d", "e"]);
        let response = cancel.answer([Ok(CancelOutcome::Cancelled), Err(Problem::busy("full"))]);
        let results = results(&response);
        assert_eq!(results[0], json!({ "status": "cancelled", "id": "a" }));
        assert_eq!((&results[1]["status"], &results[1]["code"]), (&json!("error"), &json!("bad_item")));
        assert_eq!(results[2], json!({ "status": "error", "id": "d", "code": "busy", "detail": "full" }));
        assert_eq!((&results[3]["id"], &results[3]["code"]), (&json!("e"), &json!("unknown")));
    }

    #[test]
    fn each_move_has_its_outcome_in_its_place() {
        let body = json!([
            { "id": "a", "delay": "5s" },
            { "id": "b", "at": "2026-11-21T10:00:05Z" },
            { "id": "c" },
            { "id": "d", "delay": "5s", "at": "2026-11-21T10:00:05Z" },
            { "id": "e", "delay": "11000d" },
            { "id": "f", "dealy": "5s" },
            { "id": "g", "delay": "1h" },
        ]);
        let (moves, jobs) = RescheduleMany::read(body.to_string().as_bytes(), NOW).unwrap();
        let [a, b, g] = ["a", "b", "g"].map(|id| id.parse().unwrap());
        let hour = Due::After { ms: 3_600_000 };
        assert_eq!(jobs, [(a, Due::After { ms: 5_000 }), (b, Due::At(NOW)), (g, hour)]);
        let response = moves.answer([
            Ok((RescheduleOutcome::Moved, Some(NOW))),
            Ok((RescheduleOutcome::Leased, None)),
            Ok((RescheduleOutcome::Gone, None)),
        ]);
        let results = results(&response);
        assert_eq!(results[0], json!({ "status": "moved", "id": "a", "due": "2026-11-21T10:00:05.000Z" }));
        assert_eq!(results[1], json!({ "status": "leased", "id": "b" }));
        let codes: Vec<_> = (2..6).map(|n| results[n]["code"].clone()).collect();
        assert_eq!(codes, ["bad_due", "bad_due", "delay_too_long", "bad_item"]);
        assert_eq!(results[6], json!({ "status": "gone", "id": "g" }));
    }

    #[test]
    fn what_names_no_jobs_is_refused() {
        for body in ["", "[]", "{}", r#"{"ids":17}"#, r#"{"ids":[],"all":true}"#] {
            assert_eq!(CancelMany::read(body.as_bytes()).unwrap_err().code, "bad_json", "{body}");
        }
        for body in ["", "{}", "17"] {
            assert_eq!(RescheduleMany::read(body.as_bytes(), NOW).unwrap_err().code, "bad_json", "{body}");
        }
        let many = json!({ "ids": vec!["a"; JSON_ITEMS + 1] }).to_string();
        assert_eq!(CancelMany::read(many.as_bytes()).unwrap_err().code, "too_many_items");
    }
}
