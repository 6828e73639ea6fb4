use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::base::{Base, BatchId, Timer};
use crate::{Key, QueueName, Token, UnixMs};

/// A queue that somebody here wants jobs of.
#[allow(clippy::struct_excessive_bools)] // none of them follows from another
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) subscription: Option<(u16, u16)>,
    pub(super) running: u16,
    pub(super) promised: u16,
    /// Who has the lowest pass is served first, and jobs raise it by weight: start-time fair queueing (Goyal, 1996).
    pub(super) pass: u64,
    pub(super) flying: Option<(BatchId, Promise)>,
    /// It may have due jobs.
    pub(super) hungry: bool,
    /// The last reserve brought all it asked for, or left due jobs behind.
    pub(super) more: bool,
    /// When anything happens there next, as far as the last reserve knew.
    pub(super) next: Option<UnixMs>,
    /// The engine may be on the queue's waiting list.
    pub(super) registered: bool,
    pub(super) closed: bool,
    pub(super) takes_next: bool,
    pub(super) poll: Option<Key>,
}

/// Whom a reserve under way is for.
#[derive(Serialize, Deserialize)]
pub(super) enum Promise {
    Slots(u16),
    Takes(Vec<(Token, u16)>),
    Leave,
}

impl Asked {
    /// Its share of free slots, beside those of others.
    pub(super) fn weight(&self) -> u16 {
        self.subscription.map_or(0, |(weight, _)| weight)
    }

    /// How many of its jobs may come beside those that are here, or promised.
    pub(super) fn room(&self) -> u16 {
        let Some((_, max)) = self.subscription else { return 0 };
        max.saturating_sub(self.running).saturating_sub(self.promised)
    }

    pub(super) fn poll_after(&mut self, base: &mut Base, queue: &QueueName, ms: u64) {
        base.cancel(self.poll.take());
        self.poll = Some(base.after(ms, Timer::Poll(queue.clone())));
    }
}

impl Promise {
    /// How many jobs it may bring.
    pub(super) fn count(&self) -> usize {
        match self {
            Promise::Slots(count) => usize::from(*count),
            Promise::Takes(tokens) => tokens.iter().map(|(_, count)| usize::from(*count)).sum(),
            Promise::Leave => 0,
        }
    }
}
