//! How leases end and are renewed.

use delayline_core::{
    ExtendOutcome, Fence, JobId, QueueName, SettleOutcome, Settlement, UnixMicros, UnixMs, VerdictKind,
};

use super::ledger::{Job, Ledger};
use super::{Checked, Phase, Witness, ensure, key_of};
use crate::sim::marks::Marks;

impl Ledger {
    pub(super) fn settled(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        (id, fence, settlement): &(JobId, Fence, Settlement),
        outcome: SettleOutcome,
        marks: &mut Marks,
    ) -> Checked {
        let (key, latest) = (key_of(queue, id)?, self.latest);
        if self.is_spoiled(key) {
            return Ok(());
        }
        let bury_expired = self.queue_mut(queue).config.bury_expired;
        let may_be_gone = self.jobs.get(&key).is_some_and(|job| self.may_be_gone(key, job));
        let Some(job) = self.jobs.get_mut(&key) else {
            marks.reach("a verdict finds its job gone");
            let right = outcome == SettleOutcome::Gone;
            ensure!(right, "sizes are exact", "{id} is gone, but its settle answered {outcome:?}");
            return Ok(());
        };
        let holds = matches!(job.phase, Phase::Leased { fence: held, .. } if held == *fence);
        match outcome {
            SettleOutcome::Done | SettleOutcome::Died | SettleOutcome::Expired => {
                let phase = job.phase;
                ensure!(
                    holds,
                    "only the live fence settles",
                    "{id}: {settlement:?} by {fence} in {phase:?} answered {outcome:?}"
                );
            }
            SettleOutcome::Stale => {
                marks.reach("a zombie's verdict is stale");
                let live = holds && matches!(job.phase, Phase::Leased { until, .. } if until > latest);
                ensure!(!live, "a live lease can be settled", "{id} by {fence}");
                return Ok(());
            }
            SettleOutcome::Repeat => {
                marks.reach("a verdict is repeated");
                ensure!(!holds || may_be_gone, "a verdict takes effect", "{id}: a repeat by {fence}");
                job.first_was(*fence, settlement.verdict())?;
                return Ok(());
            }
            SettleOutcome::Conflict(first) => {
                let verdict = settlement.verdict();
                ensure!(verdict != first, "a repeat is no conflict", "{id}: {first:?} twice by {fence}");
                job.first_was(*fence, first)?;
                return Ok(());
            }
            SettleOutcome::Gone => {
                marks.reach("a verdict finds its job gone");
                let may = job.deliveries == 0 || may_be_gone;
                ensure!(may, "accepted means delivered", "{id} of {queue} vanished");
                return Ok(());
            }
        }
        let expired = job.has_expired(latest);
        job.since = now.floor_ms();
        let ended = job.judge(now, settlement, outcome, bury_expired)?;
        if outcome != SettleOutcome::Expired {
            job.verdict = Some((*fence, settlement.verdict()));
        }
        if outcome == SettleOutcome::Expired {
            marks.reach("a job expires while it is held");
            ensure!(expired, "a job expires at its time", "{id} of {queue} at {now}");
        }
        if outcome == SettleOutcome::Died {
            marks.reach("a job dies of its attempts");
        }
        if ended {
            self.jobs.remove(&key);
        }
        let counts = &mut self.queue_mut(queue).counts;
        match settlement {
            Settlement::Ack => counts.acked += 1,
            _ if outcome == SettleOutcome::Expired => {}
            Settlement::Nack { .. } => counts.nacked += 1,
            Settlement::Snooze { .. } => counts.snoozed += 1,
            Settlement::Release { .. } => counts.released += 1,
            Settlement::Bury { .. } => {}
        }
        Ok(())
    }

