//! Every metric of the crate's table is recorded, with its labels, and no other; and docs/metrics.md has the same table.

#[allow(dead_code)]
#[path = "driver/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use delayline_tokio::{Client, Context, Failure, SettleOutcome, Verdict, Worker, redis};
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::sync::mpsc;

use self::server::Server;

const CRATE: &str = include_str!("../src/lib.rs");
const PAGE: &str = include_str!("../../docs/metrics.md");

/// A kind of metric, its labels' names, and a label's value.
type Label = (&'static str, Vec<String>, String);

/// What was recorded so far, by name, label and its value.
struct Recorded {
    snapshotter: Snapshotter,
    labels: BTreeMap<String, BTreeSet<Label>>,
    counters: BTreeMap<(String, String), u64>,
    histograms: BTreeMap<(String, String), Vec<f64>>,
}

/// A line of a table of metrics.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    kind: String,
    labels: Vec<String>,
    values: Vec<String>,
    what: String,
}

/// One test, since the recorder is the process's.
#[tokio::test]
async fn the_table_is_what_is_recorded() {
    let debugging = DebuggingRecorder::new();
    let snapshotter = debugging.snapshotter();
    debugging.install().unwrap();
    let mut recorded = Recorded {
        snapshotter,
        labels: BTreeMap::new(),
        counters: BTreeMap::new(),
        histograms: BTreeMap::new(),
    };
    verdicts(&mut recorded).await;
    what_ends_by_itself(&mut recorded).await;
    a_lost_lease(&mut recorded).await;
    an_outage(&mut recorded).await;

    let table = rows(CRATE, "//! ");
    let named: BTreeSet<_> = table.iter().map(|row| &row.name).collect();
    assert_eq!(named, recorded.labels.keys().collect(), "the table, and what was recorded");
    for row in &table {
        for (kind, labels, value) in &recorded.labels[&row.name] {
            assert_eq!((row.kind.as_str(), &row.labels), (*kind, labels), "{row:?}");
            assert!(row.values.is_empty() || row.values.contains(value), "{value} is not in {row:?}");
        }
        for value in &row.values {
            assert!(
                recorded.labels[&row.name].iter().any(|(_, _, seen)| seen == value),
                "{value} of {row:?}"
            );
        }
    }
    let page = rows(PAGE, "");
    for row in &table {
        assert!(page.contains(row), "docs/metrics.md does not have this as the crate has it: {row:?}");
    }
}

async fn verdicts(recorded: &mut Recorded) {
    const SOON: Duration = Duration::from_secs(1);
    let (client, time) = delayline_tokio::test();
    let queue = client.bytes("verdicts").unwrap();
    time.start(Worker::new(&client).queue(&queue, judge));
    for id in ["acked", "failed", "snoozed", "buried"] {
        queue.publish_bytes("x").id(id).attempts(2).delay(SOON).await.unwrap();
    }
    assert!(queue.publish_bytes("x").id("acked").await.unwrap().duplicate);
    assert_eq!(time.advance(Duration::from_secs(86_400)).await.len(), 6);
    recorded.look();
    for (name, count) in [
        ("delayline_published_total", 4),
        ("delayline_delivered_total", 6),
        ("delayline_acked_total", 2),
        ("delayline_nacked_total", 2),
        ("delayline_snoozed_total", 1),
        ("delayline_dead_total", 2),
    ] {
        assert_eq!(recorded.count(name, "verdicts"), count, "{name}");
    }
    assert_eq!(recorded.measured("delayline_attempts", "verdicts"), [1.0, 1.0, 1.0, 2.0]);
    assert_eq!(recorded.measured("delayline_lateness_seconds", "verdicts"), [0.0; 6]);
    assert_eq!(recorded.measured("delayline_run_seconds", "verdicts").len(), 6);
}

