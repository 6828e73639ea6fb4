//! What is counted and measured, by the `metrics` facade. The crate's documentation has the table.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use delayline_core::{Job as Delivery, QueueName, SettleOutcome, Verdict};
use metrics::{Counter, Histogram, Label, SharedString, Unit, counter, histogram};

const PUBLISHED: &str = "delayline_published_total";
const DELIVERED: &str = "delayline_delivered_total";
const ACKED: &str = "delayline_acked_total";
const NACKED: &str = "delayline_nacked_total";
const SNOOZED: &str = "delayline_snoozed_total";
const DEAD: &str = "delayline_dead_total";
const EXPIRED: &str = "delayline_expired_total";
const LEASES_ENDED: &str = "delayline_leases_ended_total";
const LEASES_LOST: &str = "delayline_leases_lost_total";
const LATENESS: &str = "delayline_lateness_seconds";
const RUN: &str = "delayline_run_seconds";
const ATTEMPTS: &str = "delayline_attempts";
const ROUND_TRIPS: &str = "delayline_round_trips_total";
const RECONNECTS: &str = "delayline_reconnects_total";

/// The most queues that have series of their own; those beyond are counted together.
const QUEUES: usize = 200;
/// What they are counted as: no queue can have this name.
const OTHERS: &str = "(others)";
/// A recorder may end a series that was not used for twice as long: until then it is the same one.
const FRESH: Duration = Duration::from_secs(15 * 60);
/// A queue of which nothing was counted for so long makes way for another.
const IDLE: Duration = Duration::from_secs(60 * 60);
const SWEPT_EVERY: Duration = Duration::from_secs(60);

static ANSWERED: [Label; 1] = [Label::from_static_parts("outcome", "answered")];
static LOST: [Label; 1] = [Label::from_static_parts("outcome", "lost")];

/// The meters of an engine.
pub(crate) struct Meters {
    queues: HashMap<QueueName, QueueMeters>,
    others: QueueMeters,
    swept: Instant,
    answered: Meter<Counter>,
    lost: Meter<Counter>,
}

/// The meters of a queue, or of many together.
pub(crate) struct QueueMeters {
    /// Its name and its namespace.
    labels: [Label; 2],
    used: Instant,
    published: Meter<Counter>,
    delivered: Meter<Counter>,
    acked: Meter<Counter>,
    nacked: Meter<Counter>,
    snoozed: Meter<Counter>,
    dead: Meter<Counter>,
    expired: Meter<Counter>,
    leases_ended: Meter<Counter>,
    leases_lost: Meter<Counter>,
    lateness: Meter<Histogram>,
    run: Meter<Histogram>,
    attempts: Meter<Histogram>,
}

/// A series, which is opened again if it was not used for long.
struct Meter<M> {
    name: &'static str,
    series: M,
    used: Instant,
}

impl Meters {
    pub(crate) fn new() -> Meters {
        describe();
        Meters {
            queues: HashMap::new(),
            others: QueueMeters::new(SharedString::const_str(OTHERS), SharedString::const_str("")),
            swept: Instant::now(),
            answered: Meter::new(ROUND_TRIPS, &ANSWERED),
            lost: Meter::new(ROUND_TRIPS, &LOST),
        }
    }

    /// The meters of a queue, if it is one of the first so many that are in use, or else those of all others.
    pub(crate) fn of(&mut self, queue: &QueueName) -> &mut QueueMeters {
        let now = Instant::now();
        let Meters { queues, others, swept, .. } = self;
        if queues.len() >= QUEUES && !queues.contains_key(queue) {
            if now.duration_since(*swept) >= SWEPT_EVERY {
                *swept = now;
                queues.retain(|_, meters| now.duration_since(meters.used) < IDLE);
            }
            if queues.len() >= QUEUES {
                return others.at(now);
            }
        }
        let shared = |text: &str| SharedString::from_shared(Arc::from(text));
        let namespace =
            || queue.namespace().map_or_else(|| shared(""), |namespace| shared(namespace.as_str()));
        let new = || QueueMeters::new(shared(queue.as_str()), namespace());
        queues.entry(queue.clone()).or_insert_with(new).at(now)
    }

    pub(crate) fn round_trip(&mut self, is_answered: bool) {
        let (meter, labels) =
            if is_answered { (&mut self.answered, &ANSWERED) } else { (&mut self.lost, &LOST) };
        meter.add(labels, Instant::now(), 1);
    }
}

impl QueueMeters {
    fn new(name: SharedString, namespace: SharedString) -> QueueMeters {
        let labels = [Label::new("queue", name), Label::new("namespace", namespace)];
        QueueMeters {
            used: Instant::now(),
            published: Meter::new(PUBLISHED, &labels),
            delivered: Meter::new(DELIVERED, &labels),
            acked: Meter::new(ACKED, &labels),
            nacked: Meter::new(NACKED, &labels),
            snoozed: Meter::new(SNOOZED, &labels),
            dead: Meter::new(DEAD, &labels),
            expired: Meter::new(EXPIRED, &labels),
            leases_ended: Meter::new(LEASES_ENDED, &labels),
            leases_lost: Meter::new(LEASES_LOST, &labels),
            lateness: Meter::new(LATENESS, &labels),
            run: Meter::new(RUN, &labels),
            attempts: Meter::new(ATTEMPTS, &labels),
            labels,
        }
    }

