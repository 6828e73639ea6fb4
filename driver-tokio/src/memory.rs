use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use delayline_core::{Command, Identity, Reply, Shards, Ticket, Transmit, UnixMicros, Wakeup};
use delayline_embedded::Store;

use crate::held::{self, HeldTime};
use crate::inbox::Bell;
use crate::link::{Landed, Link, lock};

/// The stores of this process that have a name.
static NAMED: Mutex<BTreeMap<String, Weak<Memory>>> = Mutex::new(BTreeMap::new());

/// One store, and the engines that listen to it.
pub(crate) struct Memory {
    inside: Mutex<Inside>,
    held: Option<Arc<HeldTime>>,
}

struct Inside {
    store: Store,
    /// The store's clock never goes back.
    time: UnixMicros,
    bells: BTreeMap<Identity, Bell>,
}

impl Memory {
    /// A new store, or the one of this name; its number of shards and how much it holds are fixed when it is made.
    pub(crate) fn open(name: Option<&str>, shards: Shards, max_bytes: usize) -> Arc<Memory> {
        let new = || Arc::new(Memory::holding(Store::new(shards).with_max_bytes(max_bytes), None));
        let Some(name) = name else { return new() };
        let mut named = lock(&NAMED);
        named.retain(|_, memory| memory.strong_count() > 0);
        if let Some(memory) = named.get(name).and_then(Weak::upgrade) {
            return memory;
        }
        let memory = new();
        named.insert(name.to_owned(), Arc::downgrade(&memory));
        memory
    }

    /// A store on a time that a test holds.
    pub(crate) fn on(held: Arc<HeldTime>) -> Memory {
        let store = Store::new(Shards::default()).for_pace(held::PUMP_LEASE_MS, held::POLL_MS);
        Memory::holding(store, Some(held))
    }

    fn holding(store: Store, held: Option<Arc<HeldTime>>) -> Memory {
        let inside = Inside { store, time: UnixMicros(0), bells: BTreeMap::new() };
        Memory { inside: Mutex::new(inside), held }
    }

    pub(crate) fn held(&self) -> Option<Arc<HeldTime>> {
        self.held.clone()
    }

    pub(crate) fn execute(&self, commands: &[Command]) -> Vec<Reply> {
        let mut inside = lock(&self.inside);
        let Inside { store, time, bells } = &mut *inside;
        let now =
            self.held.as_ref().map_or_else(wall_clock, |held| UnixMicros(held.now().0.saturating_mul(1_000)));
        *time = (*time).max(now);
        let replies = commands.iter().map(|command| store.execute(*time, command)).collect();
        while let Some(notice) = store.poll_wakeup() {
            if let Some(bell) = bells.get(&notice.to) {
                bell.ring(notice.wakeup);
            }
        }
        replies
    }

    fn subscribe(&self, identity: Identity, shards: Option<Shards>, bell: Bell) {
        let mut inside = lock(&self.inside);
        inside.store.subscribe(identity);
        for shard in shards.into_iter().flat_map(Shards::iter) {
            inside.store.subscribe_head(shard, identity);
        }
        bell.ring(Wakeup::Subscribed);
        inside.bells.insert(identity, bell);
    }

    fn unsubscribe(&self, identity: Identity) {
        let mut inside = lock(&self.inside);
        inside.store.unsubscribe(identity);
        inside.bells.remove(&identity);
    }
}

fn wall_clock() -> UnixMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Carries commands to a store of this process: each is answered before it is sent on.
pub(crate) struct MemoryLink {
    memory: Arc<Memory>,
    identity: Identity,
    heads: Option<Shards>,
    bell: Option<Bell>,
}

impl MemoryLink {
    pub(crate) fn new(
        memory: Arc<Memory>,
        identity: Identity,
        heads: Option<Shards>,
        bell: Bell,
    ) -> MemoryLink {
        MemoryLink { memory, identity, heads, bell: Some(bell) }
    }
}

impl Link for MemoryLink {
    fn send(&mut self, transmit: Transmit<'_>) -> impl Future<Output = (Ticket, Landed)> + Send + use<> {
        let replies = self.memory.execute(transmit.commands);
        std::future::ready((transmit.ticket, Landed::Replies(replies)))
    }

    fn listen(&mut self) {
        if let Some(bell) = self.bell.take() {
            self.memory.subscribe(self.identity, self.heads, bell);
        }
    }

    async fn hush(&mut self) {
        self.memory.unsubscribe(self.identity);
    }

    async fn warm_up(&mut self) {}
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        self.memory.unsubscribe(self.identity);
    }
}
