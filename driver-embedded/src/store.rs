use bytes::Bytes;
use delayline_core::{
    Command, DeadLetters, Identity, JobId, QueueName, Refusal, Reply, Shard, Shards, UnixMicros,
};

use crate::bug::Bug;
use crate::changes::Changes;
use crate::destination::Destinations;
use crate::notices::{Notice, Notices};
use crate::pool;
use crate::queue::Queue;
use crate::script::Script;
use crate::shard::{Peek, QUEUE_BYTES, ShardKeys};

/// The version of the layout that [`Command::Open`] fixes.
const LAYOUT: u32 = 1;

/// All that one deployment keeps in Redis, in memory.
///
/// One owner, one command at a time: it never blocks, reads no clock and draws nothing at random, so equal commands at
/// equal times leave equal stores. A clone is a snapshot, notices on their way included.
#[derive(Clone, Debug)]
pub struct Store {
    shards: Shards,
    /// The layout and number of shards, and since when, once a command opened the deployment.
    pub(crate) opened: Option<(u32, Shards, UnixMicros)>,
    pub(crate) parts: Vec<ShardKeys>,
    pub(crate) destinations: Destinations,
    notices: Notices,
    pace: Pace,
    max_bytes: usize,
    /// What the queues take, about.
    bytes: usize,
    bug: Option<Bug>,
}

/// What follows from how often engines look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// A new head of the agenda is announced if it is less than half a pump lease ahead: its holder looks by then anyway.
    pub(crate) near_ms: u64,
    /// An engine that has not polled for so long waits no more.
    pub(crate) waiting_ms: u64,
}

impl Pace {
    fn of(pump_lease_ms: u64, poll_ms: u64) -> Pace {
        Pace { near_ms: pump_lease_ms / 2, waiting_ms: poll_ms.saturating_mul(20) }
    }
}

impl Store {
    /// An empty store over so many shards.
    pub fn new(shards: Shards) -> Store {
        Store {
            shards,
            opened: None,
            parts: shards.iter().map(|_| ShardKeys::default()).collect(),
            destinations: Destinations::new(),
            notices: Notices::default(),
            pace: Pace::of(30_000, 30_000),
            max_bytes: usize::MAX,
            bytes: 0,
            bug: None,
        }
    }

    /// The same store, for engines that look at it at another pace than every 30 s: whose pump leases last so long, and
    /// that poll so often.
    #[must_use]
    pub fn for_pace(self, pump_lease_ms: u64, poll_ms: u64) -> Store {
        Store { pace: Pace::of(pump_lease_ms, poll_ms), ..self }
    }

