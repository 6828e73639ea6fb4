use std::collections::{BTreeMap, BTreeSet};

use delayline_core::{
    BODY_LIMIT, CancelOutcome, Command, Entry, Fence, Identity, PublishOutcome, QueueConfig, QueueName,
    Reason, Record, Reply, RescheduleOutcome, Session, UnixMicros, UnixMs, VerdictKind,
};

use super::damage::Damage;
use super::{Checked, Instance, Key, Phase, Violation, Witness, ensure, key_of};
use crate::sim::marks::Marks;
use crate::sim::names;

/// A lane writes the name of its queue again in another minute.
const NAMED_MS: u64 = 60_000;

pub(super) const DEFAULT_ATTEMPTS: u16 = 10;

/// What the store must hold, command by command. A failover takes it back to an earlier state.
#[derive(Default)]
pub(in crate::sim) struct Ledger {
    pub(super) jobs: BTreeMap<Key, Job>,
    pub(super) queues: BTreeMap<usize, Queue>,
    pub(super) batches: BTreeMap<(Identity, char, usize, u64), Past>,
    pub(super) accepted: BTreeMap<Instance, u32>,
    pub(super) cancelled: BTreeMap<Key, u32>,
    pub(super) moved: BTreeMap<Key, u32>,
    /// Jobs that somebody wrote over: nobody answers for them.
    pub(super) spoiled: BTreeSet<Key>,
    /// The most that a job of the last batch of grants had waited beyond its time, in milliseconds.
    pub(in crate::sim) late_ms: u64,
    /// How many queues came to be by a publish.
    pub(in crate::sim) births: u64,
    /// The latest that Redis's clock ever showed: what ends by then may have ended.
    pub(super) latest: UnixMs,
    /// The same, when somebody last took names away from an index.
    pub(super) names_lost: UnixMs,
}

#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // none of them follows from another
pub(super) struct Queue {
    pub(super) born: bool,
    pub(super) paused: bool,
    /// Whether it ever was.
    pub(super) was_paused: bool,
    pub(super) config: QueueConfig,
    pub(super) counts: Counts,
    /// Whether its name was written to the index of its shard since somebody took it away.
    pub(super) named: bool,
    pub(super) damage: Damage,
}

/// What is counted where the outcome is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub(in crate::sim) struct Counts {
    pub(in crate::sim) published: u64,
    pub(in crate::sim) granted: u64,
    pub(in crate::sim) acked: u64,
    pub(in crate::sim) nacked: u64,
    pub(in crate::sim) snoozed: u64,
    pub(in crate::sim) released: u64,
    pub(in crate::sim) cancelled: u64,
    pub(in crate::sim) requeued: u64,
    pub(in crate::sim) forwarded: u64,
}

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // each says what nobody can know
pub(super) struct Job {
    pub(super) phase: Phase,
    /// When it came into its phase.
    pub(super) since: UnixMs,
    /// Until it is, no fence can be its own.
    pub(super) deliveries: u16,
    pub(super) attempts: u16,
    pub(super) wanted_attempts: Option<u16>,
    pub(super) max: u16,
    pub(super) expires: Option<UnixMs>,
    pub(super) lost_delay_ms: u64,
    /// Too large to be stored as it is, so that no list may get it.
    large: bool,
    pub(super) reason: Option<Reason>,
    /// The last verdict that was carried out, and the fence of its lease.
    pub(super) verdict: Option<(Fence, VerdictKind)>,
    /// It may have died unseen, when its last lease ended or its TTL did, and been requeued.
    pub(super) maybe_requeued: bool,
    /// It may have lost its TTL so.
    pub(super) maybe_endless: bool,
    /// It may have died unseen, and been purged.
    pub(super) maybe_purged: bool,
}

/// What a batch was answered the first time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Past {
    Published(Vec<PublishOutcome>, UnixMicros),
    Granted(Vec<(Key, Fence)>),
    Cancelled(Vec<CancelOutcome>),
    Rescheduled(Vec<RescheduleOutcome>, Vec<UnixMs>),
}