    fn at(&mut self, now: Instant) -> &mut QueueMeters {
        self.used = now;
        self
    }

    pub(crate) fn published(&mut self) {
        self.published.add(&self.labels, self.used, 1);
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn delivered(&mut self, delivery: &Delivery) {
        self.delivered.add(&self.labels, self.used, 1);
        self.lateness.record(&self.labels, self.used, delivery.late_ms as f64 / 1000.0);
    }

    pub(crate) fn ran(&mut self, time: Duration) {
        self.run.record(&self.labels, self.used, time.as_secs_f64());
    }

    pub(crate) fn lease_lost(&mut self) {
        self.leases_lost.add(&self.labels, self.used, 1);
    }

    pub(crate) fn tended(&mut self, ended: u64, expired: u64) {
        self.leases_ended.add(&self.labels, self.used, ended);
        self.expired.add(&self.labels, self.used, expired);
    }

    /// A verdict was carried out; `attempt` if it is known. A job that had expired meanwhile was counted as such by whoever
    /// tended its queue.
    pub(crate) fn settled(&mut self, kind: Kind, attempt: Option<u16>, outcome: SettleOutcome) {
        let QueueMeters { labels, used, .. } = self;
        let is_over = match outcome {
            SettleOutcome::Died => {
                self.dead.add(labels, *used, 1);
                true
            }
            SettleOutcome::Expired => false,
            SettleOutcome::Done => kind == Kind::Ack,
            SettleOutcome::Gone
            | SettleOutcome::Stale
            | SettleOutcome::Repeat
            | SettleOutcome::Conflict(_) => return,
        };
        match kind {
            Kind::Nack => self.nacked.add(labels, *used, 1),
            Kind::Ack if outcome == SettleOutcome::Done => self.acked.add(labels, *used, 1),
            Kind::Snooze if outcome == SettleOutcome::Done => self.snoozed.add(labels, *used, 1),
            Kind::Ack | Kind::Snooze | Kind::Other => {}
        }
        if let Some(attempt) = attempt.filter(|_| is_over) {
            self.attempts.record(labels, *used, f64::from(attempt));
        }
    }
}

impl<M: Series> Meter<M> {
    fn new(name: &'static str, labels: &[Label]) -> Meter<M> {
        Meter { name, series: M::open(name, labels), used: Instant::now() }
    }

    fn at(&mut self, labels: &[Label], now: Instant) -> &M {
        if now.duration_since(self.used) >= FRESH {
            self.series = M::open(self.name, labels);
        }
        self.used = now;
        &self.series
    }
}

impl Meter<Counter> {
    fn add(&mut self, labels: &[Label], now: Instant, count: u64) {
        if count > 0 {
            self.at(labels, now).increment(count);
        }
    }
}

impl Meter<Histogram> {
    fn record(&mut self, labels: &[Label], now: Instant, value: f64) {
        self.at(labels, now).record(value);
    }
}

/// What a recorder keeps.
trait Series {
    /// The series of this name and these labels: the same as before, unless it has ended.
    fn open(name: &'static str, labels: &[Label]) -> Self;
}

impl Series for Counter {
    fn open(name: &'static str, labels: &[Label]) -> Counter {
        counter!(name, labels.to_vec())
    }
}

impl Series for Histogram {
    fn open(name: &'static str, labels: &[Label]) -> Histogram {
        histogram!(name, labels.to_vec())
    }
}

/// What a verdict is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ack,
    Nack,
    Snooze,
    Other,
}

impl From<&Verdict> for Kind {
    fn from(verdict: &Verdict) -> Kind {
        match verdict {
            Verdict::Ack => Kind::Ack,
            Verdict::Nack { .. } => Kind::Nack,
            Verdict::Snooze { .. } => Kind::Snooze,
            Verdict::Release | Verdict::Bury { .. } => Kind::Other,
        }
    }
}

pub(crate) fn reconnected(connection: &'static str) {
    counter!(RECONNECTS, "connection" => connection).increment(1);
}

fn describe() {
    for (name, what) in [
        (PUBLISHED, "Jobs accepted from this process."),
        (DELIVERED, "Deliveries to this process."),
        (ACKED, "Jobs this process has acknowledged."),
        (NACKED, "Attempts that failed in this process."),
        (SNOOZED, "Deliveries this process has put off."),
        (DEAD, "Jobs that died of a verdict of this process."),
        (EXPIRED, "Jobs whose TTL this process found ended when it tended their queue."),
        (
            LEASES_ENDED,
            "Leases, of whomever, that this process found ended without a verdict when it tended their queue.",
        ),
        (LEASES_LOST, "Leases that this process lost while a handler ran."),
        (ROUND_TRIPS, "Round trips to Redis."),
        (RECONNECTS, "Connections to Redis made again."),
    ] {
        metrics::describe_counter!(name, what);
    }
    metrics::describe_histogram!(LATENESS, Unit::Seconds, "From a job's due time to its delivery.");
    metrics::describe_histogram!(RUN, Unit::Seconds, "How long handlers ran.");
    metrics::describe_histogram!(
        ATTEMPTS,
        Unit::Count,
        "The attempt at which jobs of this process's workers were done, or died."
    );
}
