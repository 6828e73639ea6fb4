//! What each script promises at its edges, on the store.

mod broken;
mod config;
mod ends;
mod forwarding;
mod grants;
mod waking;

use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{
    CancelOutcome, Ceiling, Command, Compression, DeadLetters, Due, Entry, Fence, Forward, Grant, Identity,
    JobId, Keyspace, Prefix, QueueConfig, QueueName, Reason, Record, Reply, Session, SettleOutcome,
    Settlement, Shard, Shards, Stats, Stored, UnixMicros, UnixMs, Wakeup,
};

use crate::{Dumped, Notice, Store};

/// Half a millisecond past a full one, so that what rounds is seen to round.
const START_US: u64 = 1_763_700_000_000_500;
const START: UnixMs = UnixMs(START_US / 1000);
const ALICE: Identity = Identity(1);
const BOB: Identity = Identity(2);

fn queue() -> QueueName {
    "orders".parse().unwrap()
}

fn id(text: &str) -> JobId {
    text.parse().unwrap()
}

fn names<'a>(jobs: impl IntoIterator<Item = &'a JobId>) -> Vec<&'a str> {
    jobs.into_iter().map(JobId::as_str).collect()
}

fn record(body: &str) -> Bytes {
    plain(&Record { body: Bytes::copy_from_slice(body.as_bytes()), ..Record::default() })
}

fn plain(record: &Record) -> Bytes {
    record.encode(Compression::Off).unwrap().to_bytes()
}

fn entry(name: &str, delay_ms: u64) -> Entry {
    Entry {
        id: id(name),
        due: Due::After { ms: delay_ms },
        ttl_ms: 0,
        replace: false,
        edit: None,
        record: record(name),
    }
}

fn expiring(name: &str, delay_ms: u64, ttl_ms: u64) -> Entry {
    Entry { ttl_ms, ..entry(name, delay_ms) }
}

/// What a reserve granted.
struct Granted {
    fence: Fence,
    jobs: Vec<Grant>,
    next: Option<UnixMs>,
    more: bool,
    open: bool,
}

impl Granted {
    fn ids(&self) -> Vec<&str> {
        names(self.jobs.iter().map(|job| &job.id))
    }
}

/// A store of one shard, and a clock over it.
struct Bed {
    store: Store,
    us: u64,
    sequence: u64,
}

impl Bed {
    fn new() -> Bed {
        Bed { store: Store::default(), us: START_US, sequence: 0 }
    }

    fn pass(&mut self, ms: u64) {
        self.us += ms * 1000;
    }

    fn now(&self) -> UnixMs {
        UnixMicros(self.us).floor_ms()
    }

    fn run(&mut self, command: &Command) -> Reply {
        self.store.execute(UnixMicros(self.us), command)
    }

    fn session(&mut self, engine: Identity) -> Session {
        self.sequence += 1;
        Session { engine, lane: 0, sequence: self.sequence }
    }

    fn publish_as(&mut self, session: Session, jobs: Vec<Entry>) -> Reply {
        let ceiling = Ceiling { jobs: 0, bytes: 0 };
        self.run(&Command::Publish { queue: queue(), session, ceiling, jobs })
    }

    fn publish(&mut self, jobs: impl IntoIterator<Item = Entry>) -> Reply {
        let session = self.session(ALICE);
        self.publish_as(session, jobs.into_iter().collect())
    }

    fn reserve_as(&mut self, session: Session, count: u16, max_bytes: u64) -> Reply {
        let (lease_ms, wakeable) = (30_000, true);
        self.run(&Command::Reserve { queue: queue(), session, count, lease_ms, max_bytes, wakeable })
    }

    fn reserve_by(&mut self, engine: Identity, count: u16) -> Granted {
        let session = self.session(engine);
        granted(self.reserve_as(session, count, 1 << 20))
    }

    fn reserve(&mut self, count: u16) -> Granted {
        self.reserve_by(ALICE, count)
    }

