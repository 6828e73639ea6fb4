use std::collections::BTreeSet;

use delayline_core::{DeadLetters, JobId, Phase, Reply, State, UnixMs};

use crate::bug::Bug;
use crate::changes::never_delivered;
use crate::script::Script;

/// The dead letters that a command names.
struct Named {
    ids: Vec<JobId>,
    /// For each id asked for, whether it is one of them.
    outcomes: Vec<bool>,
    until: UnixMs,
}

impl Script<'_> {
    /// See `requeue.lua`.
    pub(crate) fn requeue(&mut self, dead: &DeadLetters) -> Reply {
        let named = self.dead_letters(dead);
        let now = self.now;
        for id in &named.ids {
            let mut state = match self.queue.state_of(id) {
                Some(state) if !self.queue.is_broken(id) => state,
                Some(_) => State { flags: State::BIG, ..never_delivered(now) },
                None => never_delivered(now),
            };
            state.phase = if state.verdict.is_some() { Phase::Waiting } else { Phase::Ended };
            if !self.planted(Bug::RequeueKeepsAttempts) {
                state.attempts = 0;
            }
            state.due = now;
            self.changes.out.dead.push(id.clone());
            self.changes.into.state.push((id.clone(), state));
            self.changes.into.due.push((id.clone(), now));
            self.arrives(now);
        }
        self.queue.meta.counters.requeued += named.ids.len() as u64;
        self.apply();
        self.lower_agenda(self.soon);
        self.announce();
        self.dead_moved(named)
    }

    /// See `purge.lua`.
    pub(crate) fn purge(&mut self, dead: &DeadLetters) -> Reply {
        let named = self.dead_letters(dead);
        self.bury_for_good(&named.ids);
        self.dead_moved(named)
    }

    /// Dead letters go for good.
    pub(crate) fn bury_for_good(&mut self, ids: &[JobId]) {
        for id in ids {
            let state = self.queue.state_of(id);
            self.changes.out.dead.push(id.clone());
            self.vanishes(id, state.as_ref());
        }
        self.queue.meta.counters.purged += ids.len() as u64;
        self.apply();
    }

    fn dead_letters(&self, dead: &DeadLetters) -> Named {
        let until = dead.until.unwrap_or(self.now);
        let Some(asked) = &dead.ids else {
            let all = self.queue.dead.up_to(until).take(usize::from(dead.limit));
            return Named { ids: all.map(|(id, _)| id.clone()).collect(), outcomes: Vec::new(), until };
        };
        let mut seen = BTreeSet::new();
        let died = |id: &JobId| self.queue.dead.score(id).is_some_and(|at| at <= until);
        let outcomes: Vec<bool> = asked.iter().map(|id| died(id) && seen.insert(id)).collect();
        let ids = asked.iter().zip(&outcomes).filter(|(_, meant)| **meant).map(|(id, _)| id.clone());
        Named { ids: ids.collect(), outcomes, until }
    }

    fn dead_moved(&self, named: Named) -> Reply {
        Reply::DeadMoved {
            time: self.time,
            until: named.until,
            moved: named.ids.len() as u64,
            left: self.queue.dead.len() as u64,
            outcomes: named.outcomes,
        }
    }
}
