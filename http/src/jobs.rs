use delayline_core::{Ask, CancelOutcome, Due, Inspected, JobId, QueueName, RescheduleOutcome, Span, UnixMs};
use serde::{Deserialize, Serialize};

use crate::draft::due;
use crate::{Kept, Object, Options, Problem, Response, Time, Written};

/// `GET queues/{queue}/jobs/{id}`: shows a job.
#[derive(Debug)]
pub struct Inspect {
    /// Where it is.
    pub queue: QueueName,
    /// Which.
    pub id: JobId,
}

/// `DELETE queues/{queue}/jobs/{id}`: takes a waiting job away.
#[derive(Debug)]
pub struct Cancel {
    /// Where it is.
    pub queue: QueueName,
    /// Which.
    pub id: JobId,
}

/// `PATCH queues/{queue}/jobs/{id}`: gives a waiting job another due time.
#[derive(Debug)]
pub struct Reschedule {
    /// Where it is.
    pub queue: QueueName,
    /// Which.
    pub id: JobId,
    /// When it is to be due.
    pub due: Due,
}

/// A job that was taken away.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Cancelled<'a> {
    /// The id of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Id))]
    id: &'a str,
    /// Always `cancelled`.
    status: &'a str,
}

/// A job that has another due time.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Rescheduled<'a> {
    /// The id of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::text::Id))]
    id: &'a str,
    /// When the job is due now.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<crate::openapi::text::Moment>))]
    due: Option<Time>,
}

/// When a job is to be due: one of both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    delay: Option<Written<Span>>,
    at: Option<Written<Time>>,
}

impl Inspect {
    /// Reads it: it has no options.
    pub fn read(queue: QueueName, id: JobId, options: Options) -> Result<Inspect, Problem> {
        options.finish()?;
        Ok(Inspect { queue, id })
    }

    /// What the queue is asked.
    pub fn ask(&self) -> Ask {
        Ask::Inspect { queue: self.queue.clone(), id: self.id.clone() }
    }

    /// The answer, given the job that was found.
    pub fn answer(&self, found: Option<Inspected>) -> Result<Response, Problem> {
        let job = found.ok_or_else(|| no_such_job(&self.queue, &self.id))?;
        Ok(Response::json(200, &Kept::new(&self.queue, job)))
    }
}

impl Cancel {
    /// Reads it: it has no options.
    pub fn read(queue: QueueName, id: JobId, options: Options) -> Result<Cancel, Problem> {
        options.finish()?;
        Ok(Cancel { queue, id })
    }

    /// What the queue is asked.
    pub fn ask(&self) -> Ask {
        Ask::Cancel { queue: self.queue.clone(), ids: vec![self.id.clone()] }
    }

    /// The answer, given what became of the job.
    pub fn answer(&self, outcome: CancelOutcome) -> Result<Response, Problem> {
        let id = &self.id;
        match outcome {
            CancelOutcome::Cancelled => {
                Ok(Response::json(200, &Cancelled { id: id.as_str(), status: "cancelled" }))
            }
            CancelOutcome::Leased => Err(leased(id, "cancelled")),
            CancelOutcome::Dead => {
                let detail = format!("job {id} is a dead letter and cannot be cancelled: purge it");
                Err(Problem::conflict("dead", detail))
            }
            CancelOutcome::Gone => Err(no_such_job(&self.queue, id)),
        }
    }
}

impl Reschedule {
    /// Reads the body; the options are to be none.
    pub fn read(queue: QueueName, id: JobId, body: &[u8]) -> Result<Reschedule, Problem> {
        const WANTED: &str = "write {\"delay\": \"5s\"} or {\"at\": \"2026-11-21T10:00:05Z\"}";
        let Wanted { delay, at } = Object::read(body).map_err(|error| {
            Problem::bad("bad_json", format!("the body cannot be read: {error}: {WANTED}"))
        })?;
        match due(delay.map(|delay| delay.0), at.map(|at| at.0))? {
            Some(due) => Ok(Reschedule { queue, id, due }),
            None => Err(Problem::bad("bad_due", format!("the body says no time: {WANTED}"))),
        }
    }

