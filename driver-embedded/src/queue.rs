use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{Identity, JobId, Phase, State, UnixMs};

use crate::changes::never_delivered;
use crate::meta::Meta;
use crate::pool::Pool;
use crate::zset::Zset;

/// The keys of one queue. What is empty is a key that is not there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) meta: Meta,
    /// Every job's record.
    pub(crate) pool: Pool,
    /// Every waiting job by its due time.
    pub(crate) due: Zset<JobId>,
    /// Every held job by the end of its lease.
    pub(crate) leased: Zset<JobId>,
    /// What changed of the jobs that were delivered at least once, or died.
    pub(crate) state: BTreeMap<JobId, State>,
    /// Texts in `state` that cannot be read.
    pub(crate) broken: BTreeMap<JobId, Bytes>,
    /// Dead letters by their time of death.
    pub(crate) dead: Zset<JobId>,
    /// Jobs with a TTL by their expiry.
    pub(crate) exp: Zset<JobId>,
    /// Idle engines by the time they registered.
    pub(crate) waiting: Zset<Identity>,
    /// Large records by their length.
    pub(crate) big: Zset<JobId, usize>,
}

impl Queue {
    /// The job's state. One that cannot be read is that of a job of which nothing is known, with all that it may have.
    pub(crate) fn state_of(&self, id: &JobId) -> Option<State> {
        if self.broken.contains_key(id) {
            let flags = State::TTL | State::BIG;
            return Some(State { phase: Phase::Waiting, flags, ..never_delivered(UnixMs(0)) });
        }
        self.state.get(id).cloned()
    }

    /// When the job expires, as scripts know that look only where there are expiries.
    pub(crate) fn expiry(&self, id: &JobId) -> Option<UnixMs> {
        self.exp.score(id).filter(|_| self.meta.has_expiries())
    }

    /// How long the job's record is if it is large, as scripts know that look only where there are large ones.
    pub(crate) fn size(&self, id: &JobId) -> Option<usize> {
        self.big.score(id).filter(|_| self.meta.has_sizes())
    }

    pub(crate) fn is_broken(&self, id: &JobId) -> bool {
        self.broken.contains_key(id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.meta == Meta::default()
            && self.pool.is_empty()
            && self.due.is_empty()
            && self.leased.is_empty()
            && self.state.is_empty()
            && self.broken.is_empty()
            && self.dead.is_empty()
            && self.exp.is_empty()
            && self.waiting.is_empty()
            && self.big.is_empty()
    }
}