    /// The same store, which holds about so many bytes: beyond them it refuses what makes it grow, as Redis does that is at
    /// its `maxmemory`.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: usize) -> Store {
        Store { max_bytes, ..self }
    }

    /// Carries the command out at this time, the whole of it before it returns.
    ///
    /// The time is what Redis's `TIME` would be: it may stand still or go back, with what that does to Redis. A command
    /// without jobs or for a shard that is not there is [`Reply::Broken`] and changes nothing; no other is. None is refused
    /// unless the store is full.
    pub fn execute(&mut self, time: UnixMicros, command: &Command) -> Reply {
        if names_no_job(command) {
            return Reply::Broken("ERR wrong number of arguments: the command names no job".to_owned());
        }
        let shard = command.shard(self.shards);
        let Some(part) = self.parts.get_mut(usize::from(shard.0)) else {
            return Reply::Broken(format!("there is no shard {shard}"));
        };
        match command {
            Command::Open { shards } => {
                let (layout, shards, born) = self.opened.unwrap_or((LAYOUT, *shards, time));
                if self.bug != Some(Bug::ConfigNotFixed) {
                    self.opened = Some((layout, shards, born));
                }
                Reply::Opened { time, layout, shards, born }
            }
            Command::Server => Reply::Server { version: (7, 0, 0), policy: Some("noeviction".to_owned()) },
            Command::Peek { engine, entries, lease_ms, stay, queues, .. } => {
                let (engine, entries, lease_ms, stay) = (*engine, *entries, *lease_ms, *stay);
                let peek = Peek { engine, entries, lease_ms, stay, queues, bug: self.bug };
                part.peek(time, shard, &peek, &mut self.notices)
            }
            Command::Queues { cursor, count, .. } => part.named(*cursor, *count),
            _ => self.run(time, shard, command),
        }
    }

    /// The engine hears from now on which queues have work for it, in whatever shard.
    ///
    /// An engine that is not subscribed counts as one whose connection is gone: a wake meant for it goes to the next.
    pub fn subscribe(&mut self, engine: Identity) {
        self.notices.subscribe(engine);
    }

    /// The engine hears from now on when the first thing to happen in the shard becomes an earlier one.
    pub fn subscribe_head(&mut self, shard: Shard, engine: Identity) {
        self.notices.subscribe_head(shard, engine);
    }

    /// Ends [`Store::subscribe_head`].
    pub fn unsubscribe_head(&mut self, shard: Shard, engine: Identity) {
        self.notices.unsubscribe_head(shard, engine);
    }

    /// The engine hears nothing any more, neither wakes nor heads; what is on its way still arrives.
    pub fn unsubscribe(&mut self, engine: Identity) {
        self.notices.unsubscribe(engine);
    }

    /// The next message that commands published, in their order. Ask after each command until there is none: what is
    /// not fetched is kept.
    #[must_use]
    pub fn poll_wakeup(&mut self) -> Option<Notice> {
        self.notices.poll()
    }

    /// How many sessions the queue remembers.
    #[doc(hidden)]
    #[must_use]
    pub fn sessions(&self, queue: &QueueName) -> usize {
        let part = self.parts.get(usize::from(self.shards.of(queue).0));
        part.and_then(|part| part.queues.get(queue)).map_or(0, |queue| queue.meta.lanes.len())
    }

    /// Breaks the store: it makes this mistake from now on, and no other.
    #[doc(hidden)]
    pub fn plant(&mut self, bug: Option<Bug>) {
        self.bug = bug;
    }

    /// Damages the store: the id's record is this, and nothing else of it changes.
    #[doc(hidden)]
    pub fn put_record(&mut self, queue: &QueueName, id: JobId, record: Bytes) {
        if let Some(keys) = self.queue_mut(queue) {
            keys.pool.insert(id, record);
        }
    }

    /// Damages the store: the id has no record any more, and nothing else of it changes.
    #[doc(hidden)]
    pub fn drop_record(&mut self, queue: &QueueName, id: &JobId) {
        if let Some(keys) = self.queue_mut(queue) {
            keys.pool.remove(id);
        }
    }

    fn queue_mut(&mut self, queue: &QueueName) -> Option<&mut Queue> {
        Some(self.part_mut(queue)?.queues.entry(queue.clone()).or_default())
    }

    pub(crate) fn part_mut(&mut self, queue: &QueueName) -> Option<&mut ShardKeys> {
        self.parts.get_mut(usize::from(self.shards.of(queue).0))
    }

    fn run(&mut self, time: UnixMicros, shard: Shard, command: &Command) -> Reply {
        let (Some(name), Some(part)) = (command.queue(), self.parts.get_mut(usize::from(shard.0))) else {
            return Reply::Broken("the command is about no queue".to_owned());
        };
        let before = part.bytes(name);
        if self.bytes.saturating_add(growth(command)) > self.max_bytes {
            return Reply::Refused(Refusal::OutOfMemory);
        }
        let script = Script {
            time,
            now: time.floor_ms(),
            shard,
            name,
            queue: part.queues.entry(name.clone()).or_default(),
            agenda: &mut part.agenda,
            names: &mut part.names,
            destinations: &mut self.destinations,
            notices: &mut self.notices,
            pace: self.pace,
            bug: self.bug,
            changes: Changes::default(),
            soon: None,
            head: None,
            woken: false,
            newborn: false,
        };
        let reply = script.run(command);
        part.forget_if_empty(name);
        self.bytes = self.bytes.saturating_add(part.bytes(name)).saturating_sub(before);
        reply
    }
}

impl Default for Store {
    /// An empty store of one shard.
    fn default() -> Store {
        Store::new(Shards::default())
    }
}

/// How much a command makes the store grow that is refused where there is no room for it: those whose script grows first.
fn growth(command: &Command) -> usize {
    match command {
        Command::Publish { jobs, .. } => jobs.iter().map(|job| pool::size(&job.id, &job.record)).sum(),
        Command::Configure { .. } => QUEUE_BYTES,
        _ => 0,
    }
}

fn names_no_job(command: &Command) -> bool {
    match command {
        Command::Publish { jobs, .. } => jobs.is_empty(),
        Command::Settle { leases, .. } => leases.is_empty(),
        Command::Extend { leases, .. } => leases.is_empty(),
        Command::Reschedule { jobs, .. } => jobs.is_empty(),
        Command::Cancel { ids, .. }
        | Command::Requeue { dead: DeadLetters { ids: Some(ids), .. }, .. }
        | Command::Purge { dead: DeadLetters { ids: Some(ids), .. }, .. } => ids.is_empty(),
        _ => false,
    }
}
