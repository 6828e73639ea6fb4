use std::collections::{BTreeMap, BTreeSet};

use delayline_core::{Identity, QueueName, Reply, Shard, UnixMicros, UnixMs};

use crate::bug::Bug;
use crate::notices::Notices;
use crate::queue::Queue;
use crate::zset::Zset;

/// What a queue takes beside its jobs, about.
pub(crate) const QUEUE_BYTES: usize = 2 << 10;

/// How long pump leases are, where nobody says so. One that ends later was given before the clock was set back.
const USUAL_LEASE_MS: u64 = 30_000;
/// The latest time that scripts read of a score.
const LATEST: UnixMs = UnixMs(9_999_999_999_999);

/// The keys of one shard, and its queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardKeys {
    /// When the next thing happens in each queue.
    pub(crate) agenda: Zset<QueueName>,
    /// The names of the queues that were born.
    pub(crate) names: BTreeSet<QueueName>,
    /// Who tends the shard, until when. It may be over.
    pub(crate) lease: Option<(Identity, UnixMs)>,
    pub(crate) queues: BTreeMap<QueueName, Queue>,
}

/// What a peek asks for.
pub(crate) struct Peek<'a> {
    pub(crate) engine: Identity,
    pub(crate) entries: u16,
    pub(crate) lease_ms: u64,
    pub(crate) stay: bool,
    pub(crate) queues: &'a [QueueName],
    pub(crate) bug: Option<Bug>,
}

impl ShardKeys {
    /// What the queue takes, about.
    pub(crate) fn bytes(&self, queue: &QueueName) -> usize {
        self.queues.get(queue).map_or(0, |queue| QUEUE_BYTES + queue.pool.bytes())
    }

    /// See `peek.lua`.
    pub(crate) fn peek(
        &mut self,
        time: UnixMicros,
        shard: Shard,
        peek: &Peek<'_>,
        notices: &mut Notices,
    ) -> Reply {
        let now = time.floor_ms();
        let entries = self.agenda.iter().take(usize::from(peek.entries));
        let agenda = entries.map(|(name, at)| (name.clone(), at.min(LATEST))).collect();
        let first_due = |name: &QueueName| self.queues.get(name)?.due.first_score();
        let firsts = peek.queues.iter().map(first_due).collect();
        let wanted = peek.stay || self.agenda.first_score().is_some_and(|at| at <= now);
        let looks = wanted || peek.lease_ms == 0;
        let longest = now + peek.lease_ms.max(USUAL_LEASE_MS);
        let unbounded = peek.lease_ms == 0 || peek.bug == Some(Bug::PumpLeaseUnbounded);
        let lasts = |ends: UnixMs| ends > now && (unbounded || ends <= longest);
        let holder = self.lease.filter(|(_, ends)| looks && lasts(*ends));
        let held = holder.filter(|(engine, _)| *engine == peek.engine);
        let holder = if peek.lease_ms == 0 {
            if held.is_some() {
                self.lease = None;
                notices.head(shard, UnixMs(0));
            }
            holder.filter(|(engine, _)| *engine != peek.engine)
        } else {
            let half_over = held.is_some_and(|(_, ends)| ends.since(now) <= peek.lease_ms / 2);
            if wanted && (holder.is_none() || half_over) {
                self.lease = Some((peek.engine, now + peek.lease_ms));
                self.lease
            } else {
                holder
            }
        };
        Reply::Peeked { time, holder, agenda, firsts }
    }

    /// A queue that holds nothing has no keys.
    pub(crate) fn forget_if_empty(&mut self, name: &QueueName) {
        if self.queues.get(name).is_some_and(Queue::is_empty) {
            self.queues.remove(name);
        }
    }

    /// A page of the names in order; the cursor is how many came before.
    pub(crate) fn named(&self, cursor: u64, count: u16) -> Reply {
        let (skip, count) = (usize::try_from(cursor).unwrap_or(usize::MAX), usize::from(count.max(1)));
        let queues: Vec<QueueName> = self.names.iter().skip(skip).take(count).cloned().collect();
        let reached = skip.saturating_add(queues.len());
        let cursor = if reached < self.names.len() { reached as u64 } else { 0 };
        Reply::Named { cursor, queues }
    }
}
