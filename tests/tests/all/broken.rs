//! One value that somebody else wrote, in each key and each field: the other jobs are delivered, everything answers, and
//! the queue can be destroyed.

use std::collections::BTreeSet;

use bytes::Bytes;
use delayline_core::{
    Command, Counters, DeadLetters, Due, Grant, Identity, JobId, Place, QueueConfig, QueueName, Reply,
    Session, Settlement, Shard, UnixMicros, UnixMs,
};
use delayline_embedded::{Bug, Damage, Key};
use delayline_tests::{Options, RedisServer, RedisStore};

use crate::rig::{IntoReason, NO_LIMIT, START, batch, id, job};
use crate::twin::{InMemory, Twin, on_server};
use crate::world::World;

/// What may be asked of a queue.
type Act = fn(&mut Bench<RedisStore>);

const TEXTS: [&[u8]; 10] =
    [b"", b"text", b"99999999999999999999", b"-5", b"nan", b"inf", b"1.5", b"L12", b"\xff\x00\x80", b"1 2"];
/// Redis keeps none that is not a number.
const SCORES: [f64; 6] = [f64::INFINITY, f64::NEG_INFINITY, -5.0, 1.5, 1e300, 9_007_199_254_740_993.0];
/// The fields of `meta` that do not count.
const FIELDS: [&str; 22] = [
    "born",
    "cfgver",
    "attempts",
    "backoff",
    "retention",
    "expire",
    "max_jobs",
    "max_bytes",
    "forward",
    "forward_error",
    "paused",
    "fence",
    "lo",
    "w",
    "mean",
    "exp",
    "big",
    "sessions",
    "sweep",
    "s----------6p0",
    "s----------6r0",
    "s----------6c0",
];
const GOOD: [&str; 3] = ["good-000", "good-001", "good-002"];

/// A queue on a store, and one engine.
struct Bench<T> {
    store: T,
    now: u64,
    sequence: u64,
    queue: QueueName,
    context: String,
}

impl<T: Twin> Bench<T> {
    /// A queue with jobs that wait after a verdict, are held, are dead and were never delivered.
    fn new(store: T, context: String) -> Bench<T> {
        let queue = "orders".parse().expect("a name");
        let mut bench = Bench { store, now: START, sequence: 0, queue, context };
        let mut jobs = batch("old", 2, Due::After { ms: 0 });
        jobs.extend([job("bad", Due::After { ms: 0 }), job("dead", Due::After { ms: 0 })]);
        jobs[0].ttl_ms = 3_600_000;
        bench.publish(jobs);
        for grant in bench.reserve().0 {
            let how = match grant.id.as_str() {
                "dead" => Settlement::Bury { reason: "no".into_reason() },
                _ => Settlement::Nack { after_ms: 500, reason: "why".into_reason() },
            };
            bench.settle(&grant, how);
        }
        bench.publish(vec![job("held", Due::After { ms: 0 })]);
        bench.reserve();
        bench.publish(batch("good", 3, Due::After { ms: 100 }));
        bench.now += 1_000_000;
        bench
    }

    fn run(&mut self, command: &Command) -> Reply {
        let before = self.held();
        let reply = self.store.execute(UnixMicros(self.now), command);
        if matches!(reply, Reply::Broken(_)) {
            let lost: Vec<_> = self.held().difference(&before).cloned().collect();
            assert!(lost.is_empty(), "{}: a script failed, and {lost:?} are leased to nobody", self.context);
        }
        assert!(
            !matches!(reply, Reply::Broken(_) | Reply::Refused(_)),
            "{}: {command:?} answered {reply:?}",
            self.context
        );
        reply
    }

    /// The jobs that are leased, and until when.
    fn held(&mut self) -> BTreeSet<(JobId, UnixMs)> {
        let (queue, place, after) = (self.queue.clone(), Place::Leased, None);
        let list = Command::List { queue, place, limit: 100, max_bytes: 1 << 20, after };
        match self.store.execute(UnixMicros(self.now), &list) {
            Reply::Listed { jobs, .. } => jobs.into_iter().map(|job| (job.id, job.at)).collect(),
            other => panic!("{}: {other:?}", self.context),
        }
    }

    fn session(&mut self) -> Session {
        self.sequence += 1;
        Session { engine: Identity(7), lane: 0, sequence: self.sequence }
    }

