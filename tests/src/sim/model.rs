use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use delayline_core::{
    Ask, BODY_LIMIT, CancelOutcome, Command, Entry, Event, ExtendOutcome, Fence, Grant, Identity, Job, JobId,
    NewJob, PublishOutcome, QueueName, Record, Reply, RescheduleOutcome, Session, SettleOutcome, Settlement,
    UnixMicros, UnixMs,
};

use super::workload::Instance;

/// What every store may do with jobs, written without looking at one: it is told each command as it is carried out,
/// with the reply, and each thing that an engine tells its application.
#[derive(Default)]
pub(super) struct Model {
    jobs: BTreeMap<(QueueName, JobId), ModelJob>,
    batches: BTreeMap<(Identity, char, QueueName, u64), Reply>,
    paused: BTreeSet<QueueName>,
    born: BTreeSet<QueueName>,
    ran: BTreeSet<(QueueName, JobId, Fence)>,
    fences: BTreeMap<QueueName, BTreeSet<Fence>>,
    accepted: BTreeMap<Instance, u32>,
    /// How often each job was asked to be cancelled or moved, and how often it was.
    cancels: BTreeMap<(QueueName, JobId), Times>,
    moves: BTreeMap<(QueueName, JobId), Times>,
    /// Ids of jobs that somebody asked to replace: a publish may find another there.
    contested: BTreeSet<(QueueName, JobId)>,
    pub(super) tally: Tally,
}

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Tally {
    pub accepted: u64,
    pub granted: u64,
    pub acked: u64,
    pub died: u64,
    pub cancelled: u64,
    pub moved: u64,
    pub replaced: u64,
    pub expired: u64,
    pub repeats: u64,
}

#[derive(Default)]
struct Times {
    asked: u32,
    done: u32,
}

struct ModelJob {
    /// Until it is, no fence can be its own.
    granted: bool,
    phase: Phase,
    attempts: u16,
    max: u16,
    expires: Option<UnixMs>,
    /// It may have died unseen, when its last lease ended, and been requeued.
    maybe_requeued: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting(UnixMs),
    Leased(Fence, UnixMs),
    Dead(UnixMs),
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which promise.
    pub oracle: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.oracle, self.what)
    }
}

type Checked = Result<(), Violation>;

macro_rules! ensure {
    ($holds:expr, $oracle:literal, $($what:tt)+) => {
        if !$holds {
            return Err(Violation { oracle: $oracle, what: format!($($what)+) });
        }
    };
}
pub(super) use ensure;

