use std::path::PathBuf;

use delayline_core::wire::Value;
use delayline_core::{
    Ceiling, Command, Compression, Due, Entry, ExtendOutcome, Fence, Identity, JobId, QueueName, Record,
    Reply, Session, SettleOutcome, Settlement, Shards,
};
use delayline_tests::{Connection, Options, RedisServer, RedisStore};

use crate::callgrind::{read, watching};

const LEASE_MS: u64 = 30_000;

/// Leases of one grant.
pub(crate) type Granted = (Fence, Vec<JobId>);

/// A server whose instructions are counted, all that it takes to read a request and to write an answer too.
pub(crate) struct Redis {
    pub(crate) store: RedisStore,
    meter: Connection,
    out: PathBuf,
    marks: usize,
    /// What a mark costs itself.
    mark: u64,
    sequence: u64,
    published: u64,
    server: RedisServer,
}

impl Redis {
    /// Starts one, and holds back what it does by itself.
    pub(crate) fn start() -> Redis {
        let directory = std::env::temp_dir().join(format!("delayline-counted-{}", std::process::id()));
        let out = directory.join("callgrind");
        let mut under = watching(&out);
        // ECHO, which nothing else asks for, ends one count and begins the next.
        under.push("--dump-before=echoCommand".into());
        let server = RedisServer::start(Options { directory: Some(directory), under, ..Options::default() });
        let mut meter = server.connect();
        for (name, value) in [("hz", "1"), ("dynamic-hz", "no")] {
            meter.ask(&["CONFIG", "SET", name, value]);
        }
        let store = RedisStore::new(&server, Shards::default());
        let mut redis = Redis { store, meter, out, marks: 0, mark: 0, sequence: 0, published: 0, server };
        redis.since_mark();
        redis.since_mark();
        redis.mark = redis.since_mark();
        redis
    }

    /// Its version, as in `redis 7.0.15`.
    pub(crate) fn version(&mut self) -> String {
        let Value::Bytes(text) = self.meter.ask(&["INFO", "server"]) else { panic!("no answer to INFO") };
        let text = String::from_utf8_lossy(&text).into_owned();
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let name = field("server_name:").unwrap_or("redis");
        let version = field("valkey_version:").or_else(|| field("redis_version:")).expect("a version");
        format!("{name} {version} {}", std::env::consts::ARCH)
    }

    /// The instructions since this was asked last.
    fn since_mark(&mut self) -> u64 {
        self.meter.ask(&["ECHO", "mark"]);
        self.marks += 1;
        let part = self.out.with_extension(self.marks.to_string());
        assert!(part.is_file(), "valgrind sees no echoCommand in this server: it has lost its symbols");
        let counted = read(&part).instructions;
        std::fs::remove_file(part).expect("a file");
        counted
    }

    /// The instructions of all that `act` asks the server for.
    pub(crate) fn count<T>(&mut self, act: impl FnOnce(&mut Redis) -> T) -> (u64, T) {
        self.since_mark();
        let done = act(self);
        (self.since_mark().saturating_sub(self.mark), done)
    }

    fn session(&mut self) -> Session {
        self.sequence += 1;
        Session { engine: Identity(7), lane: 0, sequence: self.sequence }
    }

    /// Publishes so many jobs of 100 bytes, due at once.
    pub(crate) fn publish(&mut self, queue: &QueueName, count: u64) {
        let record = Record { body: vec![b'x'; 100].into(), ..Record::default() };
        let record = record.encode(Compression::Off).expect("a small record").to_bytes();
        let entry = |number: u64| Entry {
            id: format!("job-{number:010}").parse().expect("an id"),
            due: Due::After { ms: 0 },
            ttl_ms: 0,
            replace: false,
            edit: None,
            record: record.clone(),
        };
        let jobs: Vec<Entry> = (self.published..self.published + count).map(entry).collect();
        self.published += count;
        let (session, ceiling) = (self.session(), Ceiling { jobs: 0, bytes: 0 });
        let publish = Command::Publish { queue: queue.clone(), session, ceiling, jobs };
        let reply = self.store.execute(None, &publish);
        assert!(matches!(reply, Reply::Published { .. }), "{reply:?}");
    }

    /// Asks for so many jobs.
    pub(crate) fn reserve(&mut self, queue: &QueueName, count: u16) -> Granted {
        let (session, queue, max_bytes) = (self.session(), queue.clone(), 1 << 20);
        let reserve =
            Command::Reserve { queue, session, count, lease_ms: LEASE_MS, max_bytes, wakeable: true };
        match self.store.execute(None, &reserve) {
            Reply::Granted { jobs, fence, .. } => (fence, jobs.into_iter().map(|job| job.id).collect()),
            other => panic!("{other:?}"),
        }
    }

    /// Acknowledges them.
    pub(crate) fn settle(&mut self, queue: &QueueName, (fence, ids): Granted) {
        let leases = ids.into_iter().map(|id| (id, fence, Settlement::Ack)).collect();
        let reply = self.store.execute(None, &Command::Settle { queue: queue.clone(), tidy: false, leases });
        let Reply::Settled { outcomes, .. } = reply else { panic!("{reply:?}") };
        assert!(outcomes.iter().all(|outcome| *outcome == SettleOutcome::Done), "{outcomes:?}");
    }

    /// Renews them.
    pub(crate) fn extend(&mut self, queue: &QueueName, (fence, ids): &Granted) {
        let leases = ids.iter().map(|id| (id.clone(), *fence)).collect();
        let extend = Command::Extend { queue: queue.clone(), lease_ms: LEASE_MS, leases };
        let reply = self.store.execute(None, &extend);
        let Reply::Extended { outcomes, .. } = reply else { panic!("{reply:?}") };
        assert!(outcomes.iter().all(|outcome| *outcome == ExtendOutcome::Extended), "{outcomes:?}");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.server.kill();
        if let Some(directory) = self.out.parent() {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}
