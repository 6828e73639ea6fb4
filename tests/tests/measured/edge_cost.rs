//! What a worker that cron starts costs, as Upstash bills it: each command, and each call within a script.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use delayline_core::{
    Ceiling, Command, Config, Due, Entry, Identity, Job, Millis, Record, Reply, Session, Shards,
    Subscription, Transmit, Verdict,
};
use delayline_tests::{Meter, RedisServer, RedisStore, block_on};
use delayline_wasm::rest::Landed;
use delayline_wasm::{Limits, Summary, World, run};

use crate::quiet::quiet;

const QUEUES: [&str; 1] = ["orders"];

/// A worker, and a push that takes some time, on a real server.
struct Worker {
    store: RefCell<RedisStore>,
    began: Instant,
    delivery: Duration,
}

impl Worker {
    fn new(server: &RedisServer, delivery: Duration) -> Worker {
        let store = RefCell::new(RedisStore::new(server, Shards::default()));
        Worker { store, began: Instant::now(), delivery }
    }

    /// Publishes jobs in batches.
    fn publish(&self, jobs: usize, due: Due) {
        for (batch, numbers) in (0..jobs).collect::<Vec<_>>().chunks(Command::JOBS_MAX).enumerate() {
            let ids = numbers.iter().map(|number| format!("job-{number}"));
            self.publish_batch(1, batch as u64 + 1, ids, due);
        }
    }

    /// Publishes a job by itself, as an engine that publishes all of them.
    fn publish_one(&self, number: u32) {
        let id = format!("one-{number}");
        self.publish_batch(2, u64::from(number) + 1, [id], Due::After { ms: 0 });
    }

    fn publish_batch(&self, engine: u64, sequence: u64, ids: impl IntoIterator<Item = String>, due: Due) {
        let record = Record { body: "a body".into(), ..Record::default() };
        let record = record.encode(delayline_core::Compression::Off).expect("a record").to_bytes();
        let entry = |id: String| Entry {
            id: id.parse().expect("an id"),
            due,
            ttl_ms: 0,
            replace: false,
            edit: None,
            record: record.clone(),
        };
        let command = Command::Publish {
            queue: QUEUES[0].parse().expect("a name"),
            session: Session { engine: Identity(engine), lane: 0, sequence },
            ceiling: Ceiling { jobs: 0, bytes: 0 },
            jobs: ids.into_iter().map(entry).collect(),
        };
        let reply = self.store.borrow_mut().execute(None, &command);
        assert!(matches!(reply, Reply::Published { .. }), "{reply:?}");
    }

    fn cron(&self, identity: u64, limits: &Limits) -> Summary {
        let subscription =
            |name: &str| Subscription { queue: name.parse().expect("a name"), weight: 1, max: 200 };
        let config = Config {
            subscriptions: QUEUES.into_iter().map(subscription).collect(),
            slots: 200,
            ..Config::default()
        };
        let config = run::config(limits, config);
        block_on(run::run(self, config, limits.clone(), Identity(identity), false)).expect("a run")
    }
}

