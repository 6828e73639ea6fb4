use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{Identity, JobId, State};

use crate::meta::Meta;
use crate::zset::Zset;

/// The keys of one queue. What is empty is a key that is not there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) meta: Meta,
    /// Every job's record.
    pub(crate) pool: BTreeMap<JobId, Bytes>,
    /// Every waiting job by its due time.
    pub(crate) due: Zset<JobId>,
    /// Every held job by the end of its lease.
    pub(crate) leased: Zset<JobId>,
    /// What changed of the jobs that were delivered at least once, or died.
    pub(crate) state: BTreeMap<JobId, State>,
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
    pub(crate) fn is_empty(&self) -> bool {
        self.meta == Meta::default()
            && self.pool.is_empty()
            && self.due.is_empty()
            && self.leased.is_empty()
            && self.state.is_empty()
            && self.dead.is_empty()
            && self.exp.is_empty()
            && self.waiting.is_empty()
            && self.big.is_empty()
    }
}
