use std::any::{Any, type_name};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use delayline_core::{Job as Delivery, JobId, QueueName, SettleOutcome, Span, UnixMs, Verdict};

use super::jobs::lines;
use crate::Queue;
use crate::codec::Coder;
use crate::held::{Entry, Known};

/// One run of a handler in a [`test()`](crate::test()).
#[derive(Clone)]
pub struct Run {
    /// The queue.
    pub queue: QueueName,
    /// The job.
    pub id: JobId,
    /// Which attempt it was, from 1.
    pub attempt: u16,
    /// When it ran, counted from the beginning of the test.
    pub at: Duration,
    /// What came of it.
    pub outcome: Outcome,
    delivery: Arc<Delivery>,
    coders: Vec<Arc<dyn Any + Send + Sync>>,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The job is done.
    Acked,
    /// The attempt failed; the job comes again.
    Retried {
        /// After how long.
        after: Duration,
        /// Why it failed.
        reason: String,
    },
    /// The handler put it off, without spending the attempt.
    Snoozed {
        /// For how long.
        after: Duration,
    },
    /// The job is a dead letter: it was buried, or that was its last attempt.
    Died {
        /// Why.
        reason: String,
    },
    /// It was given back unspent.
    Released,
    /// The job had expired while the handler ran.
    Expired,
    /// The lease was lost before the handler ended, or the handler was stopped.
    Lost,
}

impl Run {
    pub(super) fn of(entry: Entry, start: UnixMs, known: &[Known]) -> Run {
        let (at, outcome) = (Duration::from_millis(entry.at.since(start)), outcome(&entry));
        let Entry { delivery, .. } = entry;
        let (queue, id) = (delivery.lease.queue.clone(), delivery.lease.id.clone());
        let coders = known.iter().filter(|known| known.queue == queue).map(|known| known.coder.clone());
        let (coders, attempt) = (coders.collect(), delivery.attempt);
        Run { queue, id, attempt, at, outcome, delivery: Arc::new(delivery), coders }
    }

    /// The job that was run.
    ///
    /// # Panics
    ///
    /// If its body is not that of a `T`, or nobody named its queue as one of `T`.
    #[track_caller]
    pub fn job<T: 'static>(&self) -> T {
        let coder = self.coders.iter().find_map(|coder| coder.downcast_ref::<Coder<T>>());
        let Some(coder) = coder else {
            panic!("{self}: no client has this queue as one of {}", type_name::<T>())
        };
        match coder.decode(&self.delivery.body, self.delivery.content_type.as_deref()) {
            Ok(job) => job,
            Err(error) => panic!("{self}: the body is not a {}: {error}", type_name::<T>()),
        }
    }

    /// All that its handler knew.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Whether the job is done.
    pub fn is_acked(&self) -> bool {
        self.outcome == Outcome::Acked
    }

    /// Whether the attempt failed and another follows.
    pub fn is_retried(&self) -> bool {
        matches!(self.outcome, Outcome::Retried { .. })
    }

    /// Whether the job is dead.
    pub fn is_dead(&self) -> bool {
        matches!(self.outcome, Outcome::Died { .. })
    }
}

fn outcome(entry: &Entry) -> Outcome {
    let after = Duration::from_millis(entry.next.map_or(0, |next| next.since(entry.at)));
    let reason = match &entry.verdict {
        Some(Verdict::Nack { reason, .. } | Verdict::Bury { reason }) => reason.to_string(),
        _ => String::new(),
    };
    match (entry.outcome, &entry.verdict) {
        (Some(SettleOutcome::Died), _) => Outcome::Died { reason },
        (Some(SettleOutcome::Expired), _) => Outcome::Expired,
        (Some(SettleOutcome::Done | SettleOutcome::Repeat), Some(verdict)) => match verdict {
            Verdict::Ack => Outcome::Acked,
            Verdict::Nack { .. } => Outcome::Retried { after, reason },
            Verdict::Snooze { .. } => Outcome::Snoozed { after },
            Verdict::Release => Outcome::Released,
            Verdict::Bury { .. } => Outcome::Died { reason },
        },
        _ => Outcome::Lost,
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Acked => f.write_str("acked"),
            Outcome::Retried { after, reason } => write!(f, "failed, again after {}: {reason}", span(*after)),
            Outcome::Snoozed { after } => write!(f, "snoozed for {}", span(*after)),
            Outcome::Died { reason } => write!(f, "dead: {reason}"),
            Outcome::Released => f.write_str("given back"),
            Outcome::Expired => f.write_str("expired"),
            Outcome::Lost => f.write_str("its lease was lost"),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { queue, id, attempt, at, outcome, .. } = self;
        write!(f, "at {}, queue {queue}, job {id}, attempt {attempt}: {outcome}", span(*at))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// The runs of handlers, in their order; a slice of [`Run`]s, with what tests ask of them.
#[derive(Clone, Debug)]
#[must_use = "a test should look at what ran"]
pub struct Runs(Vec<Run>);

impl Runs {
    pub(super) fn new(runs: Vec<Run>) -> Runs {
        Runs(runs)
    }

    /// Those of one queue.
    pub fn of<T>(&self, queue: &Queue<T>) -> Runs {
        Runs(self.0.iter().filter(|run| run.queue == *queue.name()).cloned().collect())
    }

    /// The only one.
    ///
    /// # Panics
    ///
    /// If there is none, or there are more.
    #[track_caller]
    pub fn one(&self) -> &Run {
        match &self.0[..] {
            [run] => run,
            runs => panic!("one run was expected, and there were {}:{self}", runs.len()),
        }
    }

    /// That nothing ran.
    ///
    /// # Panics
    ///
    /// If something did.
    #[track_caller]
    pub fn assert_none(&self) {
        assert!(self.is_empty(), "nothing was to run, but this did:{self}");
    }

    /// That so many handlers ran, and all of them finished their jobs.
    ///
    /// # Panics
    ///
    /// If not.
    #[track_caller]
    pub fn assert_acked(&self, count: usize) {
        let is_so = self.len() == count && self.iter().all(Run::is_acked);
        assert!(is_so, "{count} runs were to end well, and there were {}:{self}", self.len());
    }

    /// That these came out, in this order.
    ///
    /// # Panics
    ///
    /// If not.
    #[track_caller]
    pub fn assert_outcomes(&self, outcomes: &[Outcome]) {
        let is_so = self.iter().map(|run| &run.outcome).eq(outcomes);
        let expected = lines(outcomes.iter().map(ToString::to_string));
        assert!(is_so, "these outcomes were expected:{expected}\nand these runs were there:{self}");
    }
}

impl Deref for Runs {
    type Target = [Run];

    fn deref(&self) -> &[Run] {
        &self.0
    }
}

impl IntoIterator for Runs {
    type Item = Run;
    type IntoIter = std::vec::IntoIter<Run>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A line each, every one begun anew.
impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("\n  nothing");
        }
        self.iter().try_for_each(|run| write!(f, "\n  {run}"))
    }
}

pub(super) fn span(length: Duration) -> Span {
    Span(crate::invalid::millis(length))
}
