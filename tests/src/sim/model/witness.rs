use std::collections::{BTreeMap, BTreeSet};

use delayline_core::{Fence, Job, QueueName, UnixMicros, UnixMs};

use super::{Checked, Instance, Key, ensure, key_of};
use crate::sim::names;

/// What applications asked and were told. No failover takes it back.
#[derive(Default)]
pub(in crate::sim) struct Witness {
    /// Each grant, and when its lease ends.
    grants: BTreeMap<(Key, Fence), UnixMs>,
    fences: BTreeMap<usize, BTreeSet<Fence>>,
    ran: BTreeSet<(Key, Fence)>,
    cancels: BTreeMap<Key, u32>,
    moves: BTreeMap<Key, u32>,
    /// Names that somebody asked to replace: a publish may find another there.
    contested: BTreeSet<Key>,
    /// Publishes that a failover lost, though they may have been acknowledged.
    lost: BTreeSet<Instance>,
    /// Whether a failover took the store back.
    pub(in crate::sim) rolled_back: bool,
    /// Whether Redis's clock was set back. Fences are then counted on from the last one, and a failover that forgets it
    /// lets them come again.
    pub(in crate::sim) set_back: bool,
    /// Whether clocks went evenly: then a run starts within its lease.
    steady: bool,
}

impl Witness {
    pub(in crate::sim) fn new(steady: bool) -> Witness {
        Witness { steady, ..Witness::default() }
    }

    /// One who knows what was asked, and has seen nothing yet.
    pub(in crate::sim) fn for_replay(&self) -> Witness {
        Witness { cancels: self.cancels.clone(), moves: self.moves.clone(), ..Witness::default() }
    }

    pub(in crate::sim) fn asks_to_cancel(&mut self, key: Key) {
        *self.cancels.entry(key).or_default() += 1;
    }

    pub(in crate::sim) fn asks_to_move(&mut self, key: Key) {
        *self.moves.entry(key).or_default() += 1;
    }

    pub(in crate::sim) fn asks_to_replace(&mut self, key: Key) {
        self.contested.insert(key);
    }

    pub(super) fn cancels(&self, key: Key) -> u32 {
        self.cancels.get(&key).copied().unwrap_or(0)
    }

    pub(super) fn moves(&self, key: Key) -> u32 {
        self.moves.get(&key).copied().unwrap_or(0)
    }

    /// Whether a publish may rightly find its name in use.
    pub(in crate::sim) fn is_contested(&self, key: Key) -> bool {
        self.rolled_back || self.contested.contains(&key)
    }

    /// A failover lost these publishes.
    pub(in crate::sim) fn loses(&mut self, instances: impl IntoIterator<Item = Instance>) {
        self.rolled_back = true;
        self.lost.extend(instances);
    }

    pub(in crate::sim) fn is_lost(&self, instance: &Instance) -> bool {
        self.lost.contains(instance)
    }

    /// A batch of grants got this fence.
    pub(super) fn fence(&mut self, queue: &QueueName, fence: Fence) -> Checked {
        let fences = self.fences.entry(names::index(queue).unwrap_or(usize::MAX)).or_default();
        let new = fences.insert(fence) || (self.rolled_back && self.set_back);
        ensure!(new, "a fence is of one batch", "{fence} of {queue}");
        Ok(())
    }

    /// A job was granted, or its lease renewed.
    pub(super) fn grant(&mut self, key: Key, fence: Fence, until: UnixMs) {
        self.grants.insert((key, fence), until);
    }

    /// Whether the lease of this grant has ended by now.
    pub(in crate::sim) fn is_over(&self, key: Key, fence: Fence, now: UnixMicros) -> bool {
        self.grants.get(&(key, fence)).is_some_and(|until| *until <= now.floor_ms())
    }

    /// A job was handed to somebody.
    pub(in crate::sim) fn runs(&mut self, now: UnixMicros, job: &Job) -> Checked {
        let lease = &job.lease;
        let key = key_of(&lease.queue, &lease.id)?;
        let until = self.grants.get(&(key, lease.fence));
        let Some(until) = until.copied() else {
            ensure!(false, "every run has a grant", "{} under {}", lease.id, lease.fence);
            return Ok(());
        };
        let first = self.ran.insert((key, lease.fence)) || (self.rolled_back && self.set_back);
        ensure!(first, "a grant runs once", "{} under {}", lease.id, lease.fence);
        let within = !self.steady || now.floor_ms() <= until;
        ensure!(within, "a run starts within its lease", "{} at {now}, lease until {until}", lease.id);
        Ok(())
    }
}
