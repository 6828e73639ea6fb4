use delayline_core::{Answer, Ask, Fault, Inspected, RescheduleOutcome, UnixMs};

use crate::draft::unexpected;
use crate::{Cancel, Inspect, Problem, Reschedule, Response, Show};

/// A call that is one request to an engine.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Question {
    Inspect(Inspect),
    Cancel(Cancel),
    Reschedule(Reschedule),
    Show(Show),
}

impl Question {
    /// What the engine is asked, given the wall clock.
    pub fn ask(&self, now: UnixMs) -> Result<Ask, Problem> {
        match self {
            Question::Inspect(inspect) => Ok(inspect.ask()),
            Question::Cancel(cancel) => Ok(cancel.ask()),
            Question::Reschedule(reschedule) => reschedule.ask(now),
            Question::Show(show) => Ok(show.ask()),
        }
    }

    /// The answer, given the engine's.
    pub fn answer(&self, answer: Result<Answer, Fault>) -> Result<Response, Problem> {
        match (self, answer?) {
            (Question::Inspect(inspect), Answer::Inspected(stored)) => {
                inspect.answer(stored.map(Inspected::from))
            }
            (Question::Cancel(cancel), Answer::Cancelled(outcomes)) => cancel.answer(first(&outcomes)?),
            (Question::Reschedule(reschedule), Answer::Rescheduled(outcomes)) => {
                let (outcome, due) = first(&outcomes)?;
                reschedule.answer(outcome, (outcome == RescheduleOutcome::Moved).then_some(due))
            }
            (Question::Show(show), Answer::Counted(stats)) => show.answer(stats, None),
            _ => Err(unexpected()),
        }
    }
}

/// The job that was found, by the engine's answer.
pub fn inspected(answer: Result<Answer, Fault>) -> Result<Option<Inspected>, Problem> {
    match answer? {
        Answer::Inspected(stored) => Ok(stored.map(Inspected::from)),
        _ => Err(unexpected()),
    }
}

fn first<T: Copy>(outcomes: &[T]) -> Result<T, Problem> {
    outcomes.first().copied().ok_or_else(unexpected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::{CancelOutcome, Due, JobId, QueueName, Stats};

    fn questions() -> [Question; 4] {
        let (queue, id): (QueueName, JobId) = ("q".parse().unwrap(), "a".parse().unwrap());
        [
            Question::Inspect(Inspect { queue: queue.clone(), id: id.clone() }),
            Question::Cancel(Cancel { queue: queue.clone(), id: id.clone() }),
            Question::Reschedule(Reschedule { queue: queue.clone(), id, due: Due::At(UnixMs(0)) }),
            Question::Show(Show { queue, hours: 24 }),
        ]
    }

    #[test]
    fn an_answer_to_something_else_is_told_as_such() {
        let of_its_kind = [
            (Answer::Inspected(None), "no_such_job"),
            (Answer::Cancelled(vec![CancelOutcome::Gone]), "no_such_job"),
            (Answer::Rescheduled(vec![(RescheduleOutcome::Gone, UnixMs(0))]), "no_such_job"),
            (Answer::Counted(Stats::default()), "no_such_queue"),
        ];
        for (question, (answer, code)) in questions().into_iter().zip(of_its_kind) {
            assert!(question.ask(UnixMs(0)).is_ok());
            assert_eq!(question.answer(Ok(answer)).unwrap_err().code, code);
            for other in
                [Answer::Taken(Vec::new()), Answer::Cancelled(Vec::new()), Answer::Rescheduled(Vec::new())]
            {
                assert_eq!(question.answer(Ok(other)).unwrap_err().code, "broken", "{question:?}");
            }
            assert_eq!(question.answer(Err(Fault::Unknown)).unwrap_err().code, "unknown");
        }
        assert!(matches!(inspected(Ok(Answer::Inspected(None))), Ok(None)));
        assert_eq!(inspected(Ok(Answer::Taken(Vec::new()))).unwrap_err().code, "broken");
    }
}
