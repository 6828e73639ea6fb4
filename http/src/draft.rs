use bytes::Bytes;
use delayline_core::{
    Answer, Backoff, Due, Fault, JobId, NewJob, Published, QueueName, Span, TooLarge, Trace, UnixMs,
};

use crate::{Problem, Time};

/// A job as a publisher describes it, over HTTP, in a batch or on the command line.
#[derive(Debug, Default)]
pub struct Draft {
    /// Its name; drawn if there is none.
    pub id: Option<JobId>,
    /// Whether it takes the place of a waiting job of its name.
    pub replace: bool,
    /// When it is due; at once if that is not said.
    pub due: Option<Due>,
    /// The most attempts; the queue's if not said.
    pub attempts: Option<u16>,
    /// The delay before another attempt; the queue's if not said.
    pub backoff: Option<Backoff>,
    /// When it expires, counted from the call.
    pub ttl: Option<Span>,
    /// What the body is.
    pub content_type: Option<String>,
    /// What else its consumer should know.
    pub headers: Vec<(String, String)>,
    /// The trace that its publishing belongs to.
    pub trace: Option<Trace>,
    /// The payload.
    pub body: Bytes,
}

/// What the one who publishes a [`Draft`] adds to it.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The wall clock.
    pub now: UnixMs,
    /// The most bytes of a payload.
    pub max_payload: usize,
    /// How long an answer is awaited.
    pub timeout_ms: u64,
}

/// When a job is to be due, if that is said.
pub(crate) fn due(delay: Option<Span>, at: Option<Time>) -> Result<Option<Due>, Problem> {
    match (delay, at) {
        (Some(_), Some(_)) => Err(Problem::bad("bad_due", "delay and at exclude each other: give one")),
        (delay, at) => Ok(delay.map(Due::from).or(at.map(Due::from))),
    }
}

impl Draft {
    /// The job as an engine takes it; `draw` makes up an id if it has none.
    pub fn into_job(
        self,
        queue: QueueName,
        terms: Terms,
        draw: impl FnOnce() -> JobId,
    ) -> Result<NewJob, Problem> {
        TooLarge::check(&self.body, terms.max_payload)?;
        let job = NewJob {
            generated: self.id.is_none(),
            replace: self.replace,
            due: self.due.unwrap_or(Due::After { ms: 0 }),
            ttl_ms: self.ttl.map(|ttl| ttl.0),
            attempts: self.attempts,
            backoff: self.backoff,
            content_type: self.content_type,
            headers: self.headers,
            trace: self.trace,
            published: terms.now,
            timeout_ms: terms.timeout_ms,
            ..NewJob::new(queue, self.id.unwrap_or_else(draw), self.body)
        };
        job.validate()?;
        Ok(job)
    }
}

/// What became of a job that was published, by what the engine answered.
pub fn published(answer: Result<Answer, Fault>, is_named: bool) -> Result<Published, Problem> {
    let published = answer
        .map_err(Problem::from)
        .and_then(|answer| Published::try_from(answer).map_err(|_| unexpected()));
    published.map_err(|problem| unpublished(problem, is_named))
}

/// Whoever let us draw a job's id cannot repeat the publish: the answer names no time to repeat it at, and says what to do.
pub fn unpublished(problem: Problem, is_named: bool) -> Problem {
    const UNKNOWN: &str = "it is not known whether Redis accepted the job: look for it, or publish it again if it may \
                           run twice; with an id or an Idempotency-Key it could be repeated safely";
    if problem.code == "unknown" && !is_named { Problem::unrepeatable(UNKNOWN) } else { problem }
}

/// An engine answered something else than it was asked.
pub(crate) fn unexpected() -> Problem {
    Fault::Broken("an answer to another question".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Response;
    use delayline_core::Refusal;

    const TERMS: Terms = Terms { now: UnixMs(1_000), max_payload: 4, timeout_ms: 9_000 };

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn job(draft: Draft) -> Result<NewJob, Problem> {
        draft.into_job("q".parse().unwrap(), TERMS, || "drawn".parse().unwrap())
    }

    #[test]
    fn a_draft_becomes_the_job_it_describes() {
        let draft = Draft {
            id: Some("a".parse().unwrap()),
            replace: true,
            due: Some(Due::After { ms: 5_000 }),
            attempts: Some(3),
            backoff: Some(Backoff::None),
            ttl: Some(Span(6_000)),
            content_type: Some("a/b".into()),
            headers: vec![("x".into(), "y".into())],
            trace: TRACE.parse().ok(),
            body: Bytes::from_static(b"1234"),
        };
        let expected = NewJob {
            replace: true,
            due: Due::After { ms: 5_000 },
            ttl_ms: Some(6_000),
            attempts: Some(3),
            backoff: Some(Backoff::None),
            content_type: Some("a/b".into()),
            headers: vec![("x".into(), "y".into())],
            trace: TRACE.parse().ok(),
            published: UnixMs(1_000),
            timeout_ms: 9_000,
            ..NewJob::new("q".parse().unwrap(), "a".parse().unwrap(), Bytes::from_static(b"1234"))
        };
        assert_eq!(job(draft).unwrap(), expected);
        let drawn = job(Draft::default()).unwrap();
        assert_eq!((drawn.id.as_str(), drawn.generated, drawn.due), ("drawn", true, Due::After { ms: 0 }));
    }

    #[test]
    fn a_draft_that_cannot_be_is_refused() {
        for (draft, code) in [
            (Draft { body: Bytes::from_static(b"12345"), ..Draft::default() }, "payload_too_large"),
            (Draft { attempts: Some(0), ..Draft::default() }, "bad_attempts"),
            (Draft { ttl: Some(Span(0)), ..Draft::default() }, "ttl_too_short"),
            (Draft { ttl: Some(Span(u64::MAX)), ..Draft::default() }, "ttl_too_long"),
            (Draft { due: Some(Due::At(UnixMs(u64::MAX))), ..Draft::default() }, "delay_too_long"),
            (Draft { backoff: Some(Backoff::Ladder(Vec::new())), ..Draft::default() }, "bad_backoff"),
            (Draft { replace: true, ..Draft::default() }, "bad_option"),
        ] {
            assert_eq!(job(draft).unwrap_err().code, code);
        }
    }

    #[test]
    fn whoever_gave_no_id_is_told_to_look_and_no_time_to_repeat_it_at() {
        for (fault, is_named, status, code, says) in [
            (Fault::Unknown, true, 503, "unknown", "repeat it with the same id"),
            (Fault::Unknown, false, 504, "unknown", "with an id or an Idempotency-Key"),
            (Fault::NotSent(Some(Refusal::Loading)), false, 503, "not_sent", "still loading"),
        ] {
            let problem = published(Err(fault), is_named).unwrap_err();
            assert_eq!((problem.status, problem.code), (status, code));
            assert!(problem.detail.contains(says), "{}", problem.detail);
            let response = Response::from(problem);
            let has_time = response.headers.iter().any(|(name, _)| *name == "retry-after");
            assert_eq!(has_time, status == 503);
        }
        assert_eq!(published(Ok(Answer::Taken(Vec::new())), true).unwrap_err().code, "broken");
    }
}
