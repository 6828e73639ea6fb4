//! The stores that are held against each other.

use delayline_core::{
    Command, Identity, JobId, Keyspace, Prefix, QueueName, Reply, Shards, UnixMicros, Wakeup,
};
use delayline_embedded::{Bug, Damage, Store};
use delayline_tests::{Dump, RedisServer, RedisStore};

use crate::world::{ENGINES, World};

/// A store that a sequence runs on.
pub(crate) trait Twin {
    /// Carries out a command at this time.
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply;
    /// Loses a job's record.
    fn lose(&mut self, queue: &QueueName, id: &JobId);
    /// Has a value of its written over.
    fn damage(&mut self, queue: &QueueName, damage: &Damage);
    /// The messages since it was asked last: channels and texts.
    fn heard(&mut self) -> Vec<(String, String)>;
    /// All keys.
    fn dump(&mut self) -> Dump;
}

/// The engines that hear what they are told.
pub(crate) fn hearing() -> &'static [Identity] {
    &ENGINES[..2]
}

impl Twin for RedisStore {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply {
        self.execute(Some(now), command)
    }

    fn lose(&mut self, queue: &QueueName, id: &JobId) {
        let pool = self.keys().queue_keys(queue)[3].clone();
        // A pool of another type refuses it: it holds no record that could be lost.
        self.connection().call(&["HDEL", &pool, id.as_str()]).expect("a living connection");
    }

    fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        self.damage(queue, damage);
    }

    fn heard(&mut self) -> Vec<(String, String)> {
        self.heard()
    }

    fn dump(&mut self) -> Dump {
        self.dump()
    }
}

/// An empty store on a server.
pub(crate) fn on_server(server: &RedisServer, world: &World) -> RedisStore {
    let mut store = RedisStore::new(server, world.shards);
    store.clear();
    for &engine in hearing() {
        store.subscribe(engine);
    }
    store
}

/// The store in memory, with the names that its keys would have.
pub(crate) struct InMemory {
    store: Store,
    keys: Keyspace,
}

impl InMemory {
    /// An empty one.
    pub(crate) fn new(world: &World) -> InMemory {
        let keys = Keyspace::new(&Prefix::default(), world.shards);
        let mut store = Store::new(world.shards);
        listen(&mut store, world.shards);
        InMemory { store, keys }
    }

    /// An empty one that makes this mistake.
    pub(crate) fn planted(world: &World, bug: Bug) -> InMemory {
        let mut twin = InMemory::new(world);
        twin.store.plant(Some(bug));
        twin
    }
}

impl Twin for InMemory {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply {
        self.store.execute(now, command)
    }

    fn lose(&mut self, queue: &QueueName, id: &JobId) {
        self.store.drop_record(queue, id);
    }

    fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        self.store.damage(queue, damage);
    }

    fn heard(&mut self) -> Vec<(String, String)> {
        heard(&mut self.store, &self.keys)
    }

    fn dump(&mut self) -> Dump {
        dump(&self.store, &self.keys)
    }
}

/// Some engines hear what the store in memory tells them.
pub(crate) fn listen(store: &mut Store, shards: Shards) {
    for &engine in hearing() {
        store.subscribe(engine);
    }
    for shard in shards.iter() {
        store.subscribe_head(shard, hearing()[0]);
    }
}

/// What the store in memory has told since it was asked last: channels and texts.
pub(crate) fn heard(store: &mut Store, keys: &Keyspace) -> Vec<(String, String)> {
    let mut heard = Vec::new();
    while let Some(notice) = store.poll_wakeup() {
        heard.push(match notice.wakeup {
            Wakeup::Ready(queue) => {
                let shard = keys.shards().of(&queue);
                (keys.wake_channel(shard, notice.to), queue.to_string())
            }
            Wakeup::Head(shard, at) => (keys.head_channel(shard), at.to_string()),
            other => panic!("{other:?} was published"),
        });
    }
    heard
}

/// All keys of the store in memory, by the names that they would have on a server.
pub(crate) fn dump(store: &Store, keys: &Keyspace) -> Dump {
    store.dump(keys).into_iter().map(|(key, dumped)| (key, dumped.into())).collect()
}
