//! What is done to jobs that wait, and to the dead.

use delayline_core::{CancelOutcome, JobId, QueueName, RescheduleOutcome, UnixMicros, UnixMs};

use super::ledger::{Ledger, Queue};
use super::{Checked, Key, Phase, Witness, ensure, key_of};
use crate::sim::marks::Marks;
use crate::sim::names;

impl Ledger {
    pub(super) fn cancelled(
        &mut self,
        queue: &QueueName,
        id: &JobId,
        outcome: CancelOutcome,
        witness: &Witness,
        marks: &mut Marks,
    ) -> Checked {
        let key = names::number(id).and_then(|_| key_of(queue, id).ok());
        let Some(key) = key.filter(|key| !self.is_spoiled(*key)) else { return Ok(()) };
        let phase = self.jobs.get(&key).map(|job| (job.phase, self.may_be_gone(key, job)));
        match (outcome, phase) {
            (CancelOutcome::Cancelled, Some((phase, _))) if self.may_wait(phase) => {
                marks.reach("a cancel takes a job");
                self.jobs.remove(&key);
                self.queue_mut(queue).counts.cancelled += 1;
                let done = self.cancelled.entry(key).or_default();
                *done += 1;
                once("cancel", key, *done, witness.cancels(key))
            }
            (CancelOutcome::Leased, Some((Phase::Leased { .. }, _))) => {
                marks.reach("a cancel finds a held job");
                Ok(())
            }
            (CancelOutcome::Gone, None)
            | (CancelOutcome::Gone | CancelOutcome::Dead, Some((_, true)))
            | (CancelOutcome::Dead, Some((Phase::Dead { .. } | Phase::Leased { .. }, _))) => Ok(()),
            (outcome, phase) => {
                ensure!(false, "cancel is exact", "{id} of {queue} in {phase:?} answered {outcome:?}");
                Ok(())
            }
        }
    }

    pub(super) fn rescheduled(
        &mut self,
        queue: &QueueName,
        id: &JobId,
        outcome: RescheduleOutcome,
        due: UnixMs,
        witness: &Witness,
        marks: &mut Marks,
    ) -> Checked {
        let key = names::number(id).and_then(|_| key_of(queue, id).ok());
        let Some(key) = key.filter(|key| !self.is_spoiled(*key)) else { return Ok(()) };
        let there = self
            .jobs
            .get(&key)
            .map(|job| (job.phase, self.may_wait(job.phase), self.may_be_gone(key, job), job.expires));
        match (outcome, there) {
            (RescheduleOutcome::Moved, Some((phase, may_wait, ..))) => {
                ensure!(may_wait, "reschedule is exact", "{id} of {queue} in {phase:?} was moved");
                marks.reach("a reschedule moves a job");
                if let Some(job) = self.jobs.get_mut(&key) {
                    if matches!(phase, Phase::Leased { .. }) {
                        job.reason = None;
                    }
                    (job.phase, job.since) = (Phase::Waiting { due }, self.latest);
                }
                let done = self.moved.entry(key).or_default();
                *done += 1;
                once("reschedule", key, *done, witness.moves(key))
            }
            (RescheduleOutcome::Expires, Some((_, true, false, Some(expires)))) => {
                marks.reach("a reschedule would outlive the job");
                ensure!(
                    expires < due,
                    "reschedule is exact",
                    "{id} of {queue} expires {expires}, not by {due}"
                );
                Ok(())
            }
            (RescheduleOutcome::Gone, None)
            | (_, Some((_, _, true, _)))
            | (RescheduleOutcome::Leased | RescheduleOutcome::Dead, Some((Phase::Leased { .. }, ..)))
            | (RescheduleOutcome::Dead, Some((Phase::Dead { .. }, ..))) => Ok(()),
            (outcome, there) => {
                ensure!(false, "reschedule is exact", "{id} of {queue} in {there:?} answered {outcome:?}");
                Ok(())
            }
        }
    }

    pub(super) fn requeued(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        until: UnixMs,
        moved: u64,
        marks: &mut Marks,
    ) -> Checked {
        self.queue_mut(queue).counts.requeued += moved;
        let (mut certain, mut possible, latest) = (0, self.spoiled_in(queue), self.latest);
        let Queue { config, .. } = self.queue_mut(queue).clone();
        let (retained, forwards) = (config.retention_ms.is_some(), config.forward.is_some());
        for (_, job) in self.jobs.iter_mut().filter(|(key, _)| names::queue(key.0) == *queue) {
            match job.phase {
                Phase::Dead { at } if at <= until => {
                    certain += u64::from(!retained);
                    possible += 1;
                    (job.phase, job.since) = (Phase::Waiting { due: now.floor_ms() }, now.floor_ms());
                    (job.attempts, job.expires, job.reason) = (0, None, None);
                    job.maybe_purged |= retained;
                    marks.reach("a dead letter runs again");
                }
                Phase::Dead { .. } => {}
                _ if job.may_be_dead(latest, forwards) => {
                    possible += 1;
                    job.maybe_requeued = true;
                }
                _ => {}
            }
        }
        ensure!(
            (certain..=possible).contains(&moved),
            "requeue is exact",
            "{moved} dead letters of {queue} were moved, there were {certain} to {possible}"
        );
        Ok(())
    }

    pub(super) fn purged(
        &mut self,
        queue: &QueueName,
        until: UnixMs,
        moved: u64,
        marks: &mut Marks,
    ) -> Checked {
        if moved > 0 {
            marks.reach("a dead letter is purged");
        }
        let (mut certain, mut possible, latest) = (0, self.spoiled_in(queue), self.latest);
        let Queue { config, .. } = self.queue_mut(queue).clone();
        let (retained, forwards) = (config.retention_ms.is_some(), config.forward.is_some());
        self.jobs.retain(|key, job| {
            if names::queue(key.0) != *queue {
                return true;
            }
            match job.phase {
                Phase::Dead { at } if at <= until => {
                    certain += u64::from(!retained);
                    possible += 1;
                    false
                }
                Phase::Dead { .. } => true,
                _ => {
                    let may_be_dead = job.may_be_dead(latest, forwards);
                    possible += u64::from(may_be_dead);
                    job.maybe_purged |= may_be_dead;
                    true
                }
            }
        });
        ensure!(
            (certain..=possible).contains(&moved),
            "purge is exact",
            "{moved} dead letters of {queue} went, there were {certain} to {possible}"
        );
        Ok(())
    }
}

fn once(what: &str, (queue, job): Key, done: u32, asked: u32) -> Checked {
    let (queue, job) = (names::queue(queue), names::job(job));
    ensure!(
        done <= asked,
        "a request has the effect of once",
        "{job} of {queue}: {what} was asked for {asked} times and done {done} times"
    );
    Ok(())
}
