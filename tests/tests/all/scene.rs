//! A small case on the store in memory, and what led to it.

use delayline_core::{
    Command, Due, Entry, Fence, Identity, JobId, Keyspace, Prefix, QueueConfig, QueueName, Reply, Session,
    Shards, UnixMicros,
};
use delayline_embedded::{Bug, Store};
use delayline_tests::Dump;

use crate::letter::{self, How, LATER_MS, LEASE_MS, Letter, TTL_MS, Which};
use crate::mirror::Done;
use crate::rig::{NO_LIMIT, START, id, job};
use crate::twin;
use crate::world::ENGINES;

/// A store, and all that was done since it was empty.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) letters: Vec<Letter>,
    pub(crate) done: Vec<Done>,
    pub(crate) heard: Vec<(String, String)>,
    store: Store,
    keys: Keyspace,
    queue: QueueName,
    now: UnixMicros,
    knows: Knows,
}

/// What the callers know beside what the store holds.
#[derive(Clone, Debug, Default)]
struct Knows {
    sequence: u64,
    engine_acted: bool,
    leases: Vec<(JobId, Fence)>,
    last: Option<Command>,
    born: Option<UnixMicros>,
}

impl Scene {
    /// A queue whose jobs have two attempts.
    pub(crate) fn new() -> Scene {
        Scene::on(Store::new(Shards::default()))
    }

    /// The same, where every repeat is taken for something new.
    pub(crate) fn with_a_bug() -> Scene {
        let mut store = Store::new(Shards::default());
        store.plant(Some(Bug::SessionIgnored));
        Scene::on(store)
    }

    fn on(mut store: Store) -> Scene {
        let keys = Keyspace::new(&Prefix::default(), Shards::default());
        twin::listen(&mut store, Shards::default());
        let (queue, now): (QueueName, _) = ("q".parse().expect("a name"), UnixMicros(START));
        let config = QueueConfig { attempts: Some(2), ..QueueConfig::default() };
        let configure = Command::Configure { queue: queue.clone(), cfgver: None, config };
        let (letters, done, heard) = (Vec::new(), Vec::new(), Vec::new());
        let mut scene = Scene { letters, done, heard, store, keys, queue, now, knows: Knows::default() };
        scene.run(configure);
        scene
    }

    /// What is there after this happens too; none if it cannot.
    pub(crate) fn step(&self, letter: Letter) -> Option<Scene> {
        if letter.engine() == Some(2) && !self.knows.engine_acted {
            return None;
        }
        let mut next = self.clone();
        next.letters.push(letter);
        next.knows.engine_acted |= letter.engine().is_some();
        next.act(letter)?;
        Some(next)
    }

    /// All keys.
    pub(crate) fn now(&self) -> delayline_core::UnixMs {
        self.now.floor_ms()
    }

    pub(crate) fn dump(&self) -> Dump {
        twin::dump(&self.store, &self.keys)
    }

    /// All that decides what can come of it.
    pub(crate) fn situation(&self) -> String {
        format!("{:?} {:?} {:?}", self.now, self.knows, self.store)
    }

    fn act(&mut self, letter: Letter) -> Option<()> {
        let queue = self.queue.clone();
        let command = match letter {
            Letter::Publish(names, how) => {
                let jobs = names.iter().map(|name| entry(name, how)).collect();
                Command::Publish { queue, session: self.session(1), ceiling: NO_LIMIT, jobs }
            }
            Letter::Reserve(engine, count) => {
                let (session, lease_ms, max_bytes) = (self.session(engine), LEASE_MS, 1 << 20);
                Command::Reserve { queue, session, count, lease_ms, max_bytes, wakeable: true }
            }
            Letter::Settle(which, end) => {
                let (id, fence) = self.lease(which)?;
                Command::Settle { queue, tidy: false, leases: vec![(id, fence, end.settlement())] }
            }
            Letter::Extend(which) => {
                Command::Extend { queue, lease_ms: LEASE_MS, leases: vec![self.lease(which)?] }
            }
            Letter::Cancel(name) => Command::Cancel { queue, session: self.session(1), ids: vec![id(name)] },
            Letter::Reschedule(name, due) => {
                Command::Reschedule { queue, session: self.session(1), jobs: vec![(id(name), due)] }
            }
            Letter::Tend => Command::Tend { queue, limit: 10, forward: None },
            Letter::Peek(engine) => Command::Peek {
                shard: Shards::default().of(&queue),
                engine: identity(engine),
                entries: 5,
                lease_ms: LEASE_MS,
                stay: true,
                queues: Vec::new(),
            },
            Letter::Pause(paused) => Command::Pause { queue, cfgver: None, paused },
            Letter::Requeue => Command::Requeue { queue, dead: letter::dead(self.now.floor_ms()) },
            Letter::Purge => Command::Purge { queue, dead: letter::dead(self.now.floor_ms()) },
            Letter::Destroy => Command::Destroy { queue, born: self.knows.born? },
            Letter::Repeat => self.knows.last.clone()?,
            Letter::Lose(name) => {
                self.store.drop_record(&queue, &id(name));
                self.done.push(Done::Lost(queue, id(name)));
                return Some(());
            }
            Letter::Pass(ms) => {
                self.now.0 += ms * 1000;
                return Some(());
            }
        };
        self.run(command);
        Some(())
    }

    fn run(&mut self, command: Command) {
        let reply = self.store.execute(self.now, &command);
        self.heard.extend(twin::heard(&mut self.store, &self.keys));
        self.learn(&command, &reply);
        self.done.push(Done::Ran(self.now, Box::new(command), reply));
    }

    fn learn(&mut self, command: &Command, reply: &Reply) {
        if let Reply::Granted { jobs, fence, .. } = reply {
            let granted = jobs.iter().map(|job| (job.id.clone(), *fence)).rev();
            for lease in granted {
                if !self.knows.leases.contains(&lease) {
                    self.knows.leases.push(lease);
                }
            }
            let old = self.knows.leases.len().saturating_sub(2);
            self.knows.leases.drain(..old);
        }
        if let Reply::Configured { time, .. } = reply {
            self.knows.born.get_or_insert(*time);
        }
        let has_session = matches!(
            command,
            Command::Publish { .. }
                | Command::Reserve { .. }
                | Command::Cancel { .. }
                | Command::Reschedule { .. }
        );
        if has_session {
            self.knows.last = Some(command.clone());
        }
    }

    fn session(&mut self, engine: u64) -> Session {
        self.knows.sequence += 1;
        Session { engine: identity(engine), lane: 0, sequence: self.knows.sequence }
    }

    fn lease(&self, which: Which) -> Option<(JobId, Fence)> {
        let back = match which {
            Which::Last => 1,
            Which::Before => 2,
        };
        self.knows.leases.iter().nth_back(back - 1).cloned()
    }
}

/// Both engines hear what they are told.
fn identity(engine: u64) -> Identity {
    ENGINES[usize::from(engine > 1)]
}

fn entry(name: &str, how: How) -> Entry {
    let due = match how {
        How::Now | How::Ttl => Due::After { ms: 0 },
        How::Later | How::Replace => Due::After { ms: LATER_MS },
    };
    let mut entry = job(name, due);
    entry.ttl_ms = if how == How::Ttl { TTL_MS } else { 0 };
    entry.replace = how == How::Replace;
    entry
}
