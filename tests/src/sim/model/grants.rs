//! How jobs are granted.

use delayline_core::{Grant, QueueName, UnixMicros, UnixMs};

use super::ledger::{DEFAULT_ATTEMPTS, Job, Ledger, Queue};
use super::{Checked, Phase, Witness, ensure, key_of};
use crate::sim::marks::Marks;

impl Ledger {
    pub(super) fn granted(
        &mut self,
        now: UnixMicros,
        queue: &QueueName,
        grant: &Grant,
        lease_end: UnixMs,
        witness: &mut Witness,
        marks: &mut Marks,
    ) -> Checked {
        let key = key_of(queue, &grant.id)?;
        let (id, fence, now_ms, latest) = (&grant.id, grant.state.fence, now.floor_ms(), self.latest);
        if self.is_spoiled(key) {
            witness.grant(key, fence, lease_end);
            return Ok(());
        }
        let Queue { paused, config, .. } = self.queue_mut(queue).clone();
        ensure!(!paused, "a paused queue grants nothing", "{id} of {queue}");
        let Some(job) = self.jobs.get_mut(&key) else {
            ensure!(false, "a settled job never runs again", "{id} of {queue} was granted but is not there");
            return Ok(());
        };
        let expired = |job: &Job| job.expires.is_some_and(|expires| expires <= now_ms);
        let died = job.attempts >= job.max && job.max > 0;
        let requeued = std::mem::take(&mut job.maybe_requeued) && (died || job.expires.is_some());
        if requeued && grant.state.attempts == 1 {
            marks.reach("a dead letter runs again");
            (job.attempts, job.reason, job.maybe_endless) = (0, None, true);
        } else if let Phase::Waiting { due } = job.phase {
            ensure!(grant.due == due, "a job keeps its due time", "{id}, due {due}, was due {}", grant.due);
        }
        match job.phase {
            _ if requeued => {}
            Phase::Waiting { .. } => {}
            Phase::Leased { fence: other, until, .. } => {
                ensure!(
                    until <= latest,
                    "one live lease",
                    "{id} of {queue} is held under {other} until {until}, granted at {now}"
                );
                let due = until + job.lost_delay_ms;
                ensure!(grant.due == due, "a lost job keeps its delay", "{id}: {} for {due}", grant.due);
                marks.reach("a lease ends and its job is granted again");
                job.reason = None;
            }
            Phase::Dead { .. } => ensure!(false, "a dead letter is not delivered", "{id} of {queue}"),
        }
        ensure!(grant.due <= now_ms, "never early", "{id} of {queue}, due {}, granted at {now}", grant.due);
        ensure!(
            !expired(job) || job.maybe_endless,
            "an expired job is not delivered",
            "{id} of {queue} at {now}"
        );
        job.attempts += 1;
        job.deliveries += 1;
        job.max = job.wanted_attempts.or(config.attempts).unwrap_or(DEFAULT_ATTEMPTS);
        let state = &grant.state;
        ensure!(
            job.attempts <= job.max || job.wanted_attempts.is_none(),
            "attempts have a maximum",
            "{id} of {queue}: {} of {}",
            job.attempts,
            job.max
        );
        ensure!(state.max == job.max, "attempts have the maximum asked for", "{id}: {state:?}");
        ensure!(
            state.attempts == job.attempts,
            "attempts are counted",
            "{id}: {state:?} is {}",
            job.attempts
        );
        ensure!(state.deliveries == job.deliveries, "deliveries are counted", "{id}: {state:?}");
        if let Some(reason) = &job.reason {
            ensure!(state.reason == *reason, "a failure keeps its reason", "{id}: {state:?}");
        }
        let late_ms = now_ms.since(grant.due.max(job.since));
        (job.phase, job.since) = (Phase::Leased { fence, until: lease_end, due: grant.due }, now_ms);
        self.late_ms = self.late_ms.max(late_ms);
        witness.grant(key, fence, lease_end);
        self.queue_mut(queue).counts.granted += 1;
        Ok(())
    }
}
