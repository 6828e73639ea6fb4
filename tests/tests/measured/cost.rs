//! What a job's life costs, in commands that Redis carries out: each call of a script, and each within one.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use delayline_tests::{Meter, Random, RedisServer, block_on, until};
use delayline_tokio::{Client, Delivery, Publish, Queue, SettleOutcome, Verdict};

use crate::quiet::quiet;

const DAY: Duration = Duration::from_secs(86_400);
const MONTH_MS: u64 = 30 * 86_400_000;

/// Calls a job, by step.
struct Cost {
    publish: f64,
    take: f64,
    ack: f64,
}

impl Cost {
    fn life(&self) -> f64 {
        self.publish + self.take + self.ack
    }
}

#[test]
fn a_life_is_cheap_in_batches_and_alone() {
    let _quiet = quiet();
    let hundreds = measured("batches of 100, due now", 10_000, 100, |job, _| job);
    let ones = measured("batches of 1, due now", 500, 1, |job, _| job);
    assert!(hundreds.life() <= 0.265, "{} calls a job in batches of 100", hundreds.life());
    assert!(ones.life() <= 23.5, "{} calls a job in batches of 1", ones.life());
}

#[test]
fn due_times_spread_over_a_month_cost_the_same() {
    let _quiet = quiet();
    let mut random = Random::new(7);
    let mut back =
        |job: Publish, now: SystemTime| job.at(now - Duration::from_millis(random.number(0..=MONTH_MS)));
    let hundreds = measured("batches of 100, due over the last 30 days", 10_000, 100, &mut back);
    let ones = measured("batches of 1, due over the last 30 days", 500, 1, &mut back);
    assert!(hundreds.life() <= 0.265, "{} calls a job in batches of 100", hundreds.life());
    assert!(ones.life() <= 23.5, "{} calls a job in batches of 1", ones.life());
    let mut random = Random::new(8);
    let near = published("batches of 100, published for tomorrow", |job, _| job.delay(DAY));
    let ahead = published("batches of 100, published for the next 30 days", |job, now| {
        job.at(now + Duration::from_millis(random.number(0..=MONTH_MS)))
    });
    assert!(ahead <= near + 0.01, "{ahead} calls a job if spread, {near} if not");
}

/// Lives, step by step, on a server of their own.
fn measured(
    what: &str,
    jobs: usize,
    batch: usize,
    mut option: impl FnMut(Publish, SystemTime) -> Publish,
) -> Cost {
    let server = RedisServer::plain();
    block_on(async {
        let client = Client::connect(&server.url()).await.expect("a client");
        let queue = client.bytes("orders").expect("a name");
        let mut meter = Meter::new(&server);
        publish(&queue, jobs, batch, &mut option).await;
        let published = meter.read();
        let mut taken = Vec::new();
        for _ in 0..jobs / batch {
            taken.push(take(&queue, batch).await);
        }
        let granted = meter.read();
        for jobs in taken {
            ack(&client, jobs).await;
        }
        let acked = settled(&mut meter);
        let [publish, take, ack] = [&published, &granted, &acked].map(|calls| a_job(calls, jobs));
        let cost = Cost { publish, take, ack };
        println!(
            "{what}: {:.3} calls a job = publish {publish:.3} + take {take:.3} + ack {ack:.3}",
            cost.life()
        );
        client.close().await;
        cost
    })
}

fn published(what: &str, mut option: impl FnMut(Publish, SystemTime) -> Publish) -> f64 {
    const JOBS: usize = 10_000;
    let server = RedisServer::plain();
    block_on(async {
        let client = Client::connect(&server.url()).await.expect("a client");
        let queue = client.bytes("orders").expect("a name");
        let mut meter = Meter::new(&server);
        publish(&queue, JOBS, 100, &mut option).await;
        let cost = a_job(&meter.read(), JOBS);
        println!("{what}: {cost:.3} calls a job");
        client.close().await;
        cost
    })
}

async fn publish(
    queue: &Queue,
    jobs: usize,
    batch: usize,
    option: &mut impl FnMut(Publish, SystemTime) -> Publish,
) {
    for _ in 0..jobs / batch {
        let now = SystemTime::now();
        let drafts: Vec<Publish> = (0..batch).map(|_| option(queue.publish_bytes("a body"), now)).collect();
        for published in queue.publish_all(drafts).await {
            published.expect("a job is published");
        }
    }
}

async fn take(queue: &Queue, batch: usize) -> Vec<Delivery> {
    let count = u16::try_from(batch).expect("a small batch");
    let jobs = queue.take().count(count).await.expect("an answer");
    assert_eq!(jobs.len(), batch, "all jobs are due");
    jobs
}

async fn ack(client: &Client, jobs: Vec<Delivery>) {
    let acks = jobs.into_iter().map(|job| (job.lease, Verdict::Ack)).collect();
    for outcome in client.settle_all(acks).await {
        assert_eq!(outcome.expect("an answer"), SettleOutcome::Done);
    }
}

/// What was counted until nothing more happens.
fn settled(meter: &mut Meter) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    until("an idle server", Duration::from_secs(60), || {
        let more = meter.read();
        let idle = more.is_empty();
        for (command, calls) in more {
            *all.entry(command).or_default() += calls;
        }
        idle.then(|| std::mem::take(&mut all))
    })
}

fn a_job(calls: &BTreeMap<String, u64>, jobs: usize) -> f64 {
    let calls: u64 = calls.values().sum();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    return calls as f64 / jobs as f64;
}
