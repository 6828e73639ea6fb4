use std::collections::BTreeSet;

use delayline_core::{CancelOutcome, Due, JobId, Phase, Reply, RescheduleOutcome, UnixMs};

use crate::script::Script;

impl Script<'_> {
    /// See `cancel.lua`.
    pub(crate) fn cancel(&mut self, ids: &[JobId]) -> Reply {
        let mut seen = BTreeSet::new();
        let mut outcomes = Vec::with_capacity(ids.len());
        for id in ids {
            let state = self.queue.state.get(id).cloned();
            outcomes.push(match state {
                _ if seen.contains(id) => CancelOutcome::Gone,
                state if self.queue.due.contains(id) => {
                    seen.insert(id);
                    self.changes.out.due.push(id.clone());
                    self.vanishes(id, state.as_ref());
                    self.queue.meta.counters.cancelled += 1;
                    CancelOutcome::Cancelled
                }
                Some(state) if state.phase == Phase::Dead => CancelOutcome::Dead,
                Some(_) => CancelOutcome::Leased,
                None => CancelOutcome::Gone,
            });
        }
        self.apply();
        Reply::Cancelled { outcomes }
    }

    /// See `reschedule.lua`.
    pub(crate) fn reschedule(&mut self, jobs: &[(JobId, Due)]) -> Reply {
        let mut outcomes = Vec::with_capacity(jobs.len());
        let mut dues = Vec::with_capacity(jobs.len());
        for (id, due) in jobs {
            let due = due.counted_from(self.time);
            dues.push(due);
            outcomes.push(self.reschedule_one(id, due));
        }
        self.apply();
        self.lower_agenda(self.soon);
        self.announce();
        Reply::Rescheduled { time: self.time, outcomes, dues }
    }

    fn reschedule_one(&mut self, id: &JobId, due: UnixMs) -> RescheduleOutcome {
        if !self.queue.due.contains(id) {
            return match self.queue.state.get(id) {
                None => RescheduleOutcome::Gone,
                Some(state) if state.phase == Phase::Dead => RescheduleOutcome::Dead,
                Some(_) => RescheduleOutcome::Leased,
            };
        }
        if self.queue.exp.score(id).is_some_and(|expiry| due > expiry) {
            return RescheduleOutcome::Expires;
        }
        self.changes.into.due.push((id.clone(), due));
        self.arrives(due);
        RescheduleOutcome::Moved
    }
}