    fn publish(&mut self, jobs: Vec<delayline_core::Entry>) {
        let (queue, session) = (self.queue.clone(), self.session());
        self.run(&Command::Publish { queue, session, ceiling: NO_LIMIT, jobs });
    }

    fn reserve(&mut self) -> (Vec<Grant>, delayline_core::Fence) {
        let (queue, session) = (self.queue.clone(), self.session());
        let reply = self.run(&Command::Reserve {
            queue,
            session,
            count: 10,
            lease_ms: 30_000,
            max_bytes: 1 << 20,
            wakeable: true,
        });
        match reply {
            Reply::Granted { jobs, fence, .. } => (jobs, fence),
            other => panic!("{}: {other:?}", self.context),
        }
    }

    fn settle(&mut self, grant: &Grant, how: Settlement) {
        let leases = vec![(grant.id.clone(), grant.state.fence, how)];
        self.run(&Command::Settle { queue: self.queue.clone(), tidy: false, leases });
    }

    /// Delivers all that can be delivered, while everything else is asked for too; the ids of what ran.
    fn deliver(&mut self) -> BTreeSet<String> {
        let mut ran = BTreeSet::new();
        self.ask_all();
        self.publish(vec![job("late", Due::After { ms: 0 })]);
        for _ in 0..4 {
            let (jobs, fence) = self.reserve();
            let leases: Vec<_> = jobs.iter().map(|job| (job.id.clone(), fence)).collect();
            if !leases.is_empty() {
                self.run(&Command::Extend { queue: self.queue.clone(), lease_ms: 30_000, leases });
            }
            for job in jobs {
                ran.insert(job.id.to_string());
                self.settle(&job, Settlement::Ack);
            }
            self.run(&Command::Tend { queue: self.queue.clone(), limit: 256, forward: None });
            self.now += 31_000_000;
        }
        ran
    }

    fn ask_all(&mut self) {
        let queue = self.queue.clone();
        for place in [Place::Ready, Place::Delayed, Place::Leased, Place::Dead] {
            let (queue, after) = (queue.clone(), None);
            self.run(&Command::List { queue, place, limit: 10, max_bytes: 1 << 20, after });
        }
        for name in ["bad", "held", "dead", "none"] {
            self.run(&Command::Inspect { queue: queue.clone(), id: id(name) });
        }
        self.run(&Command::Stats { queue: queue.clone(), hours: 2 });
        self.run(&Command::Queues { shard: Shard(0), cursor: 0, count: 100 });
        for stay in [false, true] {
            let (shard, engine, queues) = (Shard(0), Identity(9), vec![queue.clone()]);
            self.run(&Command::Peek { shard, engine, entries: 16, lease_ms: 30_000, stay, queues });
        }
        self.run(&Command::Configure { queue: queue.clone(), cfgver: None, config: QueueConfig::default() });
        for paused in [true, false] {
            self.run(&Command::Pause { queue: queue.clone(), cfgver: None, paused });
        }
        let session = self.session();
        self.run(&Command::Reschedule { queue, session, jobs: vec![(id("bad"), Due::After { ms: 10 })] });
    }

    /// Ends the queue as a caller does; nothing of it is left but what was set aside.
    fn destroy(&mut self) {
        let queue = self.queue.clone();
        let dead = DeadLetters { ids: None, until: None, limit: 500 };
        self.run(&Command::Requeue { queue: queue.clone(), dead: dead.clone() });
        self.run(&Command::Purge { queue: queue.clone(), dead });
        let session = self.session();
        self.run(&Command::Cancel { queue: queue.clone(), session, ids: vec![id("bad")] });
        let born = match self.run(&Command::Stats { queue: queue.clone(), hours: 0 }) {
            Reply::Counted { stats, .. } => stats.born.unwrap_or_default(),
            other => panic!("{}: {other:?}", self.context),
        };
        self.run(&Command::Destroy { queue: queue.clone(), born });
        let left: Vec<String> = self.store.dump().into_keys().collect();
        let is_left = |key: &&String| key.contains("}:orders:") || key.ends_with("}:queues");
        assert!(!left.iter().any(|key| is_left(&key)), "{}: {left:?} are left", self.context);
    }
}

