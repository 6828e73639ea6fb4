use delayline_core::{Forward, JobId, Phase, Reply, State, UnixMs};

use crate::agenda::earlier;
use crate::bug::Bug;
use crate::changes::set_flag;
use crate::script::Script;

const FORWARD_RETRY_MS: u64 = 10_000;
const REAPED_AT_ONCE: usize = 100;

impl Script<'_> {
    /// See `tend.lua`.
    pub(crate) fn tend(&mut self, limit: usize, to: Option<&Forward>) -> Reply {
        let limit = if self.planted(Bug::UnboundedTend) { 1_000_000 } else { limit };
        let reaped_at_once = limit.min(REAPED_AT_ONCE);
        let ended = self.reap(reaped_at_once);
        let expired = self.expire(limit);
        let purged = self.retire(limit);
        let (forwarded, more_to_forward) = self.forward(limit, to);
        if self.queue.meta.born.is_some() {
            self.is_born();
        }
        self.sweep_sessions();
        self.sweep_waiting();

        let ready = self.queue.due.first_score().is_some_and(|due| due <= self.now);
        let next_due = self.queue.due.since(self.now + 1).next().map(|(_, at)| at);
        let more = ended == reaped_at_once || expired == limit || purged == limit || more_to_forward;
        let meta = &self.queue.meta;
        let (paused, forward) = (meta.paused, meta.config.forward.clone());
        let mut next = self.next_event(next_due);
        if more {
            next = Some(self.now);
        }
        if ready && forward.is_some() && !paused {
            next = earlier(next, Some(self.now + FORWARD_RETRY_MS));
        }
        self.set_agenda(next);
        self.woken = ready && !paused && !self.planted(Bug::NoWakeOnTend);
        self.announce();
        let [ended, expired, purged, forwarded] =
            [ended, expired, purged, forwarded].map(|count| count as u64);
        Reply::Tended { time: self.time, ended, expired, purged, forwarded, next, more, forward }
    }

    /// TTLs that ended: a waiting job goes, a held one keeps its lease and a mark.
    fn expire(&mut self, limit: usize) -> usize {
        if !self.queue.meta.has_expiries() {
            return 0;
        }
        let ended = self.queue.exp.up_to(self.now).take(limit);
        let ids: Vec<JobId> = ended.map(|(id, _)| id.clone()).collect();
        for id in &ids {
            match self.queue.state_of(id) {
                Some(mut state) if state.phase == Phase::Leased => {
                    set_flag(&mut state, State::TTL, false);
                    set_flag(&mut state, State::EXPIRED, true);
                    self.changes.out.exp.push(id.clone());
                    self.changes.into.state.push((id.clone(), state));
                }
                state => {
                    let due = self.queue.due.score(id).unwrap_or(self.now);
                    self.changes.out.due.push(id.clone());
                    if self.queue.is_broken(id) {
                        self.changes.out.leased.push(id.clone());
                    }
                    self.expires(id, state, due);
                }
            }
        }
        self.apply();
        ids.len()
    }

    /// Dead letters that were kept long enough.
    fn retire(&mut self, limit: usize) -> usize {
        let retention = self.queue.meta.retention_ms();
        let Some(until) = retention.and_then(|ms| self.now.0.checked_sub(ms)) else {
            return 0;
        };
        let old = self.queue.dead.up_to(UnixMs(until)).take(limit);
        let ids: Vec<JobId> = old.map(|(id, _)| id.clone()).collect();
        self.bury_for_good(&ids);
        ids.len()
    }

    fn sweep_waiting(&mut self) {
        let Some(until) = self.now.0.checked_sub(self.pace.waiting_ms).filter(|_| self.queue.meta.waited)
        else {
            return;
        };
        let waiting = &mut self.queue.waiting;
        let old: Vec<_> = waiting.up_to(UnixMs(until)).map(|(engine, _)| *engine).collect();
        for engine in &old {
            waiting.remove(engine);
        }
        if !old.is_empty() && waiting.is_empty() {
            self.queue.meta.waited = false;
        }
    }
}
