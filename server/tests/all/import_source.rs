use std::collections::BTreeMap;
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_tokio::redis::aio::MultiplexedConnection;
use delayline_tokio::redis::{Client, FromRedisValue, Pipeline, cmd};
use serde_json::Value;

use crate::program::{delayline, ended};
use crate::redis_server::RedisServer;

/// The Redis of a system whose jobs are imported.
pub(crate) struct Source {
    pub(crate) redis: RedisServer,
    connection: MultiplexedConnection,
}

impl Source {
    pub(crate) async fn start() -> Source {
        let redis = RedisServer::start(&[]).await;
        let connection = connect(&redis).await;
        Source { redis, connection }
    }

    pub(crate) async fn ask<T: FromRedisValue>(&mut self, words: &[&[u8]]) -> T {
        let mut command = cmd(str::from_utf8(words[0]).unwrap());
        words[1..].iter().for_each(|word| {
            command.arg(*word);
        });
        command.query_async(&mut self.connection).await.unwrap()
    }

    pub(crate) async fn write(&mut self, commands: &Pipeline) {
        let () = commands.query_async(&mut self.connection).await.unwrap();
    }

    /// All keys, with what they hold.
    pub(crate) async fn dump(&mut self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let keys: Vec<Vec<u8>> = self.ask(&[b"KEYS", b"*"]).await;
        let mut all = BTreeMap::new();
        for key in keys {
            let value: Vec<u8> = self.ask(&[b"DUMP", &key]).await;
            all.insert(key, value);
        }
        all
    }

    /// Whether nothing of an import is left there.
    pub(crate) async fn is_free_of_imports(&mut self) -> bool {
        self.ask::<Vec<Vec<u8>>>(&[b"KEYS", b"delayline-import*"]).await.is_empty()
    }
}

pub(crate) async fn connect(redis: &RedisServer) -> MultiplexedConnection {
    Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

/// Runs `delayline import` with JSON for its report; what it exits with, what it reports, and what it says.
pub(crate) async fn import(to: &RedisServer, words: &[&str]) -> (Option<i32>, Value, String) {
    let words: Vec<&str> = ["import"].into_iter().chain(words.iter().copied()).chain(["--json"]).collect();
    let mut command = delayline(Some(to), &words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let Output { status, stdout, stderr } = ended(command.spawn().unwrap()).await;
    (status.code(), serde_json::from_slice(&stdout).unwrap_or_default(), String::from_utf8(stderr).unwrap())
}

/// Starts `delayline import`, and kills it once so many jobs were published and some are on their way; whether some are
/// in the journal then.
pub(crate) async fn import_killed_after(
    to: &RedisServer,
    words: &[&str],
    queues: &[&str],
    published: u64,
    source: &mut Source,
    journal: &str,
) -> bool {
    let words: Vec<&str> = ["import"].into_iter().chain(words.iter().copied()).collect();
    let mut command = delayline(Some(to), &words);
    let mut import = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut connection = connect(to).await;
    crate::eventually("so many are published", async || {
        let mut there = 0;
        for queue in queues {
            let mut get = cmd("HGET");
            get.arg(format!("{{dl:0.0}}:{queue}:meta")).arg("published");
            let count: Option<u64> = get.query_async(&mut connection).await.unwrap();
            there += count.unwrap_or(0);
        }
        let on_their_way: u64 = source.ask(&[b"ZCARD", journal.as_bytes()]).await;
        (import.try_wait().unwrap().is_some() || there >= published && on_their_way > 0).then_some(())
    })
    .await;
    import.kill().await.unwrap();
    source.ask::<u64>(&[b"ZCARD", journal.as_bytes()]).await > 0
}

/// The jobs of a queue in a state, by their ids.
pub(crate) async fn listed(redis: &RedisServer, queue: &str, state: &str) -> BTreeMap<String, Value> {
    let words = ["list", queue, "--state", state, "--all", "--json"];
    let listed = crate::program::said(redis, &words).await;
    let jobs = crate::program::lines_of(listed.as_bytes());
    jobs.into_iter().map(|job| (job["id"].as_str().unwrap().to_owned(), job)).collect()
}

/// A time in JSON, in ms.
pub(crate) fn millis(time: &Value) -> u64 {
    let time: jiff::Timestamp = time.as_str().unwrap_or_else(|| panic!("{time} is no time")).parse().unwrap();
    u64::try_from(time.as_millisecond()).unwrap()
}

pub(crate) fn now_ms() -> u64 {
    u64::try_from(now().as_millis()).unwrap()
}

pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// How many jobs the tests of many are made with: `DELAYLINE_IMPORT_JOBS`, or so many.
pub(crate) fn many(usual: u64) -> u64 {
    std::env::var("DELAYLINE_IMPORT_JOBS").map_or(usual, |jobs| jobs.parse().unwrap())
}