async fn judge(context: Context) -> Result<(), Failure> {
    static SNOOZED: AtomicBool = AtomicBool::new(false);
    match context.id().as_str() {
        "failed" => Err("no".into()),
        "snoozed" if !SNOOZED.swap(true, Ordering::SeqCst) => Err(Failure::snooze(Duration::from_secs(9))),
        "buried" => Err(Failure::bury("never")),
        _ => Ok(()),
    }
}

async fn what_ends_by_itself(recorded: &mut Recorded) {
    const TTL: Duration = Duration::from_secs(10);
    let (client, time) = delayline_tokio::test();
    let [unread, held, left] = ["unread", "held", "left"].map(|name| client.bytes(name).unwrap());
    unread.publish_bytes("x").ttl(TTL).await.unwrap();
    left.publish_bytes("x").await.unwrap();
    assert_eq!(left.take().lease(TTL).await.unwrap().len(), 1);
    let mut leases = Vec::new();
    for _ in 0..3 {
        held.publish_bytes("x").ttl(TTL).await.unwrap();
        leases.push(held.take().lease(6 * TTL).await.unwrap().remove(0).lease);
    }
    time.advance(2 * TTL).await.assert_none();
    let ends = [
        (Verdict::Ack, SettleOutcome::Done),
        (Verdict::Snooze { after_ms: 1 }, SettleOutcome::Expired),
        (Verdict::Nack { after_ms: None, reason: "too late".into() }, SettleOutcome::Expired),
    ];
    for (lease, (verdict, outcome)) in leases.into_iter().zip(ends) {
        assert_eq!(client.settle(lease, verdict).await, Ok(outcome));
    }
    time.advance(TTL).await.assert_none();
    recorded.look();
    assert_eq!(recorded.count("delayline_expired_total", "unread"), 1);
    assert_eq!(recorded.count("delayline_leases_ended_total", "left"), 1);
    assert_eq!(recorded.count("delayline_expired_total", "held"), 3, "each once, whatever its verdict");
    assert_eq!(recorded.count("delayline_acked_total", "held"), 1);
    assert_eq!(recorded.count("delayline_snoozed_total", "held"), 0);
    assert_eq!(recorded.count("delayline_nacked_total", "held"), 1);
}

/// Its handler hears of it, and its time counts.
async fn a_lost_lease(recorded: &mut Recorded) {
    let client = Client::connect("memory://").await.unwrap();
    let queue = client.bytes("lost").unwrap();
    let (told, mut tells) = mpsc::unbounded_channel::<()>();
    let elsewhere = client.clone();
    let worker = Worker::new(&client).lease(Duration::from_secs(1)).queue(&queue, move |job: Context| {
        let (until_aborted, client) = (told.clone(), elsewhere.clone());
        async move {
            let _until_aborted = until_aborted;
            client.settle(job.lease.clone(), Verdict::Ack).await.unwrap();
            std::future::pending::<()>().await;
        }
    });
    let running = tokio::spawn(worker.run());
    queue.publish_bytes("x").await.unwrap();
    eventually("the lease is lost", recorded, |recorded| {
        recorded.count("delayline_leases_lost_total", "lost") == 1
    })
    .await;
    eventually("it has ended", recorded, |recorded| {
        recorded.measured("delayline_run_seconds", "lost").len() == 1
    })
    .await;
    assert_eq!(recorded.count("delayline_acked_total", "lost"), 1);
    client.close().await;
    running.await.unwrap().unwrap();
    assert!(tells.recv().await.is_none());
}