impl World for Worker {
    fn now(&self) -> Millis {
        Millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn send<'a>(&'a self, transmit: Transmit<'_>) -> impl Future<Output = Landed> + use<'a> {
        let replies = transmit.commands.iter().map(|command| self.store.borrow_mut().execute(None, command));
        let replies = replies.collect();
        async move { Landed::Replies(replies) }
    }

    async fn deliver(&self, _: Job) -> Verdict {
        tokio::time::sleep(self.delivery).await;
        Verdict::Ack
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> {
        tokio::time::sleep(Duration::from_millis(ms))
    }
}

fn sum(calls: &BTreeMap<String, u64>) -> u64 {
    calls.values().sum()
}

#[test]
fn an_idle_run_makes_four_calls() {
    let _quiet = quiet();
    let server = RedisServer::plain();
    let worker = Worker::new(&server, Duration::ZERO);
    worker.cron(7, &Limits::default());
    let mut meter = Meter::new(&server);
    let summary = worker.cron(8, &Limits::default());
    let calls = meter.read();
    println!(
        "an idle run that delivers one queue: {} calls, {} request: {calls:?}",
        sum(&calls),
        summary.requests
    );
    assert_eq!((sum(&calls), summary.requests), (4, 1));
    worker.publish(1, Due::After { ms: 3_600_000 });
    meter.read();
    worker.cron(9, &Limits::default());
    let calls = meter.read();
    println!("the same with a job due in an hour: {} calls", sum(&calls));
    assert_eq!(sum(&calls), 4);
}

#[test]
fn a_thousand_due_jobs_cost_a_quarter_of_a_call_each() {
    const JOBS: usize = 1_000;
    let _quiet = quiet();
    for (what, delivery) in [("at once", Duration::ZERO), ("in 20 ms each", Duration::from_millis(20))] {
        let server = RedisServer::plain();
        let worker = Worker::new(&server, delivery);
        worker.publish(JOBS, Due::After { ms: 0 });
        worker.cron(7, &Limits { requests: 1, ..Limits::default() });
        let mut meter = Meter::new(&server);
        let summary = worker.cron(8, &Limits { requests: 10_000, ..Limits::default() });
        let calls = sum(&meter.read());
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let a_job = calls as f64 / JOBS as f64;
        let trips = u64::from(summary.requests) - summary.delivered;
        println!(
            "{JOBS} due jobs in one run, pushed {what}: {a_job:.3} calls a job taken, pushed and settled, in {trips} round trips"
        );
        assert_eq!(summary.acked, JOBS as u64, "{summary}");
        assert!(a_job <= 0.27, "{a_job} calls a job");
    }
}

/// Prints the lines of the README's table: commands a month and what Upstash asks for them, by how often cron runs and how
/// many jobs there are, spread evenly and published one by one.
#[test]
fn a_month_of_cron_is_cheaper_than_a_queue_that_polls() {
    const DOLLARS_A_COMMAND: f64 = 0.20 / 100_000.0;
    /// BullMQ 6.7: calls a job, and a month of one idle worker.
    const BULLMQ: (f64, f64) = (37.0, 1_090_000.0);
    let _quiet = quiet();
    let shown = |calls: f64| format!("{:.2} M, ${:.2}", calls / 1e6, calls * DOLLARS_A_COMMAND);
    let mut costs = BTreeMap::new();
    for jobs_a_day in [0u32, 1_000, 10_000, 100_000, 1_000_000] {
        let jobs = f64::from(jobs_a_day) * 30.0;
        let [minute, five] = [1, 5].map(|minutes| month(jobs_a_day, minutes, &mut costs));
        let bullmq = BULLMQ.0 * jobs + BULLMQ.1;
        println!("| {jobs_a_day} | {} | {} | {} |", shown(minute), shown(five), shown(bullmq));
        assert!(minute < bullmq && five < 1.01 * minute, "{minute} {five} {bullmq}");
    }
}

fn month(jobs_a_day: u32, minutes: u32, costs: &mut BTreeMap<u32, (f64, f64)>) -> f64 {
    let runs_a_day = 24 * 60 / minutes;
    let (busy, jobs) = (runs_a_day.min(jobs_a_day), jobs_a_day.div_ceil(runs_a_day));
    let mut cost = |jobs: u32| *costs.entry(jobs).or_insert_with(|| a_run(jobs));
    let (idle, _) = cost(0);
    let (run, publish) = cost(jobs);
    let a_day = f64::from(runs_a_day - busy) * idle + f64::from(busy) * run + f64::from(jobs_a_day) * publish;
    30.0 * a_day
}

/// The calls of a run that finds so many due jobs, and of publishing one of them.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn a_run(jobs: u32) -> (f64, f64) {
    let server = RedisServer::plain();
    let worker = Worker::new(&server, Duration::ZERO);
    worker.publish(1, Due::After { ms: 0 });
    worker.cron(6, &Limits { requests: 10_000, ..Limits::default() });
    let mut meter = Meter::new(&server);
    for number in 0..jobs {
        worker.publish_one(number);
    }
    let publish = sum(&meter.read()) as f64 / f64::from(jobs.max(1));
    let summary = worker.cron(7, &Limits { requests: 10_000, stay_ms: 0, ..Limits::default() });
    assert_eq!(summary.acked, u64::from(jobs), "{summary}");
    (sum(&meter.read()) as f64, publish)
}