    fn settle(&mut self, name: &str, fence: Fence, settlement: Settlement) -> SettleOutcome {
        self.settle_all(false, &[(name, fence, settlement)])[0]
    }

    fn settle_all(&mut self, tidy: bool, leases: &[(&str, Fence, Settlement)]) -> Vec<SettleOutcome> {
        let leases = leases.iter().map(|(name, fence, how)| (id(name), *fence, how.clone())).collect();
        match self.run(&Command::Settle { queue: queue(), tidy, leases }) {
            Reply::Settled { outcomes, .. } => outcomes,
            other => panic!("{other:?}"),
        }
    }

    fn cancel(&mut self, name: &str) -> CancelOutcome {
        let session = self.session(ALICE);
        match self.run(&Command::Cancel { queue: queue(), session, ids: vec![id(name)] }) {
            Reply::Cancelled { outcomes, .. } => outcomes[0],
            other => panic!("{other:?}"),
        }
    }

    fn tend_to(&mut self, limit: u16, forward: Option<Forward>) -> Reply {
        self.run(&Command::Tend { queue: queue(), limit, forward })
    }

    fn tend(&mut self) -> Reply {
        self.tend_to(256, None)
    }

    fn configure(&mut self, config: QueueConfig) {
        let reply = self.run(&Command::Configure { queue: queue(), cfgver: None, config });
        assert!(matches!(reply, Reply::Configured { .. }), "{reply:?}");
    }

    fn pause(&mut self, paused: bool) {
        let reply = self.run(&Command::Pause { queue: queue(), cfgver: None, paused });
        assert!(matches!(reply, Reply::Configured { .. }), "{reply:?}");
    }

    fn stats(&mut self) -> Stats {
        match self.run(&Command::Stats { queue: queue(), hours: 2 }) {
            Reply::Counted { stats, .. } => stats,
            other => panic!("{other:?}"),
        }
    }

    fn inspect(&mut self, name: &str) -> Option<Stored> {
        match self.run(&Command::Inspect { queue: queue(), id: id(name) }) {
            Reply::Found { job, .. } => Some(job),
            Reply::Gone { .. } => None,
            other => panic!("{other:?}"),
        }
    }

    fn dump(&self) -> BTreeMap<String, Dumped> {
        self.store.dump(&Keyspace::new(&Prefix::default(), Shards::default()))
    }

    /// A field of `meta` as text.
    fn meta(&self, field: &str) -> Option<String> {
        match self.dump().get("{dl:0.0}:orders:meta")? {
            Dumped::Hash(fields) => fields.get(field.as_bytes()).map(text),
            other => panic!("{other:?}"),
        }
    }

    /// When the queue is on the agenda.
    fn agenda(&self) -> Option<UnixMs> {
        match self.dump().get("{dl:0.0}:agenda")? {
            Dumped::Zset(entries) => entries.first().map(|(_, at)| UnixMs(*at)),
            other => panic!("{other:?}"),
        }
    }

    fn notices(&mut self) -> Vec<Notice> {
        std::iter::from_fn(|| self.store.poll_wakeup()).collect()
    }
}

fn granted(reply: Reply) -> Granted {
    match reply {
        Reply::Granted { fence, jobs, next, more, open, .. } => Granted { fence, jobs, next, more, open },
        other => panic!("{other:?}"),
    }
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn nack(after_ms: u64) -> Settlement {
    Settlement::Nack { after_ms, reason: Reason::new("boom") }
}

fn bury() -> Settlement {
    Settlement::Bury { reason: Reason::new("no good") }
}

fn all_dead(limit: u16) -> DeadLetters {
    DeadLetters { ids: None, until: None, limit }
}

fn ready(to: Identity) -> Notice {
    Notice { to, wakeup: Wakeup::Ready(queue()) }
}

fn head(to: Identity, at: UnixMs) -> Notice {
    Notice { to, wakeup: Wakeup::Head(Shard(0), at) }
}

#[test]
fn a_store_can_move_between_threads() {
    fn sendable<T: Send>(_: T) {}
    sendable(Store::default());
}
