use delayline_core::{Fence, JobId, Phase, Reason, State, UnixMs};

use crate::bug::Bug;
use crate::meta::lower;
use crate::script::Script;

/// What is to change, gathered while a script decides.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) out: Out,
    pub(crate) into: Into,
}

/// What leaves a place. It goes first.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) leased: Vec<JobId>,
    pub(crate) due: Vec<JobId>,
    pub(crate) dead: Vec<JobId>,
    pub(crate) state: Vec<JobId>,
    pub(crate) pool: Vec<JobId>,
    pub(crate) exp: Vec<JobId>,
    pub(crate) big: Vec<JobId>,
}

/// What enters a place.
#[derive(Debug, Default)]
pub(crate) struct Into {
    pub(crate) due: Vec<(JobId, UnixMs)>,
    pub(crate) leased: Vec<(JobId, UnixMs)>,
    pub(crate) dead: Vec<(JobId, UnixMs)>,
    pub(crate) state: Vec<(JobId, State)>,
}

pub(crate) fn set_flag(state: &mut State, flag: u8, on: bool) {
    state.flags = if on { state.flags | flag } else { state.flags & !flag };
}

pub(crate) fn never_delivered(due: UnixMs) -> State {
    State {
        phase: Phase::Dead,
        fence: Fence(0),
        attempts: 0,
        verdict: None,
        max: 0,
        deliveries: 0,
        flags: 0,
        due,
        extension: String::new(),
        reason: Reason::default(),
    }
}

impl Script<'_> {
    /// What there is of a job beside its record and its place goes. One never delivered has no state to say whether it
    /// has a TTL or is large.
    pub(crate) fn is_forgotten(&mut self, id: &JobId, state: Option<&State>) {
        let out = &mut self.changes.out;
        let meta = &self.queue.meta;
        if state.is_some() {
            out.state.push(id.clone());
        }
        if state.map_or(meta.has_expiries(), |state| state.has(State::TTL)) {
            out.exp.push(id.clone());
        }
        if state.map_or(meta.has_sizes(), |state| state.has(State::BIG)) {
            out.big.push(id.clone());
        }
    }

    /// Nothing of the job remains but the counter that the caller raises.
    pub(crate) fn vanishes(&mut self, id: &JobId, state: Option<&State>) {
        self.changes.out.pool.push(id.clone());
        self.is_forgotten(id, state);
    }

    /// The job becomes a dead letter; its state then.
    pub(crate) fn dies(&mut self, id: &JobId, mut state: State, reason: Reason) -> State {
        if state.has(State::TTL) {
            self.changes.out.exp.push(id.clone());
        }
        set_flag(&mut state, State::TTL, false);
        set_flag(&mut state, State::EXPIRED, false);
        state.phase = Phase::Dead;
        state.reason = reason;
        self.changes.into.state.push((id.clone(), state.clone()));
        if !self.planted(Bug::DeadLetterLost) {
            self.changes.into.dead.push((id.clone(), self.now));
        }
        self.queue.meta.counters.died += 1;
        if let Some(ms) = self.queue.meta.retention_ms() {
            self.note(self.now + ms);
        }
        state
    }

    /// What was done to the job cannot be told: it becomes a dead letter.
    pub(crate) fn is_unreadable(&mut self, id: &JobId, state: State, reason: &str) {
        self.dies(id, state, Reason::new(reason));
        self.queue.meta.counters.unreadable += 1;
    }

    /// The job's TTL ended: it is dropped, or dies if the config says so. A job without a state was never delivered and
    /// waits until `due`.
    pub(crate) fn expires(&mut self, id: &JobId, state: Option<State>, due: UnixMs) {
        if self.queue.meta.config.bury_expired {
            let state = state.filter(|_| !self.queue.is_broken(id));
            let mut state = state.unwrap_or_else(|| self.first_state(id, due));
            set_flag(&mut state, State::TTL, true);
            state.verdict = None;
            self.dies(id, state, Reason::new("expired"));
        } else {
            self.vanishes(id, state.as_ref());
            if !self.planted(Bug::LostCounter) {
                self.queue.meta.counters.expired += 1;
            }
        }
    }

    /// The state that a job gets which dies without a delivery.
    pub(crate) fn first_state(&self, id: &JobId, due: UnixMs) -> State {
        let mut state = never_delivered(due);
        set_flag(&mut state, State::BIG, self.queue.size(id).is_some());
        state
    }

    /// Carries the changes out: removing comes first.
    pub(crate) fn apply(&mut self) {
        let Changes { out, into } = std::mem::take(&mut self.changes);
        let queue = &mut *self.queue;
        for id in &out.leased {
            queue.leased.remove(id);
        }
        for id in &out.due {
            queue.due.remove(id);
        }
        for id in &out.dead {
            queue.dead.remove(id);
        }
        for id in out.state.iter().chain(into.state.iter().map(|(id, _)| id)) {
            queue.state.remove(id);
            queue.broken.remove(id);
        }
        for id in &out.pool {
            queue.pool.remove(id);
        }
        lower(&mut queue.meta.exp, out.exp.iter().filter(|id| queue.exp.remove(id)).count());
        lower(&mut queue.meta.big, out.big.iter().filter(|id| queue.big.remove(id)).count());
        for (id, at) in into.due {
            queue.due.insert(id, at);
        }
        for (id, at) in into.leased {
            queue.leased.insert(id, at);
        }
        for (id, at) in into.dead {
            queue.dead.insert(id, at);
        }
        queue.state.extend(into.state);
    }
}
