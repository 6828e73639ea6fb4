use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Fence, Held, JobId, Key, Millis, QueueName};

/// The managed jobs in hand: a slab, so that a stale [`Held`] names nothing.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct HeldJobs {
    slots: Vec<Slot>,
    free: Vec<u32>,
    len: usize,
}

#[derive(Serialize, Deserialize)]
pub(super) struct HeldJob {
    pub(super) queue: QueueName,
    pub(super) id: JobId,
    pub(super) fence: Fence,
    pub(super) retry_ms: u64,
    pub(super) lease_end: Millis,
    pub(super) renew: Option<Key>,
    pub(super) end: Option<Key>,
}

#[derive(Serialize, Deserialize)]
struct Slot {
    generation: u32,
    job: Option<HeldJob>,
}

impl HeldJobs {
    pub(super) fn insert(&mut self, job: HeldJob) -> Held {
        self.len += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, job: None });
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[index as usize];
        slot.job = Some(job);
        Held(u64::from(slot.generation) << 32 | u64::from(index))
    }

    pub(super) fn get_mut(&mut self, held: Held) -> Option<&mut HeldJob> {
        let (index, generation) = parts(held);
        self.slots.get_mut(index).filter(|slot| slot.generation == generation)?.job.as_mut()
    }

    pub(super) fn remove(&mut self, held: Held) -> Option<HeldJob> {
        let (index, generation) = parts(held);
        let slot = self.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        let job = slot.job.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(u32::try_from(index).unwrap_or(u32::MAX));
        self.len -= 1;
        Some(job)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Held, &mut HeldJob)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| {
            let held = Held(u64::from(slot.generation) << 32 | index as u64);
            Some((held, slot.job.as_mut()?))
        })
    }
}

fn parts(held: Held) -> (usize, u32) {
    ((held.0 & 0xffff_ffff) as usize, (held.0 >> 32) as u32)
}