impl Ledger {
    /// A command was carried out at `now`, with this reply.
    pub(in crate::sim) fn observe(
        &mut self,
        now: UnixMicros,
        command: &Command,
        reply: &Reply,
        witness: &mut Witness,
        marks: &mut Marks,
    ) -> Checked {
        self.latest = self.latest.max(now.floor_ms());
        self.late_ms = 0;
        if let Reply::Superseded { .. } = reply {
            marks.reach("a batch is superseded");
        }
        match (command, reply) {
            (
                Command::Publish { queue, session, jobs, .. },
                Reply::Published { since, outcomes, full, .. },
            ) => {
                ensure!(jobs.len() == outcomes.len(), "every job is answered", "{outcomes:?}");
                let past = Past::Published(outcomes.clone(), *since);
                if self.is_repeat((session, 'p', queue), past, marks)? {
                    return Ok(());
                }
                if full.is_some() {
                    marks.reach("a queue is full");
                }
                let mut pairs = jobs.iter().zip(outcomes);
                pairs.try_for_each(|(job, outcome)| self.published(now, queue, job, *outcome, marks))
            }
            (
                Command::Reserve { queue, session, count, lease_ms, max_bytes, .. },
                Reply::Granted { jobs, lease_end, fence, open, .. },
            ) => {
                let granted: Checked<Vec<_>> =
                    jobs.iter().map(|grant| Ok((key_of(queue, &grant.id)?, grant.state.fence))).collect();
                if self.is_repeat((session, 'r', queue), Past::Granted(granted?), marks)? {
                    return Ok(());
                }
                if !open {
                    marks.reach("a paused queue is asked");
                }
                ensure!(
                    jobs.len() <= usize::from(*count),
                    "a reserve is bounded",
                    "{} of {count}",
                    jobs.len()
                );
                let bytes: usize = jobs.iter().map(|grant| grant.record.len()).sum();
                let fits = jobs.len() <= 1 || bytes as u64 <= *max_bytes;
                ensure!(
                    fits,
                    "a reserve is bounded",
                    "{} jobs of {bytes} bytes, {max_bytes} asked",
                    jobs.len()
                );
                let end = now.ceil_ms() + *lease_ms;
                ensure!(*lease_end == end, "a lease lasts as long as asked", "until {lease_end}, not {end}");
                if !jobs.is_empty() {
                    witness.fence(queue, *fence)?;
                }
                jobs.iter().try_for_each(|grant| self.granted(now, queue, grant, *lease_end, witness, marks))
            }
            (Command::Settle { queue, leases, .. }, Reply::Settled { outcomes, .. }) => {
                ensure!(leases.len() == outcomes.len(), "every lease is answered", "{outcomes:?}");
                let mut pairs = leases.iter().zip(outcomes);
                pairs.try_for_each(|(lease, outcome)| self.settled(now, queue, lease, *outcome, marks))
            }
            (Command::Extend { queue, leases, .. }, Reply::Extended { outcomes, lease_end, .. }) => {
                ensure!(leases.len() == outcomes.len(), "every lease is answered", "{outcomes:?}");
                let mut pairs = leases.iter().zip(outcomes);
                pairs.try_for_each(|(lease, outcome)| {
                    self.extended(queue, lease, *outcome, *lease_end, witness, marks)
                })
            }
            (Command::Cancel { queue, session, ids }, Reply::Cancelled { outcomes, .. }) => {
                let past = Past::Cancelled(outcomes.clone());
                if self.is_change_repeat(session, queue, past, marks)? {
                    return Ok(());
                }
                let mut pairs = ids.iter().zip(outcomes);
                pairs.try_for_each(|(id, outcome)| self.cancelled(queue, id, *outcome, witness, marks))
            }
            (Command::Reschedule { queue, session, jobs }, Reply::Rescheduled { outcomes, dues, .. }) => {
                let past = Past::Rescheduled(outcomes.clone(), dues.clone());
                if self.is_change_repeat(session, queue, past, marks)? {
                    return Ok(());
                }
                for (((id, _), outcome), due) in jobs.iter().zip(outcomes).zip(dues) {
                    self.rescheduled(queue, id, *outcome, *due, witness, marks)?;
                }
                Ok(())
            }
            (Command::Requeue { queue, .. }, Reply::DeadMoved { until, moved, .. }) => {
                self.requeued(now, queue, *until, *moved, marks)
            }
            (Command::Purge { queue, .. }, Reply::DeadMoved { until, moved, .. }) => {
                self.purged(queue, *until, *moved, marks)
            }
            (Command::Tend { queue, limit, .. }, Reply::Tended { ended, expired, purged, forwarded, .. }) => {
                let limit = u64::from(*limit);
                let most = ended.max(expired).max(purged).max(forwarded);
                ensure!(*most <= limit, "a tend is bounded", "{reply:?}");
                for (count, path) in [(expired, "waiting jobs expire"), (forwarded, "jobs are forwarded")] {
                    if *count > 0 {
                        marks.reach(path);
                    }
                }
                let queue = self.queue_mut(queue);
                queue.counts.forwarded += forwarded;
                queue.named |= queue.born;
                Ok(())
            }
            (Command::Pause { queue, paused, .. }, Reply::Configured { .. }) => {
                let queue = self.queue_mut(queue);
                (queue.born, queue.paused) = (true, *paused);
                queue.was_paused |= paused;
                Ok(())
            }
            (Command::Configure { queue, config, .. }, Reply::Configured { .. }) => {
                let queue = self.queue_mut(queue);
                queue.born = true;
                queue.config = config.clone();
                Ok(())
            }
            (_, Reply::Broken(why)) => {
                Err(Violation { oracle: "every command is answered", what: why.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The first job of the queue that must be there, of this number or one above it.
    pub(in crate::sim) fn job_from(&self, queue: usize, job: u32) -> Option<u32> {
        self.certain(queue).find(|there| *there >= job)
    }

    /// The first job of the queue that must be held, of this number or one above it, or of any.
    pub(in crate::sim) fn held_from(&self, queue: usize, job: u32) -> Option<u32> {
        let held = |of: &u32| {
            let phase = self.jobs.get(&(queue, *of)).map(|job| job.phase);
            matches!(phase, Some(Phase::Leased { until, .. }) if until > self.latest)
        };
        let all: Vec<u32> = self.certain(queue).filter(held).collect();
        all.iter().find(|of| **of >= job).or(all.first()).copied()
    }

    /// How often this publish was accepted.
    pub(in crate::sim) fn times_accepted(&self, instance: &Instance) -> u32 {
        self.accepted.get(instance).copied().unwrap_or(0)
    }

    /// The publishes that were accepted.
    pub(in crate::sim) fn accepted(&self) -> impl Iterator<Item = Instance> {
        self.accepted.keys().copied()
    }

    /// What is counted of a queue.
    pub(in crate::sim) fn counts(&self, queue: usize) -> Counts {
        self.queues.get(&queue).map_or(Counts::default(), |queue| queue.counts)
    }

    pub(in crate::sim) fn is_paused(&self, queue: usize) -> bool {
        self.queues.get(&queue).is_some_and(|queue| queue.paused)
    }

    pub(in crate::sim) fn knows(&self, key: Key) -> bool {
        self.jobs.contains_key(&key)
    }

    /// Whether the job is held under this fence.
    pub(in crate::sim) fn is_held(&self, key: Key, fence: Fence) -> bool {
        let held = |job: &Job| matches!(job.phase, Phase::Leased { fence: held, .. } if held == fence);
        self.jobs.get(&key).is_some_and(held)
    }

    pub(in crate::sim) fn was_paused(&self, queue: &QueueName) -> bool {
        let queue = names::index(queue).and_then(|queue| self.queues.get(&queue));
        queue.is_some_and(|queue| queue.was_paused)
    }

    /// The jobs of a queue that must be there.
    pub(in crate::sim) fn certain(&self, queue: usize) -> impl Iterator<Item = u32> {
        let jobs = self.jobs.range((queue, 0)..=(queue, u32::MAX));
        jobs.filter(|(key, job)| !self.may_be_gone(**key, job)).map(|(key, _)| key.1)
    }

    /// The jobs of a queue that have left it for where it forwards to, when it is empty.
    pub(in crate::sim) fn forwarded(&self, queue: usize) -> impl Iterator<Item = u32> {
        let jobs = self.jobs.range((queue, 0)..=(queue, u32::MAX));
        let dead = |job: &Job| matches!(job.phase, Phase::Dead { .. }) || job.may_have_died(self.latest);
        let large = |job: &Job| job.large;
        jobs.filter(move |(_, job)| !dead(job) && !large(job) && !job.has_expired(self.latest))
            .map(|(key, _)| key.1)
    }

    /// Jobs that should have come to an end and did not, each with the time at which it can.
    pub(in crate::sim) fn unfinished(&self) -> Vec<(String, UnixMs)> {
        let open = self.jobs.iter().filter_map(|(key, job)| {
            let at = match job.phase {
                Phase::Dead { .. } => return None,
                _ if self.may_be_gone(*key, job) || job.may_have_died(self.latest) => return None,
                Phase::Waiting { due } => due,
                Phase::Leased { until, .. } => until,
            };
            let (queue, id) = (names::queue(key.0), names::job(key.1));
            Some((format!("{id} of {queue}: {:?}, attempt {} of {}", job.phase, job.attempts, job.max), at))
        });
        open.collect()
    }

    pub(super) fn queue_mut(&mut self, queue: &QueueName) -> &mut Queue {
        self.queues.entry(names::index(queue).unwrap_or(usize::MAX)).or_default()
    }

    /// Of a queue that never came to be nothing is remembered.
    fn is_change_repeat(
        &mut self,
        session: &Session,
        queue: &QueueName,
        past: Past,
        marks: &mut Marks,
    ) -> Checked<bool> {
        if !self.queue_mut(queue).born {
            return Ok(false);
        }
        self.is_repeat((session, 'c', queue), past, marks)
    }

    fn is_repeat(
        &mut self,
        (session, verb, queue): (&Session, char, &QueueName),
        past: Past,
        marks: &mut Marks,
    ) -> Checked<bool> {
        let key = (session.engine, verb, names::index(queue).unwrap_or(usize::MAX), session.sequence);
        let Some(first) = self.batches.get(&key) else {
            self.batches.insert(key, past);
            return Ok(false);
        };
        marks.reach("a repeat is answered by its session");
        let same = match (first, &past) {
            (Past::Granted(first), Past::Granted(again)) => again.iter().all(|grant| first.contains(grant)),
            (first, again) => first == again,
        };
        ensure!(same, "a repeat has the effect of once", "batch {key:?} answered {first:?}, then {past:?}");
        Ok(true)
    }

    fn published(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        entry: &Entry,
        outcome: PublishOutcome,
        marks: &mut Marks,
    ) -> Checked {
        let (instance, record) = read(queue, entry)?;
        if self.is_spoiled(instance.key) {
            if matches!(outcome, PublishOutcome::New | PublishOutcome::Replaced) {
                *self.accepted.entry(instance).or_default() += 1;
                self.queue_mut(queue).born = true;
            }
            return Ok(());
        }
        let there = self.jobs.get(&instance.key).map(|job| (job.phase, self.may_be_gone(instance.key, job)));
        match (outcome, there) {
            (PublishOutcome::New, there) => {
                ensure!(
                    there.is_none_or(|(_, may_be_gone)| may_be_gone),
                    "an id is used once at a time",
                    "{instance} was accepted while it was there"
                );
            }
            (PublishOutcome::Replaced, Some((phase, _))) => {
                ensure!(
                    entry.replace && self.may_wait(phase),
                    "replace is exact",
                    "{instance} in {phase:?} was replaced, asked for: {}",
                    entry.replace
                );
                marks.reach("a waiting job is replaced");
                self.queue_mut(queue).counts.cancelled += 1;
            }
            (PublishOutcome::Duplicate, Some((phase, may_be_gone))) => {
                let waits = matches!(phase, Phase::Waiting { .. }) && !may_be_gone;
                ensure!(
                    !entry.replace || !waits,
                    "replace is exact",
                    "{instance} in {phase:?} was to be replaced and is called a duplicate"
                );
                if entry.replace {
                    marks.reach("a replacement finds a held job");
                }
                return Ok(());
            }
            (PublishOutcome::Replaced | PublishOutcome::Duplicate, None) => {
                ensure!(false, "sizes are exact", "{instance} answered {outcome:?} but is not there");
            }
            (PublishOutcome::Full, _) => return Ok(()),
        }
        *self.accepted.entry(instance).or_default() += 1;
        let is_named_again = now.floor_ms() >= self.names_lost + NAMED_MS;
        let queue = self.queue_mut(queue);
        let newborn = !std::mem::replace(&mut queue.born, true);
        queue.counts.published += 1;
        queue.named |= newborn || is_named_again;
        self.births += u64::from(newborn);
        let job = Job {
            phase: Phase::Waiting { due: entry.due.counted_from(now) },
            since: now.floor_ms(),
            deliveries: 0,
            attempts: 0,
            wanted_attempts: record.attempts,
            max: 0,
            expires: (entry.ttl_ms > 0).then(|| now.ceil_ms() + entry.ttl_ms),
            lost_delay_ms: record.lost_delay_ms.unwrap_or(0),
            large: record.body.len() > 1_000,
            reason: None,
            verdict: None,
            maybe_requeued: false,
            maybe_endless: false,
            maybe_purged: false,
        };
        self.jobs.insert(instance.key, job);
        Ok(())
    }

    /// Whether a job in this phase may wait, its lease having ended.
    pub(super) fn may_wait(&self, phase: Phase) -> bool {
        match phase {
            Phase::Waiting { .. } => true,
            Phase::Leased { until, .. } => until <= self.latest,
            Phase::Dead { .. } => false,
        }
    }

    /// Whether the job may have gone without a word: at the end of its TTL, of its retention, or to where the queue
    /// forwards.
    pub(super) fn may_be_gone(&self, (queue, _): Key, job: &Job) -> bool {
        let config = self.queues.get(&queue).map(|queue| &queue.config);
        let retained = config.is_some_and(|config| config.retention_ms.is_some());
        let may_be_dead = match job.phase {
            Phase::Waiting { .. } => false,
            Phase::Leased { until, .. } => until <= self.latest && job.attempts >= job.max,
            Phase::Dead { .. } => true,
        };
        let forwards = config.is_some_and(|config| config.forward.is_some());
        let may_be_due = match job.phase {
            Phase::Waiting { due } => due <= self.latest,
            Phase::Leased { until, .. } => until <= self.latest,
            Phase::Dead { .. } => false,
        };
        job.maybe_purged
            || job.has_expired(self.latest)
            || (retained && may_be_dead)
            || (forwards && may_be_due)
    }
}

impl Job {
    /// Its last lease may have ended, and it with it.
    pub(super) fn may_have_died(&self, latest: UnixMs) -> bool {
        matches!(self.phase, Phase::Leased { until, .. } if until <= latest && self.attempts >= self.max)
    }

    /// It may have become a dead letter without a word.
    pub(super) fn may_be_dead(&self, latest: UnixMs, forwards: bool) -> bool {
        let unfit = forwards && self.large && !matches!(self.phase, Phase::Waiting { due } if due > latest);
        self.has_expired(latest) || self.may_have_died(latest) || unfit
    }

    pub(super) fn has_expired(&self, latest: UnixMs) -> bool {
        self.expires.is_some_and(|expires| expires <= latest)
    }
}

/// Which publish of its id this is, and what it says.
fn read(queue: &QueueName, entry: &Entry) -> Checked<(Instance, Record)> {
    let record = Record::decode(&entry.record, BODY_LIMIT).map_err(|error| Violation {
        oracle: "what was published is sent",
        what: format!("{} of {queue}: {error}", entry.id),
    })?;
    let instance = Instance { key: key_of(queue, &entry.id)?, version: record.metadata.published.0 };
    Ok((instance, record))
}
