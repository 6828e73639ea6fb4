use bytes::Bytes;
use delayline_core::{JobId, QueueName, State, UnixMs};

use crate::meta::Meta;
use crate::queue::Queue;
use crate::shard::ShardKeys;
use crate::store::Store;
use crate::zset::Zset;

/// The latest time that a state can hold, and so the latest that scripts know.
const LATEST_MS: f64 = 9_999_999_999_999.0;

/// One value that somebody else wrote over what delayline keeps.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub enum Damage {
    /// The job's state is this text: `HSET state <id> <text>`.
    State { id: JobId, text: Bytes },
    /// A field of `meta` is this text: `HSET meta <field> <text>`. A session's text cannot be one that is well formed.
    Meta { field: String, text: Bytes },
    /// The queue has a gate, or none: `HSET meta gate <text>`, as newer scripts do, or `HDEL`.
    Gate { gate: Option<String> },
    /// The job has this score in a zset of jobs, be it that it was not there: `ZADD <key> <score> <id>`.
    Score { key: Key, id: JobId, score: f64 },
    /// The queue has this score on its shard's agenda: `ZADD agenda <score> q<queue>`.
    Agenda { score: f64 },
    /// The key is a string: `SET <key> <text>`.
    Foreign { key: Key, text: Bytes },
    /// The lease of the queue's shard is this text: `SET lease <text>`.
    Lease { text: Bytes },
    /// The queue's name is no longer in its shard's index: `HDEL queues <queue>`.
    Unnamed,
    /// The deployment's config is gone: `UNLINK config`.
    Unopened,
}

/// The keys that a script about a queue declares, in their order.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Agenda,
    Queues,
    Meta,
    Pool,
    Due,
    Leased,
    State,
    Dead,
    Exp,
    Waiting,
    Big,
}

impl Key {
    /// All there are, in the order of [`delayline_core::Keyspace::queue_keys`].
    pub const ALL: [Key; 11] = [
        Key::Agenda,
        Key::Queues,
        Key::Meta,
        Key::Pool,
        Key::Due,
        Key::Leased,
        Key::State,
        Key::Dead,
        Key::Exp,
        Key::Waiting,
        Key::Big,
    ];
}

impl Store {
    /// Damages the store, as whoever writes to Redis beside delayline would; nothing else of it changes.
    ///
    /// What scripts take for nothing is nothing here at once: a number that cannot be read, a key of another type. So a
    /// dump does not show it, where that of a server does until a script writes there.
    #[doc(hidden)]
    pub fn damage(&mut self, queue: &QueueName, damage: &Damage) {
        if *damage == Damage::Unopened {
            self.opened = None;
            return;
        }
        let Some(part) = self.part_mut(queue) else { return };
        match damage {
            Damage::State { id, text } => part.queue(queue).put_state(id, text),
            Damage::Meta { field, text } => part.queue(queue).put_field(field, text),
            Damage::Gate { gate } => part.queue(queue).meta.gate.clone_from(gate),
            Damage::Score { key, id, score } => part.queue(queue).put_score(*key, id, *score),
            Damage::Agenda { score } => part.agenda.insert(queue.clone(), time(*score)),
            Damage::Foreign { key, .. } => part.lose_key(queue, *key),
            Damage::Lease { text } => part.lease = lease(text),
            Damage::Unnamed => {
                part.names.remove(queue);
            }
            Damage::Unopened => {}
        }
        part.forget_if_empty(queue);
    }
}

impl ShardKeys {
    fn queue(&mut self, name: &QueueName) -> &mut Queue {
        self.queues.entry(name.clone()).or_default()
    }

    /// A key of another type is set aside by the next script that writes: it is empty, or made of what the others hold.
    fn lose_key(&mut self, name: &QueueName, key: Key) {
        match key {
            Key::Agenda => {
                self.agenda = Zset::default();
                for name in &self.names {
                    self.agenda.insert(name.clone(), UnixMs(0));
                }
            }
            Key::Queues => self.names.clear(),
            _ => self.queue(name).lose_key(key),
        }
    }
}

impl Queue {
    fn put_state(&mut self, id: &JobId, text: &Bytes) {
        self.state.remove(id);
        self.broken.remove(id);
        match State::parse(text) {
            Some(state) => {
                self.state.insert(id.clone(), state);
            }
            None => {
                self.broken.insert(id.clone(), text.clone());
            }
        }
    }

    fn put_field(&mut self, field: &str, text: &Bytes) {
        let (exp, big) = (self.exp.len() as u64, self.big.len() as u64);
        self.meta.put(field, text, exp, big);
    }

    fn put_score(&mut self, key: Key, id: &JobId, score: f64) {
        let (id, at) = (id.clone(), time(score));
        match key {
            Key::Due => self.due.insert(id, at),
            Key::Leased => self.leased.insert(id, at),
            Key::Dead => self.dead.insert(id, at),
            Key::Exp => self.exp.insert(id, at),
            Key::Big => self.big.insert(id, usize::try_from(at.0).unwrap_or(usize::MAX)),
            _ => {}
        }
    }

    fn lose_key(&mut self, key: Key) {
        match key {
            Key::Pool => self.pool.clear(),
            Key::Due => self.due = Zset::default(),
            Key::Leased => self.leased = Zset::default(),
            Key::State => {
                self.state.clear();
                self.broken.clear();
            }
            Key::Dead => self.dead = Zset::default(),
            Key::Exp => self.exp = Zset::default(),
            Key::Waiting => self.waiting = Zset::default(),
            Key::Big => self.big = Zset::default(),
            Key::Meta => {
                let jobs = self.due.len() + self.leased.len() + self.dead.len();
                self.meta = Meta::rebuilt(jobs as u64, self.exp.len() as u64, self.big.len() as u64);
            }
            Key::Agenda | Key::Queues => {}
        }
    }
}

/// A score as scripts read it: whole, and a time that a state can hold.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn time(score: f64) -> UnixMs {
    UnixMs(if score.is_nan() { LATEST_MS } else { score.ceil().clamp(0.0, LATEST_MS) } as u64)
}

fn lease(text: &Bytes) -> Option<(delayline_core::Identity, UnixMs)> {
    let (engine, until) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    Some((engine.parse().ok()?, UnixMs(crate::meta::whole(until)?)))
}