impl Model {
    /// A command was carried out at `now`, with this reply.
    pub(super) fn observe(&mut self, now: UnixMicros, command: &Command, reply: &Reply) -> Checked {
        match (command, reply) {
            (Command::Publish { queue, session, jobs, .. }, Reply::Published { since, outcomes, .. }) => {
                if self.is_repeat((session.engine, 'p', queue, session.sequence), reply)? {
                    return Ok(());
                }
                for (job, outcome) in jobs.iter().zip(outcomes) {
                    let expires = (job.ttl_ms > 0).then(|| now.ceil_ms() + job.ttl_ms);
                    let instance = instance_of(queue, job)?;
                    let due = job.due.counted_from(*since);
                    self.published(now, instance, job.replace, due, expires, *outcome)?;
                }
                Ok(())
            }
            (Command::Reserve { queue, session, .. }, Reply::Granted { jobs, lease_end, .. }) => {
                if self.is_repeat((session.engine, 'r', queue, session.sequence), reply)? {
                    return Ok(());
                }
                jobs.iter().try_for_each(|grant| self.granted(now, queue, grant, *lease_end))
            }
            (Command::Settle { queue, leases, .. }, Reply::Settled { outcomes, .. }) => {
                let mut pairs = leases.iter().zip(outcomes);
                pairs.try_for_each(|(lease, outcome)| self.settled(now, queue, lease, *outcome))
            }
            (Command::Extend { queue, leases, .. }, Reply::Extended { outcomes, lease_end, .. }) => {
                let mut pairs = leases.iter().zip(outcomes);
                pairs.try_for_each(|(lease, outcome)| self.extended(now, queue, lease, *outcome, *lease_end))
            }
            (Command::Cancel { queue, session, ids }, Reply::Cancelled { outcomes, .. }) => {
                if self.is_change_repeat(session, queue, reply)? {
                    return Ok(());
                }
                let mut pairs = ids.iter().zip(outcomes);
                pairs.try_for_each(|(id, outcome)| self.cancelled(now, queue, id, *outcome))
            }
            (Command::Reschedule { queue, session, jobs }, Reply::Rescheduled { outcomes, dues, .. }) => {
                if self.is_change_repeat(session, queue, reply)? {
                    return Ok(());
                }
                for (((id, _), outcome), due) in jobs.iter().zip(outcomes).zip(dues) {
                    self.rescheduled(now, queue, id, *outcome, *due)?;
                }
                Ok(())
            }
            (Command::Requeue { queue, .. }, Reply::DeadMoved { until, moved, .. }) => {
                self.requeued(now, queue, *until, *moved)
            }
            (Command::Pause { queue, paused, .. }, Reply::Configured { .. }) => {
                self.born.insert(queue.clone());
                if *paused {
                    self.paused.insert(queue.clone())
                } else {
                    self.paused.remove(queue)
                };
                Ok(())
            }
            (_, Reply::Broken(why)) => {
                Err(Violation { oracle: "every command is answered", what: why.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Of a queue that never came to be nothing is remembered.
    fn is_change_repeat(
        &mut self,
        session: &Session,
        queue: &QueueName,
        reply: &Reply,
    ) -> Result<bool, Violation> {
        if !self.born.contains(queue) {
            return Ok(false);
        }
        self.is_repeat((session.engine, 'c', queue, session.sequence), reply)
    }

    fn is_repeat(
        &mut self,
        batch: (Identity, char, &QueueName, u64),
        reply: &Reply,
    ) -> Result<bool, Violation> {
        let key = (batch.0, batch.1, batch.2.clone(), batch.3);
        let Some(first) = self.batches.get(&key) else {
            self.batches.insert(key, reply.clone());
            return Ok(false);
        };
        self.tally.repeats += 1;
        let same = match (first, reply) {
            (
                Reply::Published { outcomes: a, since: s, .. },
                Reply::Published { outcomes: b, since: t, .. },
            ) => a == b && s == t,
            (Reply::Granted { jobs: x, .. }, Reply::Granted { jobs: y, .. }) => {
                let before = |grant: &Grant| {
                    x.iter().any(|first| first.id == grant.id && first.state.fence == grant.state.fence)
                };
                y.iter().all(before)
            }
            (Reply::Cancelled { outcomes: a, .. }, Reply::Cancelled { outcomes: b, .. }) => a == b,
            (
                Reply::Rescheduled { outcomes: a, dues: d, .. },
                Reply::Rescheduled { outcomes: b, dues: e, .. },
            ) => a == b && d == e,
            _ => false,
        };
        ensure!(same, "a repeat has the effect of once", "batch {key:?} answered {first:?}, then {reply:?}");
        Ok(true)
    }

    fn published(
        &mut self,
        now: UnixMicros,
        (instance, max): (Instance, u16),
        replaces: bool,
        due: UnixMs,
        expires: Option<UnixMs>,
        outcome: PublishOutcome,
    ) -> Checked {
        let (queue, id) = (&instance.queue, &instance.id);
        let key = (queue.clone(), id.clone());
        let there = self.jobs.get(&key).map(|job| (job.phase, job.may_have_expired(now)));
        match (outcome, there) {
            (PublishOutcome::New, there) => {
                ensure!(
                    there.is_none_or(|(_, may_have_expired)| may_have_expired),
                    "an id is used once at a time",
                    "{id} of {queue} was accepted while it was there"
                );
            }
            (PublishOutcome::Replaced, Some((phase, _))) => {
                let may_wait = match phase {
                    Phase::Waiting(_) => true,
                    Phase::Leased(_, until) => until <= now.floor_ms(),
                    Phase::Dead(_) => false,
                };
                ensure!(
                    replaces && may_wait,
                    "replace is exact",
                    "{id} of {queue} in {phase:?} was replaced, asked for: {replaces}"
                );
                self.tally.replaced += 1;
            }
            (PublishOutcome::Duplicate, Some((phase, _))) => {
                ensure!(
                    !replaces || !matches!(phase, Phase::Waiting(_)),
                    "replace is exact",
                    "{id} of {queue} in {phase:?} was to be replaced and is called a duplicate"
                );
                return Ok(());
            }
            (PublishOutcome::Replaced | PublishOutcome::Duplicate, None) => {
                ensure!(
                    false,
                    "accepted means delivered",
                    "{id} of {queue} answered {outcome:?} but is not there"
                );
            }
            (PublishOutcome::Full, _) => return Ok(()),
        }
        self.tally.accepted += 1;
        *self.accepted.entry(instance.clone()).or_default() += 1;
        self.born.insert(queue.clone());
        self.jobs.insert(key, ModelJob::new(due, max, expires));
        Ok(())
    }

    fn granted(&mut self, now: UnixMicros, queue: &QueueName, grant: &Grant, lease_end: UnixMs) -> Checked {
        let (id, fence, now_ms) = (&grant.id, grant.state.fence, now.floor_ms());
        ensure!(!self.paused.contains(queue), "a paused queue grants nothing", "{id} of {queue}");
        let Some(job) = self.jobs.get_mut(&(queue.clone(), id.clone())) else {
            return Err(Violation {
                oracle: "a settled job never runs again",
                what: format!("{id} of {queue} was granted but is not there"),
            });
        };
        if core::mem::take(&mut job.maybe_requeued) && job.attempts >= job.max {
            job.attempts = 0;
            job.expires = None;
        }
        match job.phase {
            Phase::Waiting(due) => {
                ensure!(due <= now_ms, "never early", "{id} of {queue}, due {due}, granted at {now}");
            }
            Phase::Leased(other, until) => {
                ensure!(
                    until <= now_ms,
                    "one live lease",
                    "{id} of {queue} is held under {other} until {until}, granted at {now}"
                );
            }
            Phase::Dead(_) => ensure!(false, "a dead letter is not delivered", "{id} of {queue}"),
        }
        let expired = job.expires.is_some_and(|expires| expires <= now_ms);
        ensure!(!expired, "an expired job is not delivered", "{id} of {queue} at {now}");
        job.attempts += 1;
        job.granted = true;
        ensure!(
            job.attempts <= job.max,
            "attempts have a maximum",
            "{id} of {queue}: {} of {}",
            job.attempts,
            job.max
        );
        ensure!(grant.state.attempts == job.attempts, "attempts are counted", "{id}: {:?}", grant.state);
        job.phase = Phase::Leased(fence, lease_end);
        self.fences.entry(queue.clone()).or_default().insert(fence);
        self.tally.granted += 1;
        Ok(())
    }

    fn settled(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        (id, fence, settlement): &(JobId, Fence, Settlement),
        outcome: SettleOutcome,
    ) -> Checked {
        let key = (queue.clone(), id.clone());
        let Some(job) = self.jobs.get_mut(&key) else {
            ensure!(
                outcome == SettleOutcome::Gone,
                "sizes are exact",
                "{id} is gone, but its settle answered {outcome:?}"
            );
            return Ok(());
        };
        let holds = matches!(job.phase, Phase::Leased(held, _) if held == *fence);
        match outcome {
            SettleOutcome::Done | SettleOutcome::Died | SettleOutcome::Expired => {
                ensure!(
                    holds,
                    "only the live fence settles",
                    "{id}: {settlement:?} by {fence} in {:?}",
                    job.phase
                );
            }
            SettleOutcome::Stale => {
                let live = matches!(job.phase, Phase::Leased(held, until) if held == *fence && until > now.floor_ms());
                ensure!(!live, "a live lease can be settled", "{id} by {fence}");
                return Ok(());
            }
            SettleOutcome::Gone if !job.granted => return Ok(()),
            SettleOutcome::Gone => {
                ensure!(job.may_have_expired(now), "accepted means delivered", "{id} of {queue} vanished");
                self.jobs.remove(&key);
                return Ok(());
            }
            SettleOutcome::Repeat => return Ok(()),
        }
        let later = |after_ms: u64| if after_ms == 0 { now.floor_ms() } else { now.ceil_ms() + after_ms };
        match (outcome, settlement) {
            (SettleOutcome::Expired, _) => {
                self.tally.expired += 1;
                self.jobs.remove(&key);
            }
            (SettleOutcome::Died, _) => {
                let may = matches!(settlement, Settlement::Bury { .. }) || job.attempts >= job.max;
                ensure!(may, "a job dies only for a reason", "{id}: attempt {} of {}", job.attempts, job.max);
                self.tally.died += 1;
                job.phase = Phase::Dead(now.floor_ms());
            }
            (_, Settlement::Ack) => {
                self.tally.acked += 1;
                self.jobs.remove(&key);
            }
            (_, Settlement::Nack { after_ms, .. }) => job.phase = Phase::Waiting(later(*after_ms)),
            (_, Settlement::Snooze { after_ms }) => {
                job.attempts -= 1;
                job.phase = Phase::Waiting(later(*after_ms));
            }
            (_, Settlement::Release { .. }) => {
                job.attempts -= 1;
                job.phase = Phase::Waiting(UnixMs(0));
            }
            (_, Settlement::Bury { .. }) => ensure!(false, "a buried job is dead", "{id}: {outcome:?}"),
        }
        Ok(())
    }

    fn extended(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        (id, fence): &(JobId, Fence),
        outcome: ExtendOutcome,
        lease_end: UnixMs,
    ) -> Checked {
        let Some(job) = self.jobs.get_mut(&(queue.clone(), id.clone())) else {
            ensure!(
                outcome == ExtendOutcome::Gone,
                "sizes are exact",
                "{id} is gone, but its extend answered {outcome:?}"
            );
            return Ok(());
        };
        match (outcome, job.phase) {
            (ExtendOutcome::Extended, Phase::Leased(held, until)) if held == *fence => {
                job.phase = Phase::Leased(held, until.max(lease_end));
            }
            (ExtendOutcome::Extended, phase) => {
                ensure!(false, "only the live fence extends", "{id} by {fence} in {phase:?}");
            }
            (ExtendOutcome::Stale, Phase::Leased(held, until)) => {
                ensure!(
                    held != *fence || until <= now.floor_ms(),
                    "a live lease can be extended",
                    "{id} by {fence}"
                );
            }
            (ExtendOutcome::Gone, _) => {
                let may = !job.granted || job.may_have_expired(now);
                ensure!(may, "accepted means delivered", "{id} of {queue} vanished");
            }
            (ExtendOutcome::Stale, _) => {}
        }
        Ok(())
    }

    fn cancelled(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        id: &JobId,
        outcome: CancelOutcome,
    ) -> Checked {
        let key = (queue.clone(), id.clone());
        let phase = self.jobs.get(&key).map(|job| (job.phase, job.may_have_expired(now)));
        match (outcome, phase) {
            (CancelOutcome::Cancelled, Some((Phase::Waiting(_), _))) => self.vanished(&key)?,
            (CancelOutcome::Cancelled, Some((Phase::Leased(_, until), _))) if until <= now.floor_ms() => {
                self.vanished(&key)?;
            }
            (CancelOutcome::Gone, None | Some((_, true)))
            | (CancelOutcome::Leased, Some((Phase::Leased(..), _)))
            | (CancelOutcome::Dead, Some((Phase::Dead(_) | Phase::Leased(..), _))) => {}
            (outcome, phase) => {
                ensure!(false, "cancel is exact", "{id} of {queue} in {phase:?} answered {outcome:?}");
            }
        }
        Ok(())
    }

    fn vanished(&mut self, key: &(QueueName, JobId)) -> Checked {
        self.tally.cancelled += 1;
        self.jobs.remove(key);
        let times = self.cancels.entry(key.clone()).or_default();
        times.done("cancel", key)
    }

    fn rescheduled(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        id: &JobId,
        outcome: RescheduleOutcome,
        due: UnixMs,
    ) -> Checked {
        let key = (queue.clone(), id.clone());
        match (outcome, self.jobs.get_mut(&key)) {
            (RescheduleOutcome::Moved, Some(job)) => {
                let waits = match job.phase {
                    Phase::Waiting(_) => true,
                    Phase::Leased(_, until) => until <= now.floor_ms(),
                    Phase::Dead(_) => false,
                };
                ensure!(waits, "reschedule is exact", "{id} of {queue} in {:?} was moved", job.phase);
                job.phase = Phase::Waiting(due);
                self.tally.moved += 1;
                self.moves.entry(key.clone()).or_default().done("reschedule", &key)?;
            }
            (RescheduleOutcome::Moved, None) => {
                ensure!(false, "reschedule is exact", "{id} of {queue} is gone, but was moved");
            }
            (RescheduleOutcome::Gone, Some(job)) => {
                ensure!(job.may_have_expired(now), "accepted means delivered", "{id} of {queue} vanished");
            }
            _ => {}
        }
        Ok(())
    }

    fn requeued(&mut self, now: UnixMicros, queue: &QueueName, until: UnixMs, moved: u64) -> Checked {
        let mut dead = 0;
        for ((of, _), job) in &mut self.jobs {
            let ended = match job.phase {
                Phase::Dead(at) => at <= until,
                Phase::Leased(_, ended) => ended <= until && job.attempts >= job.max,
                Phase::Waiting(_) => false,
            };
            if of == queue && ended {
                dead += 1;
                if matches!(job.phase, Phase::Dead(_)) {
                    job.phase = Phase::Waiting(now.floor_ms());
                    job.attempts = 0;
                    job.expires = None;
                } else {
                    job.maybe_requeued = true;
                }
            }
        }
        ensure!(moved <= dead, "requeue is exact", "{moved} of {dead} dead letters of {queue} were moved");
        Ok(())
    }

    /// Somebody publishes a job.
    pub(super) fn publishes(&mut self, job: &NewJob) {
        if job.replace {
            self.contested.insert((job.queue.clone(), job.id.clone()));
        }
    }

    /// Whether a publish of this id may rightly find it in use.
    pub(super) fn is_contested(&self, instance: &Instance) -> bool {
        self.contested.contains(&(instance.queue.clone(), instance.id.clone()))
    }

    /// Somebody asks for something.
    pub(super) fn asked(&mut self, ask: &Ask) {
        match ask {
            Ask::Cancel { queue, ids } => {
                for id in ids {
                    self.cancels.entry((queue.clone(), id.clone())).or_default().asked += 1;
                }
            }
            Ask::Reschedule { queue, jobs } => {
                for (id, _) in jobs {
                    self.moves.entry((queue.clone(), id.clone())).or_default().asked += 1;
                }
            }
            _ => {}
        }
    }

    /// An engine told its application something.
    pub(super) fn told(&mut self, event: &Event) -> Checked {
        if let Event::Run(job) = event {
            self.runs(job)?;
        }
        Ok(())
    }

    /// A job was handed to somebody.
    pub(super) fn runs(&mut self, job: &Job) -> Checked {
        let lease = &job.lease;
        let known = self.fences.get(&lease.queue).is_some_and(|fences| fences.contains(&lease.fence));
        ensure!(known, "every run has a grant", "{} under {}", lease.id, lease.fence);
        let first = self.ran.insert((lease.queue.clone(), lease.id.clone(), lease.fence));
        ensure!(first, "a grant runs once", "{} under {}", lease.id, lease.fence);
        Ok(())
    }

    /// How often this publish of an id was accepted.
    pub(super) fn times_accepted(&self, instance: &Instance) -> u32 {
        self.accepted.get(instance).copied().unwrap_or(0)
    }

    /// Jobs that should have come to an end and did not.
    pub(super) fn unfinished(&self, now: UnixMicros) -> Vec<String> {
        self.jobs
            .iter()
            .filter(|(_, job)| !matches!(job.phase, Phase::Dead(_)) && !job.may_have_expired(now))
            .filter(|(_, job)| !matches!(job.phase, Phase::Leased(_, until) if until <= now.floor_ms() && job.attempts >= job.max))
            .map(|((queue, id), job)| format!("{id} of {queue}: {:?}, attempt {} of {}", job.phase, job.attempts, job.max))
            .collect()
    }
}

impl Times {
    fn done(&mut self, what: &str, (queue, id): &(QueueName, JobId)) -> Checked {
        self.done += 1;
        ensure!(
            self.done <= self.asked,
            "a request has the effect of once",
            "{id} of {queue}: {what} was asked for {} times and done {} times",
            self.asked,
            self.done
        );
        Ok(())
    }
}

impl ModelJob {
    fn new(due: UnixMs, max: u16, expires: Option<UnixMs>) -> ModelJob {
        let phase = Phase::Waiting(due);
        ModelJob { granted: false, phase, attempts: 0, max, expires, maybe_requeued: false }
    }

    fn may_have_expired(&self, now: UnixMicros) -> bool {
        self.expires.is_some_and(|expires| expires <= now.floor_ms())
    }
}

/// Which publish of its id this is, and the most attempts of the job.
fn instance_of(queue: &QueueName, job: &Entry) -> Result<(Instance, u16), Violation> {
    let record = Record::decode(&job.record, BODY_LIMIT).map_err(|error| Violation {
        oracle: "what was published is sent",
        what: format!("{} of {queue}: {error}", job.id),
    })?;
    let instance =
        Instance { queue: queue.clone(), id: job.id.clone(), published: record.metadata.published };
    Ok((instance, record.attempts.unwrap_or(10)))
}
