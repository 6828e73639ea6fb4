//! The stores that plans run on.

use std::collections::BTreeSet;

use delayline_core::{Command, Identity, Keyspace, QueueName, Reply, UnixMicros, Wakeup};
use delayline_embedded::{Bug, Damage, Notice};

use crate::{Contents, Dump, RedisStore};

/// A Redis, as far as the simulator is concerned.
pub(super) trait Store {
    /// Carries a command out at this time.
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply;
    /// An engine hears from now on.
    fn subscribe(&mut self, engine: Identity);
    /// An engine hears no more.
    fn unsubscribe(&mut self, engine: Identity);
    /// What was published since it was asked last.
    fn heard(&mut self) -> Vec<Notice>;
    /// Somebody else writes.
    fn damage(&mut self, queue: &QueueName, damage: &Damage);
    /// How many sessions the queue remembers, if that costs nothing to say.
    fn sessions(&self, queue: &QueueName) -> Option<usize>;
    /// All keys; whether what queues count and remember is among them is the store's choice.
    fn dump(&mut self) -> Dump;
    /// Forgets all it holds, and who hears.
    fn clear(&mut self);
}

/// The store in memory.
pub(super) struct Memory {
    keys: Keyspace,
    store: delayline_embedded::Store,
    bug: Option<Bug>,
}

impl Memory {
    pub(super) fn new(keys: &Keyspace, bug: Option<Bug>) -> Memory {
        let mut store = delayline_embedded::Store::new(keys.shards());
        store.plant(bug);
        Memory { keys: keys.clone(), store, bug }
    }
}

impl Store for Memory {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply {
        self.store.execute(now, command)
    }

    fn subscribe(&mut self, engine: Identity) {
        self.store.subscribe(engine);
        for shard in self.keys.shards().iter() {
            self.store.subscribe_head(shard, engine);
        }
    }

    fn unsubscribe(&mut self, engine: Identity) {
        self.store.unsubscribe(engine);
    }

    fn heard(&mut self) -> Vec<Notice> {
        std::iter::from_fn(|| self.store.poll_wakeup()).collect()
    }

    fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        self.store.damage(queue, damage);
    }

    fn sessions(&self, queue: &QueueName) -> Option<usize> {
        Some(self.store.sessions(queue))
    }

    fn dump(&mut self) -> Dump {
        self.store.dump_of_jobs(&self.keys).into_iter().map(|(key, dumped)| (key, dumped.into())).collect()
    }

    fn clear(&mut self) {
        *self = Memory::new(&self.keys, self.bug);
    }
}

/// A real server, whose clock is held by each command.
pub(super) struct Server {
    store: RedisStore,
    hearing: BTreeSet<Identity>,
}

impl Server {
    pub(super) fn new(mut store: RedisStore) -> Server {
        store.clear();
        Server { store, hearing: BTreeSet::new() }
    }
}

impl Store for Server {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply {
        self.store.execute(Some(now), command)
    }

    fn subscribe(&mut self, engine: Identity) {
        self.store.subscribe(engine);
        self.hearing.insert(engine);
    }

    fn unsubscribe(&mut self, engine: Identity) {
        self.store.unsubscribe(engine);
        self.hearing.remove(&engine);
    }

    fn heard(&mut self) -> Vec<Notice> {
        let keys = self.store.keys().clone();
        let mut notices = Vec::new();
        for (channel, text) in self.store.heard() {
            for shard in keys.shards().iter() {
                let wakes =
                    self.hearing.iter().filter(|engine| keys.wake_channel(shard, **engine) == channel);
                let ready = text.parse().map(Wakeup::Ready);
                notices.extend(wakes.filter_map(|to| Some(Notice { to: *to, wakeup: ready.clone().ok()? })));
                if keys.head_channel(shard) == channel {
                    let at = delayline_core::UnixMs(text.parse().unwrap_or(0));
                    let wakeup = Wakeup::Head(shard, at);
                    notices.extend(self.hearing.iter().map(|to| Notice { to: *to, wakeup: wakeup.clone() }));
                }
            }
        }
        notices
    }

    fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        self.store.damage(queue, damage);
    }

    /// What scripts read is counted there, by [`RedisStore::plant`].
    fn sessions(&self, _: &QueueName) -> Option<usize> {
        None
    }

    fn dump(&mut self) -> Dump {
        let mut dump = self.store.dump();
        dump.retain(|key, contents| !is_set_aside(key, contents));
        dump
    }

    fn clear(&mut self) {
        for engine in std::mem::take(&mut self.hearing) {
            self.store.unsubscribe(engine);
        }
        self.store.clear();
    }
}

/// Whether somebody wrote a string over the key, which no script has set aside yet, or one has.
fn is_set_aside(key: &str, contents: &Contents) -> bool {
    let foreign = matches!(contents, Contents::Text(_)) && !key.ends_with(":lease");
    key.contains("}:broken:") || foreign
}
