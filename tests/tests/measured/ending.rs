//! How soon a process that is told to stop ends, and a worker that is dropped, whatever is in their way.

use std::future::pending;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use delayline_tests::{Process, RedisServer, block_on, measure, until};
use delayline_tokio::{Client, Worker};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;

use crate::quiet::quiet;

const PATIENCE: Duration = Duration::from_secs(60);
/// How long a process goes on that was told to stop.
const STOPPED: Duration = Duration::from_secs(2);
/// How long a worker holds up who drops it: a second, and what starting and ending threads takes.
const DROPPED: Duration = Duration::from_millis(1_500);
/// More than a pipe and all buffers on the way hold.
const JOBS: usize = 300;
const BODY: usize = 20_000;

#[test]
fn a_consumer_whose_output_nobody_reads_ends_within_two_seconds() {
    measure("a consumer is told to stop, whose output nobody reads", || {
        let _quiet = quiet();
        let redis = RedisServer::plain();
        block_on(flooded(&redis.url()));
        let (_unread, output) = std::io::pipe().expect("a pipe");
        let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
        command.args(["consume", "q"]).env("DELAYLINE_REDIS_URL", redis.url());
        let mut consumer = Process::start(command.stdout(output).stderr(Stdio::null()));
        until("it has printed as much as the pipe holds", PATIENCE, || {
            block_on(is_stuck(&redis.url())).then_some(())
        });
        consumer.signal("TERM");
        within(STOPPED, took(|| assert!(until("its end", PATIENCE, || consumer.ended()).success())))
    });
}

#[test]
fn a_worker_that_is_dropped_while_redis_is_away_holds_nobody_up() {
    measure("a worker is dropped while Redis is away", || {
        let _quiet = quiet();
        let mut redis = RedisServer::plain();
        let runtime = Runtime::new().expect("a runtime");
        runtime.block_on(begun(&redis.url()));
        redis.kill();
        within(DROPPED, took(|| drop(runtime)))
    });
}

fn took(ends: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    ends();
    begun.elapsed()
}

fn within(most: Duration, took: Duration) -> Result<String, String> {
    let found = format!("it ended after {took:?}");
    if took <= most { Ok(found) } else { Err(found) }
}

/// Publishes more than anybody holds.
async fn flooded(url: &str) {
    let client = Client::connect(url).await.expect("a client");
    let queue = client.bytes("q").expect("a name");
    for published in queue.publish_all((0..JOBS).map(|_| queue.publish_bytes(vec![b'x'; BODY]))).await {
        published.expect("a job is published");
    }
    client.close().await;
}

/// Whether jobs were printed, and others cannot be.
async fn is_stuck(url: &str) -> bool {
    let client = Client::connect(url).await.expect("a client");
    let stats = client.bytes("q").expect("a name").stats(0).await.expect("statistics");
    client.close().await;
    stats.counters.acked > 0 && stats.leased > 0
}

/// A worker is left to the runtime, with a handler that does not end.
async fn begun(url: &str) {
    let client = Client::connect(url).await.expect("a client");
    let queue = client.bytes("q").expect("a name");
    let (tell, mut told) = unbounded_channel();
    let handler = move || {
        let _ = tell.send(());
        pending::<()>()
    };
    drop(tokio::spawn(Worker::new(&client).queue(&queue, handler).run()));
    queue.publish_bytes("x").await.expect("a job is published");
    told.recv().await.expect("a run");
}
