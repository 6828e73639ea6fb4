//! How late jobs start on an idle queue.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_tests::{Random, RedisServer, block_on, measure};
use delayline_tokio::redis::aio::MultiplexedConnection;
use delayline_tokio::redis::{self, IntoConnectionInfo};
use delayline_tokio::{Client, Context, Worker, tuned};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use crate::quiet::quiet;

const JOBS: usize = 500;
const DELAY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);
const MEDIAN_US: i64 = 5_000;
/// How many tenths of what a bare timer takes a job may take where that is more.
const BARE_TENTHS: i64 = 25;

/// A machine that is slow to wake shows it by how late a bare timer is that sends Redis one command.
#[test]
fn a_job_starts_when_it_is_due() {
    let _quiet = quiet();
    measure("how late jobs start on an idle queue", || {
        let (late, bare) = late();
        let [min, median, p99, max] = [0, JOBS / 2, JOBS * 99 / 100, JOBS - 1].map(|at| late[at]);
        assert!(min >= 0, "a job started {min} µs early");
        let bare = bare[JOBS / 2];
        let found = format!(
            "{JOBS} jobs due in {DELAY:?}, in µs: min {min}, median {median}, p99 {p99}, max {max}; a bare timer and a PING: \
             median {bare}"
        );
        if median <= MEDIAN_US.max(bare * BARE_TENTHS / 10) { Ok(found) } else { Err(found) }
    });
}

/// By how many µs each job was late, and each bare timer beside it, both in order.
fn late() -> (Vec<i64>, Vec<i64>) {
    let server = RedisServer::plain();
    let (due, dues) = unbounded_channel();
    // In a runtime of their own: what holds the worker up must not make bare timers late too, and so excuse itself.
    let (mut late, mut bare) = thread::scope(|scope| {
        let bare = scope.spawn(|| block_on(timers(&server, dues)));
        let late = block_on(jobs(&server, due));
        (late, bare.join().expect("no panic"))
    });
    late.sort_unstable();
    bare.sort_unstable();
    (late, bare)
}

/// Publishes the jobs one after the other, tells of each when a bare timer is to end beside it, and answers how late each
/// job was.
async fn jobs(server: &RedisServer, due: UnboundedSender<u64>) -> Vec<i64> {
    let client = Client::connect(&server.url()).await.expect("a client");
    let (began, mut begins) = unbounded_channel();
    let worker = Worker::new(&client).queue(&client.bytes("bells").unwrap(), move |job: Context| {
        let _ = began.send(late_us(job.due.0));
        async {}
    });
    let working = tokio::spawn(worker.run());
    let queue = client.bytes("bells").expect("a name");
    let mut random = Random::new(5);
    for _ in 0..JOBS {
        sleep(Duration::from_micros(random.number(0..=40_000))).await;
        queue.publish_bytes("ring").delay(DELAY).await.expect("a job is published");
        due.send(now_us() / 1000 + u64::try_from(DELAY.as_millis()).expect("a delay of ms"))
            .expect("timers that run");
    }
    drop(due);
    let mut late = Vec::with_capacity(JOBS);
    while late.len() < JOBS {
        late.push(
            timeout(PATIENCE, begins.recv()).await.expect("all jobs start").expect("a worker that runs"),
        );
    }
    client.close().await;
    working.await.expect("no panic").expect("a worker that ran");
    late
}

/// How late each bare timer was.
async fn timers(server: &RedisServer, mut dues: UnboundedReceiver<u64>) -> Vec<i64> {
    let info = server.url().into_connection_info().expect("an address");
    let connection = redis::Client::open(tuned(info)).expect("a client");
    let connection = connection.get_multiplexed_async_connection().await.expect("a connection");
    let mut timers = Vec::with_capacity(JOBS);
    while let Some(due_ms) = dues.recv().await {
        timers.push(tokio::spawn(timer_late_us(connection.clone(), due_ms)));
    }
    let mut late = Vec::with_capacity(JOBS);
    for timer in timers {
        late.push(timer.await.expect("no panic"));
    }
    late
}

/// How late Redis has answered a command that is sent when a timer says so.
async fn timer_late_us(mut connection: MultiplexedConnection, due_ms: u64) -> i64 {
    sleep(Duration::from_micros((due_ms * 1000).saturating_sub(now_us()))).await;
    redis::cmd("PING").exec_async(&mut connection).await.expect("an answer");
    late_us(due_ms)
}

/// Redis's clock is this machine's.
fn late_us(due_ms: u64) -> i64 {
    let us = |value: u64| i64::try_from(value).expect("a clock before the year 200000");
    us(now_us()) - us(due_ms * 1000)
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros();
    u64::try_from(now).expect("a clock before the year 200000")
}
