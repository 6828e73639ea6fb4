use delayline_core::{ExtendOutcome, Fence, JobId, Phase, Reply};

use crate::bug::Bug;
use crate::script::Script;

impl Script<'_> {
    /// See `extend.lua`.
    pub(crate) fn extend(&mut self, lease_ms: u64, leases: &[(JobId, Fence)]) -> Reply {
        let lease_end = self.after(lease_ms);
        let shortens = self.planted(Bug::ExtendShortens);
        let outcomes = leases.iter().map(|(id, fence)| match self.queue.state_of(id) {
            None => ExtendOutcome::Gone,
            Some(state) if state.phase != Phase::Leased || state.fence != *fence => ExtendOutcome::Stale,
            Some(_) => {
                if self.queue.leased.score(id).is_some_and(|end| end < lease_end || shortens) {
                    self.queue.leased.insert(id.clone(), lease_end);
                }
                ExtendOutcome::Extended
            }
        });
        let outcomes = outcomes.collect();
        Reply::Extended { time: self.time, outcomes, lease_end }
    }
}
