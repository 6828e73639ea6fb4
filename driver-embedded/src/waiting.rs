use std::collections::BTreeSet;

use delayline_core::{CancelOutcome, Due, JobId, Phase, Reply, RescheduleOutcome, Session, UnixMs};

use crate::bug::Bug;
use crate::script::Script;
use crate::session::{Answer, Recall, Verb};

impl Script<'_> {
    /// See `cancel.lua`.
    pub(crate) fn cancel(&mut self, session: &Session, ids: &[JobId]) -> Reply {
        let time = self.time;
        match self.recall(session, Verb::Change) {
            Recall::New => {}
            Recall::Again(Answer::Cancelled(outcomes)) => return Reply::Cancelled { time, outcomes },
            Recall::Again(_) | Recall::Superseded => return Reply::Superseded { time },
        }
        let mut seen = BTreeSet::new();
        let outcomes: Vec<CancelOutcome> = ids.iter().map(|id| self.cancel_one(id, &mut seen)).collect();
        self.apply();
        self.remember_change(session, Answer::Cancelled(outcomes.clone()));
        Reply::Cancelled { time, outcomes }
    }

    fn cancel_one<'a>(&mut self, id: &'a JobId, seen: &mut BTreeSet<&'a JobId>) -> CancelOutcome {
        let state = self.queue.state_of(id);
        if seen.contains(id) {
            CancelOutcome::Gone
        } else if self.queue.due.contains(id)
            || self.planted(Bug::CancelsLeased) && self.queue.leased.remove(id)
        {
            seen.insert(id);
            if !self.planted(Bug::CancelLeavesGhost) {
                self.changes.out.due.push(id.clone());
            }
            self.vanishes(id, state.as_ref());
            self.queue.meta.counters.cancelled += 1;
            CancelOutcome::Cancelled
        } else {
            match state.map(|state| state.phase) {
                Some(Phase::Dead) => CancelOutcome::Dead,
                Some(_) => CancelOutcome::Leased,
                None => CancelOutcome::Gone,
            }
        }
    }

    /// See `reschedule.lua`.
    pub(crate) fn reschedule(&mut self, session: &Session, jobs: &[(JobId, Due)]) -> Reply {
        let moved = match self.recall(session, Verb::Change) {
            Recall::New => self.reschedule_all(session, jobs),
            Recall::Again(Answer::Rescheduled(moved)) => moved,
            Recall::Again(_) | Recall::Superseded => return Reply::Superseded { time: self.time },
        };
        let (outcomes, dues) = moved.into_iter().unzip();
        Reply::Rescheduled { time: self.time, outcomes, dues }
    }

    fn reschedule_all(
        &mut self,
        session: &Session,
        jobs: &[(JobId, Due)],
    ) -> Vec<(RescheduleOutcome, UnixMs)> {
        let mut moved = Vec::with_capacity(jobs.len());
        for (id, due) in jobs {
            let due = due.counted_from(self.time);
            moved.push((self.reschedule_one(id, due), due));
        }
        self.apply();
        self.remember_change(session, Answer::Rescheduled(moved.clone()));
        self.lower_agenda(self.soon);
        self.announce();
        moved
    }

    /// Of a queue that never came to be nothing is remembered, so that asking leaves no key.
    fn remember_change(&mut self, session: &Session, answer: Answer) {
        if self.queue.meta.born.is_some() {
            self.remember(session, Verb::Change, UnixMs(0), answer);
        }
    }

    fn reschedule_one(&mut self, id: &JobId, due: UnixMs) -> RescheduleOutcome {
        if !self.queue.due.contains(id) {
            return match self.queue.state_of(id) {
                None => RescheduleOutcome::Gone,
                Some(state) if state.phase == Phase::Dead => RescheduleOutcome::Dead,
                Some(_) => RescheduleOutcome::Leased,
            };
        }
        if self.queue.expiry(id).is_some_and(|expiry| due > expiry) {
            return RescheduleOutcome::Expires;
        }
        self.changes.into.due.push((id.clone(), due));
        self.arrives(due);
        RescheduleOutcome::Moved
    }
}
