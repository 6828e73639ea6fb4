use delayline_core::wire::Value;
use delayline_core::{Keyspace, Prefix, Shards};

use super::life::Lives;
use crate::{Connection, Pipeline, RedisServer, words};

const LEASE_MS: u64 = 30_000;

/// Jobs that live by bare commands: records, due times, leases and states as the scripts keep them, but nothing is checked,
/// nobody is woken, and no two may do it at once. Nothing that keeps the same could cost less.
pub(super) struct Bare {
    connection: Connection,
    pool: String,
    due: String,
    leased: String,
    state: String,
    published: u64,
    now_ms: u64,
}

impl Bare {
    pub(super) fn new(server: &RedisServer, shards: Shards, queue: &str) -> Bare {
        let keys = Keyspace::new(&Prefix::default(), shards);
        let names = keys.queue_keys(&queue.parse().expect("a name"));
        let name = |number: usize| names[number].clone();
        let connection = server.connect();
        let now_ms = 1_763_700_000_000;
        let (pool, due, leased, state) = (name(3), name(4), name(5), name(6));
        Bare { connection, pool, due, leased, state, published: 0, now_ms }
    }

    /// Sends commands in one write, and answers what the last one is answered.
    fn ask(&mut self, commands: &[Vec<String>]) -> Value {
        let mut pipeline = Pipeline::default();
        for command in commands {
            pipeline.words(command);
        }
        self.connection.send_all(&mut pipeline).expect("a living connection");
        let receive = |_| self.connection.receive().expect("a living connection");
        commands.iter().map(receive).last().unwrap_or(Value::Nil)
    }
}

impl Lives for Bare {
    fn publish(&mut self, count: usize) {
        let (mut store, mut wait) = (command(&["HSET", &self.pool]), command(&["ZADD", &self.due]));
        let record = "x".repeat(124);
        for number in (self.published..).take(count) {
            let id = format!("job-{number:010}");
            store.extend([id.clone(), record.clone()]);
            wait.extend([self.now_ms.to_string(), id]);
        }
        self.published += count as u64;
        self.ask(&[store, wait]);
    }

    fn run(&mut self, count: usize) {
        let (due, now_ms, most) = (self.due.clone(), self.now_ms.to_string(), count.to_string());
        let first = command(&["ZRANGEBYSCORE", &due, "-inf", &now_ms, "WITHSCORES", "LIMIT", "0", &most]);
        let found = words(self.ask(&[first])).into_iter().step_by(2);
        let ids: Vec<String> = found.map(text).collect();
        assert_eq!(ids.len(), count);
        let all = |name: &str, key: &str| [command(&[name, key]), ids.clone()].concat();
        let (mut lease, mut keep) = (command(&["ZADD", &self.leased]), command(&["HSET", &self.state]));
        for id in &ids {
            lease.extend([(self.now_ms + LEASE_MS).to_string(), id.clone()]);
            keep.extend([id.clone(), "L".repeat(46)]);
        }
        let taken = command(&["ZREMRANGEBYRANK", &due, "0", &(count - 1).to_string()]);
        self.ask(&[all("HMGET", &self.pool), all("HMGET", &self.state), taken, lease, keep]);
        self.ask(&[
            all("HMGET", &self.state),
            all("ZREM", &self.leased),
            all("HDEL", &self.state),
            all("HDEL", &self.pool),
        ]);
    }
}

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn text(value: Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => panic!("{other:?}"),
    }
}