    /// What the queue is asked, given the wall clock.
    pub fn ask(&self, now: UnixMs) -> Result<Ask, Problem> {
        self.due.validate(now)?;
        Ok(Ask::Reschedule { queue: self.queue.clone(), jobs: vec![(self.id.clone(), self.due)] })
    }

    /// The answer, given what became of the job, and its due time if it moved.
    pub fn answer(&self, outcome: RescheduleOutcome, due: Option<UnixMs>) -> Result<Response, Problem> {
        let id = &self.id;
        match outcome {
            RescheduleOutcome::Moved => {
                Ok(Response::json(200, &Rescheduled { id: id.as_str(), due: due.map(Time) }))
            }
            RescheduleOutcome::Leased => Err(leased(id, "rescheduled")),
            RescheduleOutcome::Dead => {
                let detail = format!("job {id} is a dead letter and cannot be rescheduled: requeue it");
                Err(Problem::conflict("dead", detail))
            }
            RescheduleOutcome::Expires => {
                let detail = format!("job {id} would expire before that: choose an earlier time");
                Err(Problem::conflict("expires", detail))
            }
            RescheduleOutcome::Gone => Err(no_such_job(&self.queue, id)),
        }
    }
}

pub(crate) fn leased(id: &JobId, what: &str) -> Problem {
    let detail = format!("a consumer holds job {id}, so it cannot be {what}: wait until its lease ends");
    Problem::conflict("leased", detail)
}

pub(crate) fn no_such_job(queue: &QueueName, id: &JobId) -> Problem {
    let detail = format!("queue {queue} has no job {id}: it may have been acked, cancelled or expired");
    Problem::not_found("no_such_job", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answer: Result<Response, Problem>) -> (u16, String) {
        let response = answer.unwrap_or_else(Response::from);
        (response.status, String::from_utf8(response.body.to_vec()).unwrap())
    }

    #[test]
    fn each_end_of_a_cancel_has_its_answer() {
        let cancel = Cancel { queue: "q".parse().unwrap(), id: "a".parse().unwrap() };
        for (outcome, status, says) in [
            (CancelOutcome::Cancelled, 200, r#"{"id":"a","status":"cancelled"}"#),
            (
                CancelOutcome::Leased,
                409,
                r#""code":"leased","detail":"a consumer holds job a, so it cannot be cancelled"#,
            ),
            (
                CancelOutcome::Dead,
                409,
                r#""code":"dead","detail":"job a is a dead letter and cannot be cancelled: purge it"#,
            ),
            (CancelOutcome::Gone, 404, r#""code":"no_such_job","detail":"queue q has no job a"#),
        ] {
            let (found, body) = told(cancel.answer(outcome));
            assert!(found == status && body.contains(says), "{outcome:?}: {found} {body}");
        }
    }

    #[test]
    fn each_end_of_a_reschedule_has_its_answer() {
        let body = br#"{"at":"2026-11-21T10:00:05Z"}"#;
        let reschedule = Reschedule::read("q".parse().unwrap(), "a".parse().unwrap(), body).unwrap();
        let due = UnixMs(1_795_255_205_000);
        assert_eq!(reschedule.due, Due::At(due));
        for (outcome, status, says) in [
            (RescheduleOutcome::Moved, 200, r#"{"id":"a","due":"2026-11-21T10:00:05.000Z"}"#),
            (
                RescheduleOutcome::Leased,
                409,
                r#""code":"leased","detail":"a consumer holds job a, so it cannot be rescheduled"#,
            ),
            (
                RescheduleOutcome::Dead,
                409,
                r#""code":"dead","detail":"job a is a dead letter and cannot be rescheduled"#,
            ),
            (RescheduleOutcome::Expires, 409, r#""code":"expires","detail":"job a would expire before that"#),
            (RescheduleOutcome::Gone, 404, r#""code":"no_such_job","detail":"queue q has no job a"#),
        ] {
            let (found, body) = told(reschedule.answer(outcome, Some(due)));
            assert!(found == status && body.contains(says), "{outcome:?}: {found} {body}");
        }
        assert!(reschedule.ask(due).is_ok());
        assert_eq!(reschedule.ask(UnixMs(0)).unwrap_err().code, "delay_too_long");
    }
}