/// What the damage does to the good jobs of a queue: those that are to run all the same.
fn walk<T: Twin>(mut store: impl FnMut() -> T, damages: &[(Damage, bool)]) {
    for (damage, keeps_jobs) in damages {
        let mut bench = Bench::new(store(), format!("{damage:?}"));
        let queue = bench.queue.clone();
        bench.store.damage(&queue, damage);
        let ran = bench.deliver();
        let ends = matches!(damage, Damage::Score { key: Key::Leased, .. });
        let held = ends.then_some(&"held");
        let wanted = GOOD.iter().filter(|_| *keeps_jobs).chain(&["late"]).chain(held);
        for name in wanted {
            assert!(ran.contains(*name), "{damage:?}: {name} did not run, but {ran:?}");
        }
        bench.destroy();
    }
}

/// Each damage, and whether the good jobs are still there after it.
fn damages() -> Vec<(Damage, bool)> {
    let texts = || TEXTS.iter().map(|text| Bytes::from_static(text));
    let mut all = Vec::new();
    for text in texts() {
        let counters = Counters::default().named().map(|(name, _)| name);
        for field in FIELDS.into_iter().chain(counters) {
            all.push((Damage::Meta { field: field.to_owned(), text: text.clone() }, true));
        }
        for name in ["bad", "held", "dead"] {
            all.push((Damage::State { id: id(name), text: text.clone() }, true));
        }
        all.push((Damage::Lease { text: text.clone() }, true));
        for key in Key::ALL {
            let keeps_jobs = key != Key::Pool && key != Key::Due;
            all.push((Damage::Foreign { key, text: text.clone() }, keeps_jobs));
        }
    }
    for score in SCORES {
        for key in [Key::Due, Key::Leased, Key::Dead, Key::Exp, Key::Big, Key::Waiting] {
            all.push((Damage::Score { key, id: id("bad"), score }, true));
        }
        all.push((Damage::Score { key: Key::Leased, id: id("held"), score }, true));
        all.push((Damage::Agenda { score }, true));
    }
    all.push((Damage::Unnamed, true));
    all
}

#[test]
fn one_broken_value_stops_no_queue_on_a_server() {
    let server = RedisServer::start(Options::default());
    walk(|| on_server(&server, &World::new(0)), &damages());
}

#[test]
fn one_broken_value_stops_no_queue_in_memory() {
    walk(|| InMemory::new(&World::new(0)), &damages());
}