    pub(super) fn extended(
        &mut self,
        queue: &QueueName,
        (id, fence): &(JobId, Fence),
        outcome: ExtendOutcome,
        lease_end: UnixMs,
        witness: &mut Witness,
        marks: &mut Marks,
    ) -> Checked {
        let (key, latest) = (key_of(queue, id)?, self.latest);
        if self.is_spoiled(key) {
            if outcome == ExtendOutcome::Extended {
                witness.grant(key, *fence, lease_end);
            }
            return Ok(());
        }
        let may_be_gone = self.jobs.get(&key).is_some_and(|job| self.may_be_gone(key, job));
        let Some(job) = self.jobs.get_mut(&key) else {
            let right = outcome == ExtendOutcome::Gone;
            ensure!(right, "sizes are exact", "{id} is gone, but its extend answered {outcome:?}");
            return Ok(());
        };
        match (outcome, job.phase) {
            (ExtendOutcome::Extended, Phase::Leased { fence: held, until, due }) if held == *fence => {
                marks.reach("a renewal");
                let until = until.max(lease_end);
                job.phase = Phase::Leased { fence: held, until, due };
                witness.grant(key, *fence, until);
            }
            (ExtendOutcome::Extended, phase) => {
                ensure!(false, "only the live fence extends", "{id} by {fence} in {phase:?}");
            }
            (ExtendOutcome::Stale, Phase::Leased { fence: held, until, .. }) => {
                marks.reach("a renewal is too late");
                let live = held == *fence && until > latest;
                ensure!(!live, "a live lease can be extended", "{id} by {fence}");
            }
            (ExtendOutcome::Gone, _) => {
                let may = job.deliveries == 0 || may_be_gone;
                ensure!(may, "accepted means delivered", "{id} of {queue} vanished");
            }
            (ExtendOutcome::Stale, _) => marks.reach("a renewal is too late"),
        }
        Ok(())
    }
}

impl Job {
    /// The verdict under this fence was this one.
    fn first_was(&self, fence: Fence, verdict: VerdictKind) -> Checked {
        let right = self.verdict == Some((fence, verdict));
        ensure!(right, "the first verdict is named", "{verdict:?} by {fence}, but it was {:?}", self.verdict);
        Ok(())
    }

    /// What the verdict of its live lease makes of it; whether that is its end.
    fn judge(
        &mut self,
        now: UnixMicros,
        settlement: &Settlement,
        outcome: SettleOutcome,
        bury_expired: bool,
    ) -> Checked<bool> {
        let before = match self.phase {
            Phase::Leased { due, .. } => due,
            Phase::Waiting { .. } | Phase::Dead { .. } => now.floor_ms(),
        };
        let later = |after_ms: u64| if after_ms == 0 { now.floor_ms() } else { now.ceil_ms() + after_ms };
        let mut waits = |due: UnixMs| {
            self.phase = Phase::Waiting { due };
            Ok(false)
        };
        match (outcome, settlement) {
            (SettleOutcome::Expired, _) if bury_expired => {
                self.phase = Phase::Dead { at: now.floor_ms() };
                (self.reason, self.expires) = (None, None);
                Ok(false)
            }
            (SettleOutcome::Expired, _) | (_, Settlement::Ack) => Ok(true),
            (SettleOutcome::Died, _) => {
                let may = matches!(settlement, Settlement::Bury { .. }) || self.attempts >= self.max;
                ensure!(may, "a job dies only for a reason", "attempt {} of {}", self.attempts, self.max);
                self.phase = Phase::Dead { at: now.floor_ms() };
                Ok(false)
            }
            (_, Settlement::Nack { after_ms, reason }) => {
                ensure!(self.attempts < self.max, "the last failure is the end", "of {}", self.max);
                waits(later(*after_ms))?;
                self.reason = Some(reason.clone());
                Ok(false)
            }
            (_, Settlement::Snooze { after_ms }) => {
                waits(later(*after_ms))?;
                self.attempts = self.attempts.saturating_sub(1);
                Ok(false)
            }
            (_, Settlement::Release { after_ms }) => {
                waits(if *after_ms == 0 { before } else { later(*after_ms) })?;
                self.attempts = self.attempts.saturating_sub(1);
                Ok(false)
            }
            (_, Settlement::Bury { .. }) => {
                ensure!(false, "a buried job is dead", "{outcome:?}");
                Ok(false)
            }
        }
    }
}
