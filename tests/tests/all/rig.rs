use bytes::Bytes;
use delayline_core::{
    Ceiling, Command, Compression, DeadLetters, Due, Entry, Fence, Grant, Identity, JobId, Place,
    QueueConfig, QueueName, Record, Reply, Session, Settlement, Shards, UnixMicros, UnixMs,
};
use delayline_tests::{RedisServer, RedisStore};

pub(crate) const START: u64 = 1_763_700_000_000_000;
pub(crate) const NO_LIMIT: Ceiling = Ceiling { jobs: 0, bytes: 0 };
pub(crate) const LEASE_MS: u64 = 30_000;

/// One queue on one server at a time of its own, and one engine's lane.
pub(crate) struct Rig {
    pub(crate) server: RedisServer,
    pub(crate) store: RedisStore,
    pub(crate) now: UnixMicros,
    pub(crate) queue: QueueName,
    pub(crate) engine: Identity,
    sequence: u64,
}

impl Rig {
    pub(crate) fn new(server: RedisServer) -> Rig {
        let store = RedisStore::new(&server, Shards::default());
        let (now, queue) = (UnixMicros(START), "orders".parse().expect("a name"));
        Rig { server, store, now, queue, engine: Identity(7), sequence: 0 }
    }

    pub(crate) fn plain() -> Rig {
        Rig::new(RedisServer::plain())
    }

    /// Back to the first moment and the first sequence.
    pub(crate) fn reset(&mut self) {
        (self.now, self.sequence) = (UnixMicros(START), 0);
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.now.0 += ms * 1000;
    }

    pub(crate) fn server_time(&mut self) -> UnixMicros {
        match self.store.execute(None, &self.stats(0)) {
            Reply::Counted { time, .. } => time,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn run(&mut self, command: &Command) -> Reply {
        self.store.execute(Some(self.now), command)
    }

    pub(crate) fn session(&mut self) -> Session {
        self.sequence += 1;
        Session { engine: self.engine, lane: 0, sequence: self.sequence }
    }

    pub(crate) fn publish(&mut self, jobs: Vec<Entry>) -> Command {
        let session = self.session();
        Command::Publish { queue: self.queue.clone(), session, ceiling: NO_LIMIT, jobs }
    }

    pub(crate) fn reserve(&mut self, count: u16) -> Command {
        let session = self.session();
        let (lease_ms, max_bytes) = (LEASE_MS, 1 << 20);
        Command::Reserve { queue: self.queue.clone(), session, count, lease_ms, max_bytes, wakeable: true }
    }

    pub(crate) fn settle(&self, jobs: &[Grant], fence: Fence, how: &Settlement, tidy: bool) -> Command {
        let leases = jobs.iter().map(|job| (job.id.clone(), fence, how.clone())).collect();
        Command::Settle { queue: self.queue.clone(), tidy, leases }
    }

    pub(crate) fn tend(&self) -> Command {
        Command::Tend { queue: self.queue.clone(), limit: 256, forward: None }
    }

    pub(crate) fn configure(&self, config: QueueConfig) -> Command {
        Command::Configure { queue: self.queue.clone(), cfgver: None, config }
    }

    pub(crate) fn pause(&self, paused: bool) -> Command {
        Command::Pause { queue: self.queue.clone(), cfgver: None, paused }
    }

    pub(crate) fn cancel(&mut self, ids: Vec<JobId>) -> Command {
        let session = self.session();
        Command::Cancel { queue: self.queue.clone(), session, ids }
    }

    pub(crate) fn reschedule(&mut self, ids: &[JobId], due: Due) -> Command {
        let session = self.session();
        let jobs = ids.iter().map(|id| (id.clone(), due)).collect();
        Command::Reschedule { queue: self.queue.clone(), session, jobs }
    }

    pub(crate) fn inspect(&self, id: JobId) -> Command {
        Command::Inspect { queue: self.queue.clone(), id }
    }

    pub(crate) fn list(&self, place: Place, limit: u16, after: Option<(UnixMs, JobId)>) -> Command {
        Command::List { queue: self.queue.clone(), place, limit, max_bytes: 1 << 20, after }
    }

    pub(crate) fn stats(&self, hours: u8) -> Command {
        Command::Stats { queue: self.queue.clone(), hours }
    }

    pub(crate) fn dead(limit: u16) -> DeadLetters {
        DeadLetters { ids: None, until: None, limit }
    }

    /// Publishes jobs that are due at once, and grants them.
    pub(crate) fn granted(&mut self, count: u16) -> (Vec<Grant>, Fence) {
        let jobs = batch("job", count, Due::After { ms: 0 });
        let (publish, reserve) = (self.publish(jobs), self.reserve(count));
        self.run(&publish);
        self.grants(&reserve)
    }

    pub(crate) fn grants(&mut self, reserve: &Command) -> (Vec<Grant>, Fence) {
        match self.run(reserve) {
            Reply::Granted { jobs, fence, .. } => (jobs, fence),
            other => panic!("{other:?}"),
        }
    }

    /// Publishes jobs, grants them, and buries them.
    pub(crate) fn buried(&mut self, count: u16) -> Vec<Grant> {
        let (jobs, fence) = self.granted(count);
        let bury = self.settle(&jobs, fence, &Settlement::Bury { reason: "bad".into_reason() }, false);
        self.run(&bury);
        jobs
    }
}

pub(crate) trait IntoReason {
    fn into_reason(self) -> delayline_core::Reason;
}

impl IntoReason for &str {
    fn into_reason(self) -> delayline_core::Reason {
        delayline_core::Reason::new(self)
    }
}

pub(crate) fn record(body: &[u8]) -> Bytes {
    let record = Record { body: Bytes::copy_from_slice(body), ..Record::default() };
    record.encode(Compression::Off).expect("a small record").to_bytes()
}

pub(crate) fn id(name: &str) -> JobId {
    name.parse().expect("an id")
}

pub(crate) fn job(name: &str, due: Due) -> Entry {
    Entry { id: id(name), due, ttl_ms: 0, replace: false, edit: None, record: record(b"{}") }
}

pub(crate) fn batch(name: &str, count: u16, due: Due) -> Vec<Entry> {
    (0..count).map(|i| job(&format!("{name}-{i:03}"), due)).collect()
}

pub(crate) fn ids(jobs: &[Grant]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id.clone()).collect()
}