#[test]
fn a_job_whose_state_is_broken_is_dead_with_a_reason_and_counted() {
    let server = RedisServer::start(Options::default());
    for text in TEXTS {
        let mut bench = Bench::new(on_server(&server, &World::new(0)), format!("{text:?}"));
        let queue = bench.queue.clone();
        bench.store.damage(&queue, &Damage::State { id: id("bad"), text: Bytes::from_static(text) });
        let ran = bench.deliver();
        assert!(!ran.contains("bad"), "{text:?}: {ran:?}");
        match bench.run(&Command::Inspect { queue: queue.clone(), id: id("bad") }) {
            Reply::Found { job, .. } => {
                assert_eq!(job.place, Place::Dead);
                assert_eq!(job.state.expect("a state").reason.as_str(), "broken state");
            }
            other => panic!("{text:?}: {other:?}"),
        }
        match bench.run(&Command::Stats { queue, hours: 0 }) {
            Reply::Counted { stats, .. } => assert_eq!(stats.counters.unreadable, 1, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn a_key_of_another_type_keeps_its_value_under_another_name() {
    let server = RedisServer::start(Options::default());
    for key in Key::ALL {
        let mut bench = Bench::new(on_server(&server, &World::new(0)), format!("{key:?}"));
        let queue = bench.queue.clone();
        let text = Bytes::from_static(b"somebody else's");
        bench.store.damage(&queue, &Damage::Foreign { key, text: text.clone() });
        let mut jobs = batch("more", 2, Due::After { ms: 0 });
        jobs[0].ttl_ms = 1_000;
        jobs[1].record = crate::rig::record(&[b'x'; 5_000]);
        bench.publish(jobs);
        bench.deliver();
        let dead = DeadLetters { ids: None, until: None, limit: 500 };
        bench.run(&Command::Purge { queue, dead });
        let aside = values(&mut bench.store);
        assert_eq!(aside, [text], "{key:?}");
        match bench.run(&Command::Stats { queue: bench.queue.clone(), hours: 0 }) {
            Reply::Counted { stats, .. } => assert_eq!(stats.counters.broken, 1, "{key:?}"),
            other => panic!("{key:?}: {other:?}"),
        }
    }
}

/// What stands under names that begin with `broken`.
fn values(store: &mut RedisStore) -> Vec<Bytes> {
    let dump = store.dump().into_iter().filter(|(key, _)| key.contains("}:broken:"));
    dump.map(|(_, contents)| match contents {
        delayline_tests::Contents::Text(text) => text,
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn a_lost_name_is_written_again_by_what_comes_next() {
    let server = RedisServer::start(Options::default());
    let queue: QueueName = "orders".parse().expect("a name");
    let acts: [(&str, Act); 4] = [
        ("publish", |bench| bench.publish(vec![job("next", Due::After { ms: 0 })])),
        ("tend", |bench| {
            bench.run(&Command::Tend { queue: bench.queue.clone(), limit: 256, forward: None });
        }),
        ("pause", |bench| {
            bench.run(&Command::Pause { queue: bench.queue.clone(), cfgver: None, paused: true });
        }),
        ("configure", |bench| {
            let (queue, config) = (bench.queue.clone(), QueueConfig::default());
            bench.run(&Command::Configure { queue, cfgver: None, config });
        }),
    ];
    for (name, act) in acts {
        let mut bench = Bench::new(on_server(&server, &World::new(0)), name.to_owned());
        bench.store.damage(&queue, &Damage::Unnamed);
        // Publishing writes it once a minute.
        bench.now += 60_000_000;
        act(&mut bench);
        match bench.run(&Command::Queues { shard: Shard(0), cursor: 0, count: 100 }) {
            Reply::Named { queues, .. } => assert_eq!(queues, std::slice::from_ref(&queue), "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn sessions_of_fresh_clients_are_swept_by_a_worker_alone() {
    let server = RedisServer::start(Options::default());
    let mut store = on_server(&server, &World::new(0));
    let queue: QueueName = "orders".parse().expect("a name");
    let mut now = START;
    for client in 0..20_000 {
        let session = Session { engine: Identity(1_000 + client), lane: 0, sequence: 1 };
        let ids = vec![id("none")];
        let command = if client == 0 {
            let jobs = vec![job("first", Due::After { ms: 100_000_000 })];
            Command::Publish { queue: queue.clone(), session, ceiling: NO_LIMIT, jobs }
        } else {
            Command::Cancel { queue: queue.clone(), session, ids }
        };
        Twin::execute(&mut store, UnixMicros(now), &command);
        now += 3_000;
    }
    let meta = store.keys().queue_keys(&queue)[2].clone();
    let fields = |store: &mut RedisStore| match store.connection().ask(&["HLEN", &meta]) {
        delayline_core::wire::Value::Int(fields) => fields,
        other => panic!("{other:?}"),
    };
    assert!(fields(&mut store) > 20_000);
    let (end, mut sequence) = (START + 20 * 60 * 1_000_000, 0);
    while now < end {
        sequence += 1;
        let session = Session { engine: Identity(7), lane: 0, sequence };
        let (count, lease_ms, max_bytes, wakeable) = (10, 30_000, 1 << 20, true);
        let reserve =
            Command::Reserve { queue: queue.clone(), session, count, lease_ms, max_bytes, wakeable };
        Twin::execute(&mut store, UnixMicros(now), &reserve);
        now += 30_000_000;
    }
    let left = fields(&mut store);
    assert!(left < 300, "{left} fields are left in meta");
}

#[test]
fn a_pump_lease_is_free_when_the_clock_was_set_back() {
    let server = RedisServer::start(Options::default());
    let mut bench = Bench::new(on_server(&server, &World::new(0)), "clock".to_owned());
    let peek = |engine| {
        let (shard, queues) = (Shard(0), vec![]);
        Command::Peek { shard, engine: Identity(engine), entries: 1, lease_ms: 30_000, stay: true, queues }
    };
    bench.run(&peek(1));
    bench.now -= 120_000_000;
    match bench.run(&peek(2)) {
        Reply::Peeked { holder: Some((engine, _)), .. } => assert_eq!(engine, Identity(2)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_script_that_fails_when_it_has_leased_is_found() {
    let server = RedisServer::start(Options::default());
    let planted = || {
        let mut store = on_server(&server, &World::new(0));
        store.plant(Some(Bug::ErrorAfterLease));
        store
    };
    let state = Damage::State { id: id("bad"), text: Bytes::from_static(b"text") };
    let found = std::panic::catch_unwind(|| walk(planted, &[(state, true)]));
    let said = found.expect_err("the walk goes on");
    let said = said.downcast_ref::<String>().expect("a text");
    assert!(said.contains("a script failed, and") && said.contains("leased to nobody"), "{said}");
}
