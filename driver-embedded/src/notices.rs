use std::collections::{BTreeSet, VecDeque};

use delayline_core::{Identity, QueueName, Shard, UnixMs, Wakeup};

/// A published message on its way to one subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whose subscription it came in by.
    pub to: Identity,
    /// [`Wakeup::Ready`] or [`Wakeup::Head`].
    pub wakeup: Wakeup,
}

/// Who listens, and what was published but not yet fetched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices {
    engines: BTreeSet<Identity>,
    heads: BTreeSet<(Shard, Identity)>,
    pending: VecDeque<Notice>,
}

impl Notices {
    pub(crate) fn subscribe(&mut self, engine: Identity) {
        self.engines.insert(engine);
    }

    pub(crate) fn subscribe_head(&mut self, shard: Shard, engine: Identity) {
        self.heads.insert((shard, engine));
    }

    pub(crate) fn unsubscribe_head(&mut self, shard: Shard, engine: Identity) {
        self.heads.remove(&(shard, engine));
    }

    pub(crate) fn unsubscribe(&mut self, engine: Identity) {
        self.engines.remove(&engine);
        self.heads.retain(|(_, hearer)| *hearer != engine);
    }

    pub(crate) fn poll(&mut self) -> Option<Notice> {
        self.pending.pop_front()
    }

    /// Publishes to the engine's own channel: whether it listens.
    pub(crate) fn ready(&mut self, engine: Identity, queue: &QueueName) -> bool {
        let heard = self.engines.contains(&engine);
        if heard {
            self.pending.push_back(Notice { to: engine, wakeup: Wakeup::Ready(queue.clone()) });
        }
        heard
    }

    /// Publishes to all that listen to the shard's head.
    pub(crate) fn head(&mut self, shard: Shard, at: UnixMs) {
        let listening = self.heads.range((shard, Identity(0))..=(shard, Identity(u64::MAX)));
        let notices = listening.map(|(_, to)| Notice { to: *to, wakeup: Wakeup::Head(shard, at) });
        self.pending.extend(notices);
    }
}
