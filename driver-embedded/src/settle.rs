use std::collections::BTreeMap;

use delayline_core::{Fence, JobId, Phase, Reason, Reply, SettleOutcome, Settlement, State, UnixMs};

use crate::bug::Bug;
use crate::meta::Lo;
use crate::script::Script;

impl Script<'_> {
    /// See `settle.lua`.
    pub(crate) fn settle(&mut self, tidy: bool, leases: &[(JobId, Fence, Settlement)]) -> Reply {
        let timed = tidy || leases.iter().any(|(_, _, settlement)| *settlement != Settlement::Ack);
        let mut settled: BTreeMap<&JobId, Option<State>> = BTreeMap::new();
        let mut outcomes = Vec::with_capacity(leases.len());
        for (id, fence, settlement) in leases {
            let state = match settled.remove(id) {
                Some(state) => state,
                None => self.queue.state_of(id),
            };
            let (outcome, state) = self.settle_one(id, *fence, settlement, state);
            outcomes.push(outcome);
            settled.insert(id, state);
        }
        self.apply();
        self.lower_agenda(self.soon);
        if tidy && self.queue.meta.config.forward.is_none() {
            self.tidy();
        }
        self.announce();
        Reply::Settled { time: timed.then_some(self.time), outcomes }
    }

    /// The outcome, and the state that the job is left with.
    fn settle_one(
        &mut self,
        id: &JobId,
        fence: Fence,
        settlement: &Settlement,
        state: Option<State>,
    ) -> (SettleOutcome, Option<State>) {
        let Some(state) = state else {
            return (SettleOutcome::Gone, None);
        };
        let fenced = state.fence != fence && !self.planted(Bug::AckWithoutFenceCheck);
        if state.phase != Phase::Leased || fenced {
            let before = state.fence == fence && state.verdict.is_some();
            let outcome = if before { self.again(&state, settlement) } else { SettleOutcome::Stale };
            return (outcome, Some(state));
        }
        self.changes.out.leased.push(id.clone());
        if *settlement == Settlement::Ack {
            self.vanishes(id, Some(&state));
            self.queue.meta.counters.acked += 1;
            return (SettleOutcome::Done, None);
        }
        if state.has(State::EXPIRED) {
            let due = state.due;
            self.expires(id, Some(state), due);
            return (SettleOutcome::Expired, None);
        }
        let state = State { verdict: Some(settlement.verdict()), ..state };
        let (outcome, state) = self.judge(id, settlement, state);
        (outcome, Some(state))
    }

    /// A verdict under this lease was carried out before: that one stands.
    fn again(&self, state: &State, settlement: &Settlement) -> SettleOutcome {
        let first = state.verdict.filter(|first| *first != settlement.verdict());
        match first {
            Some(first) if !self.planted(Bug::ConflictTakenForRepeat) => SettleOutcome::Conflict(first),
            _ => SettleOutcome::Repeat,
        }
    }

    fn judge(&mut self, id: &JobId, settlement: &Settlement, mut state: State) -> (SettleOutcome, State) {
        let bug = self.bug;
        let counters = &mut self.queue.meta.counters;
        let due = match settlement {
            Settlement::Ack => state.due,
            Settlement::Nack { after_ms, reason } => {
                counters.nacked += 1;
                if state.attempts >= state.max + u16::from(bug == Some(Bug::OneAttemptMore)) {
                    return self.buried(id, state, reason);
                }
                if bug != Some(Bug::NackLosesReason) {
                    state.reason = reason.clone();
                }
                self.after(if bug == Some(Bug::NackWithoutDelay) { 0 } else { *after_ms })
            }
            Settlement::Snooze { after_ms } => {
                counters.snoozed += 1;
                let back = u16::from(bug != Some(Bug::SnoozeSpendsAttempt));
                state.attempts = state.attempts.saturating_sub(back);
                self.after(*after_ms)
            }
            Settlement::Release { after_ms } => {
                counters.released += 1;
                state.attempts = state.attempts.saturating_sub(1);
                let keeps = *after_ms == 0 && bug != Some(Bug::ReleaseLosesDue);
                if keeps { state.due } else { self.after(*after_ms) }
            }
            Settlement::Bury { reason } => return self.buried(id, state, reason),
        };
        (SettleOutcome::Done, self.waits(id, state, due))
    }

    fn waits(&mut self, id: &JobId, mut state: State, due: UnixMs) -> State {
        state.phase = Phase::Waiting;
        state.due = due;
        self.changes.into.state.push((id.clone(), state.clone()));
        self.changes.into.due.push((id.clone(), due));
        self.arrives(due);
        state
    }

    fn buried(&mut self, id: &JobId, state: State, reason: &Reason) -> (SettleOutcome, State) {
        (SettleOutcome::Died, self.dies(id, state, reason.clone()))
    }

    /// The engine holds nothing of the queue any more: the agenda need not wait for its leases.
    fn tidy(&mut self) {
        self.queue.meta.lo = Lo::of(self.first_lease_end());
        let ahead = self.queue.due.since(self.now + 1).next().map(|(_, at)| at);
        self.set_agenda(self.next_event(ahead));
    }
}
