//! What clients that come and go leave behind, and what it costs to tidy up after them.

use std::time::Duration;

use delayline_core::wire::Value;
use delayline_core::{
    Ceiling, Command, Due, Entry, Fence, Identity, JobId, Record, Reply, Session, Settlement, Shards,
    UnixMicros,
};
use delayline_tests::{RedisServer, RedisStore, measure, words};

use crate::quiet::quiet;

const CLIENTS: u64 = 20_000;
/// How often one comes, publishes a job and goes.
const EVERY_US: u64 = 100_000;
/// How often a worker asks that is told nothing.
const POLL_US: u64 = 29_000_000;
const AFTER_US: u64 = 20 * 60 * 1_000_000;
const FIELDS_MAX: i64 = 300;
/// How long one script may keep all others waiting, whatever an older build has left behind.
const LONGEST: Duration = Duration::from_millis(50);
/// Sessions as clients write them, that were kept until the first moment of 2026: as many as a script makes at once.
const OLD: &str = "
for i = ARGV[1], ARGV[2] do
  redis.call('HSET', KEYS[1], string.format('s%011dp0', i), '1 1767225600000 1 c')
end
redis.call('HSET', KEYS[1], 'sessions', ARGV[2])";

/// A queue at times of the test's own.
struct Clients {
    store: RedisStore,
    now: UnixMicros,
    published: u64,
    asked: u64,
}

impl Clients {
    fn new(server: &RedisServer) -> Clients {
        let store = RedisStore::new(server, Shards::default());
        // 2027-01-01: later than what is kept of old.
        Clients { store, now: UnixMicros(1_798_761_600_000_000), published: 0, asked: 0 }
    }

    fn execute(&mut self, command: &Command) -> Reply {
        self.store.execute(Some(self.now), command)
    }

    /// A client that nobody has seen before publishes a job.
    fn publish(&mut self) {
        self.published += 1;
        let record = Record { body: "a body".into(), ..Record::default() };
        let record = record.encode(delayline_core::Compression::Off).expect("a record").to_bytes();
        let id = format!("job-{}", self.published).parse().expect("an id");
        let jobs =
            vec![Entry { id, due: Due::After { ms: 0 }, ttl_ms: 0, replace: false, edit: None, record }];
        let session = Session { engine: Identity(1_000 + self.published), lane: 0, sequence: 1 };
        let ceiling = Ceiling { jobs: 0, bytes: 0 };
        let queue = "orders".parse().expect("a name");
        let reply = self.execute(&Command::Publish { queue, session, ceiling, jobs });
        assert!(matches!(reply, Reply::Published { .. }), "{reply:?}");
    }

    /// The one worker takes what is due, and acknowledges it.
    fn work(&mut self) {
        self.asked += 1;
        let session = Session { engine: Identity(7), lane: 0, sequence: self.asked };
        let queue = || "orders".parse().expect("a name");
        let (count, lease_ms, max_bytes) = (100, 30_000, 1 << 20);
        let reserve =
            Command::Reserve { queue: queue(), session, count, lease_ms, max_bytes, wakeable: true };
        let reply = self.execute(&reserve);
        let leases = granted(&reply);
        if !leases.is_empty() {
            let reply = self.execute(&Command::Settle { queue: queue(), tidy: true, leases });
            assert!(matches!(reply, Reply::Settled { .. }), "{reply:?}");
        }
    }

    fn meta(&self) -> String {
        let [_, _, meta, ..] = self.store.keys().queue_keys(&"orders".parse().expect("a name"));
        meta
    }

    fn fields(&mut self) -> i64 {
        let meta = self.meta();
        number(&self.store.connection().ask(&["HLEN", &meta]))
    }
}

fn granted(reply: &Reply) -> Vec<(JobId, Fence, Settlement)> {
    let Reply::Granted { fence, jobs, .. } = reply else { panic!("{reply:?}") };
    jobs.iter().map(|job| (job.id.clone(), *fence, Settlement::Ack)).collect()
}

fn number(value: &Value) -> i64 {
    let Value::Int(number) = value else { panic!("{value:?} is no number") };
    *number
}

#[test]
fn twenty_thousand_clients_that_went_are_forgotten_by_a_worker_alone() {
    let server = RedisServer::plain();
    let mut clients = Clients::new(&server);
    for client in 0..CLIENTS {
        clients.publish();
        clients.now.0 += EVERY_US;
        if client % 100 == 0 {
            clients.work();
        }
    }
    let most = clients.fields();
    let end = clients.now.0 + AFTER_US;
    while clients.now.0 < end {
        clients.work();
        clients.now.0 += POLL_US;
    }
    let left = clients.fields();
    println!("{CLIENTS} clients: meta has {most} fields, 20 minutes later {left}; the keys by size:");
    for key in words(clients.store.connection().ask(&["KEYS", "*"])) {
        let Value::Bytes(key) = key else { panic!("{key:?} is no name") };
        let key = String::from_utf8_lossy(&key).into_owned();
        println!("{:>9} {key}", number(&clients.store.connection().ask(&["MEMORY", "USAGE", &key])));
    }
    assert!(left < FIELDS_MAX, "{left} fields");
}

#[test]
fn no_script_is_long_where_a_million_sessions_were_left() {
    const SESSIONS: u64 = 1_000_000;
    const AT_ONCE: u64 = 10_000;
    let _quiet = quiet();
    measure("the longest script at a million sessions", || {
        let server = RedisServer::plain();
        let mut clients = Clients::new(&server);
        clients.publish();
        let meta = clients.meta();
        for part in 0..SESSIONS / AT_ONCE {
            let (first, last) = ((part * AT_ONCE + 1).to_string(), ((part + 1) * AT_ONCE).to_string());
            clients.store.connection().ask(&["EVAL", OLD, "1", &meta, &first, &last]);
        }
        let before = clients.fields();
        clients.store.connection().ask(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
        clients.store.connection().ask(&["CONFIG", "SET", "slowlog-max-len", "10000"]);
        clients.store.connection().ask(&["SLOWLOG", "RESET"]);
        for _ in 0..200 {
            clients.publish();
            clients.work();
            let queue = "orders".parse().expect("a name");
            let reply = clients.execute(&Command::Tend { queue, limit: 256, forward: None });
            assert!(matches!(reply, Reply::Tended { .. }), "{reply:?}");
            clients.now.0 += POLL_US;
        }
        let entries = words(clients.store.connection().ask(&["SLOWLOG", "GET", "10000"]));
        let longest = entries.into_iter().map(|entry| number(&words(entry)[2])).max().unwrap_or(0);
        let longest = Duration::from_micros(longest.unsigned_abs());
        let found = format!("{longest:?}; of {before} fields {} are left after 200 polls", clients.fields());
        if longest <= LONGEST { Ok(found) } else { Err(found) }
    });
}
