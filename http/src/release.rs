use delayline_core::{Ask, Inspected, JobId, Lease, Place, QueueName, SettleOutcome};
use serde::Serialize;

use crate::jobs::no_such_job;
use crate::{Options, Problem, Response, outcome};

/// `POST queues/{queue}/jobs/{id}/release?force=true`: takes a job from the consumer that holds it, as if it had given it
/// back: the attempt is not spent, and the job is due when it was.
#[derive(Debug)]
pub struct ForceRelease {
    /// Where it is.
    pub queue: QueueName,
    /// Which.
    pub id: JobId,
}

/// A job that was taken from its consumer.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Released<'a> {
    id: &'a str,
    status: &'a str,
}

impl ForceRelease {
    /// Reads its option, which must be there: a consumer may still be at work.
    pub fn read(queue: QueueName, id: JobId, mut options: Options) -> Result<ForceRelease, Problem> {
        let force: bool = options.read("force")?.unwrap_or_default();
        options.finish()?;
        if force {
            return Ok(ForceRelease { queue, id });
        }
        let detail = "this takes the job from a consumer that may still be at work, so that it runs twice: add force=true";
        Err(Problem::bad("not_forced", detail))
    }

    /// What the queue is asked.
    pub fn ask(&self) -> Ask {
        Ask::Inspect { queue: self.queue.clone(), id: self.id.clone() }
    }

    /// The lease that the consumer has, given the job that was found.
    pub fn lease(&self, found: Option<&Inspected>) -> Result<Lease, Problem> {
        let (id, found) = (&self.id, found.ok_or_else(|| no_such_job(&self.queue, &self.id))?);
        match (found.place, &found.state) {
            (Place::Leased, Some(state)) => {
                let (queue, id) = (self.queue.clone(), id.clone());
                Ok(Lease { queue, id, fence: state.fence, retry_ms: 0 })
            }
            (Place::Leased, None) => {
                let detail = format!(
                    "the state of job {id} cannot be read, so its lease is not known: delayline doctor --repair mends that"
                );
                Err(Problem::conflict("unreadable", detail))
            }
            (Place::Ready | Place::Delayed, _) => {
                let detail = format!("job {id} waits, and no consumer holds it: there is nothing to release");
                Err(Problem::conflict("waiting", detail))
            }
            (Place::Dead, _) => {
                let detail = format!("job {id} is a dead letter, and no consumer holds it: requeue it");
                Err(Problem::conflict("dead", detail))
            }
        }
    }

    /// What became of the job, or why it is not released: its consumer may have been faster.
    pub fn status(&self, settled: SettleOutcome) -> Result<&'static str, Problem> {
        let id = &self.id;
        match settled {
            SettleOutcome::Done | SettleOutcome::Repeat => Ok("released"),
            SettleOutcome::Expired => Ok("expired"),
            SettleOutcome::Gone => Err(no_such_job(&self.queue, id)),
            SettleOutcome::Stale => {
                let detail = format!(
                    "the lease of job {id} ended before it could be released, and another consumer may hold it: look at it, \
                     and release it again if need be"
                );
                Err(Problem::conflict("stale", detail))
            }
            SettleOutcome::Died | SettleOutcome::Conflict(_) => {
                outcome::settled(settled).map_err(|Problem { detail, .. }| {
                    Problem::conflict("settled", format!("the consumer of job {id} was faster: {detail}"))
                })
            }
        }
    }

    /// The answer, given what became of the lease.
    pub fn answer(&self, settled: SettleOutcome) -> Result<Response, Problem> {
        let status = self.status(settled)?;
        Ok(Response::json(200, &Released { id: self.id.as_str(), status }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::{State, Stored, UnixMs, VerdictKind};

    const LEASED: &[u8] = b"L0000000000000017000100100001001760000000000000";

    fn release() -> ForceRelease {
        ForceRelease { queue: "q".parse().unwrap(), id: "a".parse().unwrap() }
    }

    fn found(place: Place, state: Option<State>) -> Inspected {
        let (id, record) = ("a".parse().unwrap(), bytes::Bytes::new());
        Stored { id, place, at: UnixMs(1), state, expires: None, record }.into()
    }

    #[test]
    fn only_a_job_that_is_held_has_a_lease() {
        let held = found(Place::Leased, State::parse(LEASED));
        let lease = release().lease(Some(&held)).unwrap();
        assert_eq!((lease.id.as_str(), lease.fence.0), ("a", 17));
        for (found, status, code) in [
            (Some(found(Place::Leased, None)), 409, "unreadable"),
            (Some(found(Place::Ready, None)), 409, "waiting"),
            (Some(found(Place::Delayed, None)), 409, "waiting"),
            (Some(found(Place::Dead, None)), 409, "dead"),
            (None, 404, "no_such_job"),
        ] {
            let problem = release().lease(found.as_ref()).unwrap_err();
            assert_eq!((problem.status, problem.code), (status, code));
        }
    }

    #[test]
    fn who_was_faster_is_told() {
        use SettleOutcome::{Conflict, Done, Expired, Gone, Repeat, Stale};
        for (outcome, status) in [(Done, "released"), (Repeat, "released"), (Expired, "expired")] {
            assert_eq!(release().status(outcome).unwrap(), status);
        }
        for (outcome, status, code) in
            [(Stale, 409, "stale"), (Gone, 404, "no_such_job"), (Conflict(VerdictKind::Nack), 409, "settled")]
        {
            let problem = release().answer(outcome).unwrap_err();
            assert_eq!((problem.status, problem.code), (status, code));
        }
    }

    #[test]
    fn it_must_be_forced() {
        let read = |query: &str| {
            let options = Options::new(query, &std::iter::empty::<(&str, &[u8])>().collect()).unwrap();
            ForceRelease::read("q".parse().unwrap(), "a".parse().unwrap(), options)
        };
        assert!(read("force=true").is_ok());
        for query in ["", "force=false"] {
            assert_eq!(read(query).unwrap_err().code, "not_forced", "{query}");
        }
    }
}