async fn an_outage(recorded: &mut Recorded) {
    let mut server = Server::spawn();
    let client = Client::connect(&server.url()).await.unwrap();
    let queue = client.bytes("outage").unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = Worker::new(&client).queue(&queue, move |_: Context| {
        let _ = tell.send(());
        async {}
    });
    let running = tokio::spawn(worker.run());
    queue.publish_bytes("x").await.unwrap();
    told.recv().await.unwrap();
    heard(&server.url()).await;
    server.kill();
    assert!(queue.publish_bytes("x").timeout(Duration::from_millis(300)).await.is_err());
    server.start();
    queue.publish_bytes("x").await.unwrap();
    told.recv().await.unwrap();
    eventually("all is counted", recorded, |recorded| {
        let counts = [
            recorded.count("delayline_round_trips_total", "answered"),
            recorded.count("delayline_round_trips_total", "lost"),
            recorded.count("delayline_reconnects_total", "commands"),
            recorded.count("delayline_reconnects_total", "wakeups"),
        ];
        counts.iter().all(|count| *count > 0)
    })
    .await;
    client.close().await;
    running.await.unwrap().unwrap();
}

/// Until an engine listens to notifications.
async fn heard(url: &str) {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut channels = redis::cmd("PUBSUB");
    channels.arg("CHANNELS");
    while channels.query_async::<Vec<String>>(&mut connection).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Looks until it is so, for a minute at most.
async fn eventually(what: &str, recorded: &mut Recorded, holds: impl Fn(&Recorded) -> bool) {
    let begun = Instant::now();
    loop {
        recorded.look();
        if holds(recorded) {
            return;
        }
        let late = begun.elapsed() > Duration::from_secs(60);
        assert!(!late, "still not so after a minute: {what}: {:?}", recorded.counters);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

impl Recorded {
    /// Adds what was recorded since.
    fn look(&mut self) {
        for (key, _, description, value) in self.snapshotter.snapshot().into_vec() {
            let (kind, key) = key.into_parts();
            let name = key.name().to_owned();
            assert!(description.is_some(), "{name} is not described");
            let labels: Vec<_> = key.labels().collect();
            let names: Vec<String> = labels.iter().map(|label| label.key().to_owned()).collect();
            let value_of = labels.first().map(|label| label.value().to_owned()).unwrap_or_default();
            let series = (name.clone(), value_of.clone());
            let is_recorded = match value {
                DebugValue::Counter(count) => {
                    *self.counters.entry(series).or_default() += count;
                    count > 0
                }
                DebugValue::Histogram(values) => {
                    let measured = self.histograms.entry(series).or_default();
                    measured.extend(values.iter().map(|value| value.0));
                    !values.is_empty()
                }
                DebugValue::Gauge(_) => true,
            };
            if is_recorded {
                let kind = match kind {
                    MetricKind::Counter => "counter",
                    MetricKind::Gauge => "gauge",
                    MetricKind::Histogram => "histogram",
                };
                self.labels.entry(name).or_default().insert((kind, names, value_of));
            }
        }
    }

    fn count(&self, name: &str, label: &str) -> u64 {
        self.counters.get(&(name.to_owned(), label.to_owned())).copied().unwrap_or_default()
    }

    /// In order of size.
    fn measured(&self, name: &str, label: &str) -> Vec<f64> {
        let measured = self.histograms.get(&(name.to_owned(), label.to_owned()));
        let mut measured = measured.cloned().unwrap_or_default();
        measured.sort_by(f64::total_cmp);
        measured
    }
}

/// The lines of tables whose first cell is a metric with labels; where one has known values, those are in parentheses.
fn rows(text: &str, margin: &str) -> Vec<Row> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(margin)?.strip_prefix("| `delayline_"));
    let rows = lines.filter_map(|line| {
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_end_matches(" |")).collect();
        let [name, kind, what, ..] = cells[..] else { panic!("not a row of a table: {line}") };
        let (kind, labels) = kind.split_once(", ")?;
        let (labels, values) = labels.split_once(" (").unwrap_or((labels, ""));
        let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some(Row {
            name: format!("delayline_{}", name.trim_end_matches('`')),
            kind: kind.to_owned(),
            labels: quoted(labels),
            values: quoted(values),
            what: what.to_owned(),
        })
    });
    rows.collect()
}
