use serde::{Deserialize, Serialize};

use super::window::Window;
use crate::{Millis, QueueName};

const WINDOW_MS: u64 = 100;
/// In this time all hungry queues have had their turn, if jobs go on ending as fast as they do.
const ROUND_MS: u64 = 2_000;

/// The hungry queues that are not asked, by whose turn it is: who has the lowest pass, and of those who is first by name.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Turns {
    order: Window<(u64, QueueName), u16>,
    weights: u32,
    since: Millis,
    ended: u32,
    ended_before: u32,
}

impl Turns {
    pub(super) fn insert(&mut self, pass: u64, queue: QueueName, weight: u16) {
        self.order.insert((pass, queue), weight);
        self.weights += u32::from(weight);
    }

    pub(super) fn remove(&mut self, pass: u64, queue: &QueueName) {
        let weight = self.order.remove(&(pass, queue.clone()));
        self.weights -= u32::from(weight.unwrap_or(0));
    }

    /// Whose turn comes after so many others.
    pub(super) fn get(&self, place: usize) -> Option<&QueueName> {
        self.order.at(place).map(|((_, queue), _)| queue)
    }

    /// What the weights add up to.
    pub(super) fn weights(&self) -> u32 {
        self.weights
    }

    /// A slot became free.
    pub(super) fn count(&mut self, now: Millis) {
        let passed = now.since(self.since);
        if passed >= WINDOW_MS {
            self.ended_before = if passed < 2 * WINDOW_MS { self.ended } else { 0 };
            (self.since, self.ended) = (now, 0);
        }
        self.ended += 1;
    }

    /// How many jobs a queue's turn brings: its share of the free slots. Where that is few, as many as let all others have
    /// their turn within a round, but no more than half of the slots: the others are asked while these run.
    pub(super) fn quantum(&self, now: Millis, weight: u16, weights: u32, (free, slots): (u16, u16)) -> u16 {
        let (weight, weights) = (u32::from(weight), weights.max(1));
        let share = u32::from(free) * weight / weights;
        let is_fresh = now.since(self.since) < 2 * WINDOW_MS;
        let ended = if is_fresh { self.ended.max(self.ended_before) } else { 0 };
        let of_a_round = u64::from(ended) * (ROUND_MS / WINDOW_MS) * u64::from(weight) / u64::from(weights);
        let most = u64::from(slots.div_ceil(2));
        let quantum = u64::from(share).max(of_a_round.min(most)).max(1);
        u16::try_from(quantum).unwrap_or(u16::MAX)
    }
}
