use delayline_core::{JobId, Phase, Reason, State, UnixMs};

use crate::bug::Bug;
use crate::changes::set_flag;
use crate::meta::Lo;
use crate::script::Script;

impl Script<'_> {
    /// Before when no lease ends.
    pub(crate) fn lo(&self) -> Option<UnixMs> {
        self.queue.meta.lo.at().filter(|lo| *lo > UnixMs(0) || !self.planted(Bug::LostLowerBound))
    }

    /// Ended leases go back to due as of the lease's end, or to dead when their attempts are used up.
    pub(crate) fn reap(&mut self, limit: usize) -> usize {
        if self.lo().is_none_or(|lo| lo > self.now) {
            return 0;
        }
        let ended: Vec<(JobId, UnixMs)> =
            self.queue.leased.up_to(self.now).take(limit).map(|(id, at)| (id.clone(), at)).collect();
        for (id, at) in &ended {
            let state = self.queue.state_of(id);
            self.changes.out.leased.push(id.clone());
            match state {
                Some(state) if self.queue.is_broken(id) => {
                    self.is_unreadable(id, State { due: *at, ..state }, "broken state");
                }
                state => self.ends(id, state, *at),
            }
        }
        self.queue.meta.counters.ended += ended.len() as u64;
        self.apply();
        self.queue.meta.lo = Lo::of(self.queue.leased.first_score());
        ended.len()
    }

    fn ends(&mut self, id: &JobId, state: Option<State>, lease_end: UnixMs) {
        let mut at = lease_end;
        if let Some(mut state) = state {
            if state.has(State::EXPIRED) {
                self.expires(id, Some(state), at);
                return;
            }
            if state.attempts >= state.max {
                set_flag(&mut state, State::BY_VERDICT, false);
                self.dies(id, state, Reason::new("lease ended"));
                return;
            }
            if state.has(State::LOST_DELAY) {
                at = at + state.extension.parse().unwrap_or(0);
            }
            state.phase = Phase::Ended;
            state.due = at;
            self.changes.into.state.push((id.clone(), state));
        }
        self.changes.into.due.push((id.clone(), at));
        self.arrives(at);
    }
}
