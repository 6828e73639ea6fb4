use delayline_core::{JobId, Phase, Reason, State, UnixMs};

use crate::bug::Bug;
use crate::meta::Lo;
use crate::script::Script;

/// No lease is granted for so long, nor was the clock set back by so much: somebody else wrote when it ends.
const LATE_LEASE_MS: u64 = 172_800_000;

impl Script<'_> {
    /// Before when no lease ends.
    pub(crate) fn lo(&self) -> Option<UnixMs> {
        self.queue.meta.lo.at().filter(|lo| *lo > UnixMs(0) || !self.planted(Bug::LostLowerBound))
    }

    /// Ended leases go back to due as of the lease's end, or to dead when their attempts are used up. One that would end too
    /// late ends now.
    pub(crate) fn reap(&mut self, limit: usize) -> usize {
        let (now, late) = (self.now, self.late());
        if self.lo().is_none_or(|lo| lo > now && lo <= late) {
            return 0;
        }
        let leased = &self.queue.leased;
        let endless = leased.since(late + 1).map(|(id, _)| (id.clone(), now));
        let ended = leased.up_to(now).map(|(id, at)| (id.clone(), at));
        let ended: Vec<(JobId, UnixMs)> = ended.chain(endless).take(limit).collect();
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
        self.queue.meta.lo = Lo::of(self.first_lease_end());
        ended.len()
    }

    /// When the first of the leases ends. One that would end too late ends now.
    pub(crate) fn first_lease_end(&self) -> Option<UnixMs> {
        let first = self.queue.leased.first_score()?;
        Some(if first > self.late() { self.now } else { first })
    }

    /// The latest that a lease can end.
    fn late(&self) -> UnixMs {
        let planted = self.planted(Bug::EndlessLease);
        if planted { UnixMs(u64::MAX - 1) } else { self.now + LATE_LEASE_MS }
    }

    fn ends(&mut self, id: &JobId, state: Option<State>, lease_end: UnixMs) {
        let mut at = lease_end;
        if let Some(mut state) = state {
            if state.has(State::EXPIRED) {
                self.expires(id, Some(state), at);
                return;
            }
            if state.attempts >= state.max {
                state.verdict = None;
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
