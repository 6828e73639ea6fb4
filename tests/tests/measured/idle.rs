//! What a worker asks of Redis when there is nothing to do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use delayline_tests::{Meter, RedisServer, block_on, until};
use delayline_tokio::{Client, Worker};
use tokio::time::sleep;

use crate::quiet::quiet;

const JOBS: usize = 100_000;
const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);
/// How long nothing is asked once a worker has begun.
const SILENCE: Duration = Duration::from_secs(1);
const MOST: u64 = 12;
/// What a client sends; all else is called within scripts.
const SENT: [&str; 8] =
    ["evalsha", "eval", "ping", "subscribe", "unsubscribe", "client|setinfo", "hello", "select"];

#[test]
fn a_worker_whose_jobs_are_far_ahead_hardly_asks() {
    let server = RedisServer::plain();
    {
        let _quiet = quiet();
        block_on(publish(&server.url()));
    }
    let calls = block_on(minute(&server));
    let trips: u64 = SENT.iter().filter_map(|command| calls.get(*command)).sum();
    println!("{trips} round trips a minute with {JOBS} jobs due tomorrow: {calls:?}");
    assert!((1..=MOST).contains(&trips), "{trips} round trips in a minute, not 1 to {MOST}");
}

/// What a worker calls in a minute, once it has begun.
async fn minute(server: &RedisServer) -> BTreeMap<String, u64> {
    let client = Client::connect(&server.url()).await.expect("a client");
    let mut meter = Meter::new(server);
    let working =
        tokio::spawn(Worker::new(&client).queue(&client.bytes("later").unwrap(), || async {}).run());
    let mut last = None;
    until("a worker that has begun", Duration::from_secs(60), || {
        if !meter.read().is_empty() {
            last = Some(Instant::now());
        }
        last.is_some_and(|last| last.elapsed() > SILENCE).then_some(())
    });
    sleep(MINUTE).await;
    let calls = meter.read();
    client.close().await;
    working.await.expect("no panic").expect("a worker that ran");
    calls
}

async fn publish(url: &str) {
    let client = Client::connect(url).await.expect("a client");
    let queue = client.bytes("later").expect("a name");
    let jobs = (0..JOBS).map(|_| queue.publish_bytes("a body").delay(DAY));
    for published in queue.publish_all(jobs).await {
        published.expect("a job is published");
    }
    client.close().await;
}
