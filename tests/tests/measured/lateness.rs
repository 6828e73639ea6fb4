//! How late jobs start on an idle queue.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_tests::{Random, RedisServer, block_on, measure};
use delayline_tokio::{Client, Context, Worker};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use crate::quiet::quiet;

const JOBS: usize = 1_000;
const DELAY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);
const MEDIAN_US: i64 = 5_000;

#[test]
fn a_job_starts_when_it_is_due() {
    let _quiet = quiet();
    measure("how late jobs start on an idle queue", || {
        let late = late();
        let [min, median, p99, max] = [0, JOBS / 2, JOBS * 99 / 100, JOBS - 1].map(|at| late[at]);
        assert!(min >= 0, "a job started {min} µs early");
        let found =
            format!("{JOBS} jobs due in {DELAY:?}, in µs: min {min}, median {median}, p99 {p99}, max {max}");
        if median <= MEDIAN_US { Ok(found) } else { Err(found) }
    });
}

/// By how many µs each job was late, in order.
fn late() -> Vec<i64> {
    let server = RedisServer::plain();
    let mut late = block_on(async {
        let client = Client::connect(&server.url()).await.expect("a client");
        let (began, begins) = unbounded_channel();
        let worker = Worker::new(&client).queue(&client.bytes("bells").unwrap(), move |job: Context| {
            let _ = began.send(late_us(&job));
            async {}
        });
        let working = tokio::spawn(worker.run());
        let late = rung(&client, begins).await;
        client.close().await;
        working.await.expect("no panic").expect("a worker that ran");
        late
    });
    late.sort_unstable();
    late
}

/// Publishes the jobs one after the other, and answers how late each was.
async fn rung(client: &Client, mut begins: UnboundedReceiver<i64>) -> Vec<i64> {
    let queue = client.bytes("bells").expect("a name");
    let mut random = Random::new(5);
    for _ in 0..JOBS {
        sleep(Duration::from_micros(random.number(0..=40_000))).await;
        queue.publish_bytes("ring").delay(DELAY).await.expect("a job is published");
    }
    let mut late = Vec::with_capacity(JOBS);
    while late.len() < JOBS {
        late.push(
            timeout(PATIENCE, begins.recv()).await.expect("all jobs start").expect("a worker that runs"),
        );
    }
    late
}

/// Redis's clock is this machine's.
fn late_us(job: &Context) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros();
    let us = |value: u128| i64::try_from(value).expect("a clock before the year 200000");
    us(now) - us(u128::from(job.due.0) * 1000)
}
