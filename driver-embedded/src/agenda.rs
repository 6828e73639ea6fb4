use delayline_core::UnixMs;

use crate::bug::Bug;
use crate::script::Script;

/// How many engines a wake tries.
const WAKES: usize = 4;

/// The earlier of two times, where either may be missing.
pub(crate) fn earlier(a: Option<UnixMs>, b: Option<UnixMs>) -> Option<UnixMs> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Script<'_> {
    pub(crate) fn note(&mut self, at: UnixMs) {
        if at > self.now {
            self.soon = earlier(self.soon, Some(at));
        }
    }

    /// A job now waits until `due`: the agenda learns of it, or somebody is woken for it.
    pub(crate) fn arrives(&mut self, due: UnixMs) {
        if due > self.now {
            self.note(due);
        } else if self.queue.meta.config.forward.is_some() {
            self.soon = Some(self.now);
        } else {
            self.woken = true;
        }
    }

    pub(crate) fn lower_agenda(&mut self, at: Option<UnixMs>) {
        let late_ms = if self.planted(Bug::AgendaLate) { 1_000 } else { 0 };
        let at = at.map(|at| at + late_ms);
        let Some(at) = at.filter(|at| self.agenda.score(self.name).is_none_or(|old| *at < old)) else {
            return;
        };
        self.agenda.insert(self.name.clone(), at);
        if at < self.now + self.pace.near_ms {
            self.head = Some(at);
        }
    }

    /// The next time anything happens in this queue, given its next future due time.
    pub(crate) fn next_event(&self, next_due: Option<UnixMs>) -> Option<UnixMs> {
        let queue = &self.queue;
        let retention = queue.meta.retention_ms();
        let purge = retention.and_then(|ms| queue.dead.first_score().map(|died| died + ms));
        let lease_end = self.lo().filter(|_| !self.planted(Bug::AgendaWithoutLeases));
        let at = earlier(next_due, lease_end);
        let expiry = queue.exp.first_score().filter(|_| queue.meta.has_expiries());
        earlier(earlier(at, expiry), purge)
    }

    pub(crate) fn set_agenda(&mut self, at: Option<UnixMs>) {
        match at {
            Some(at) => self.agenda.insert(self.name.clone(), at),
            None => {
                self.agenda.remove(self.name);
            }
        }
    }

    /// Publishes last: the new head, then a wake.
    pub(crate) fn announce(&mut self) {
        if let Some(head) = self.head {
            self.notices.head(self.shard, head);
        }
        let meta = &self.queue.meta;
        if self.woken && !meta.paused && meta.config.forward.is_none() {
            self.wake();
        }
    }

    fn wake(&mut self) {
        if !self.queue.meta.waited {
            return;
        }
        for _ in 0..WAKES {
            let Some(engine) = self.queue.waiting.pop_first() else {
                self.queue.meta.waited = false;
                return;
            };
            if self.notices.ready(engine, self.name) {
                return;
            }
        }
    }
}
