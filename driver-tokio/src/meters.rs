//! What is counted and measured, by the `metrics` facade. The crate's documentation has the table.

use std::collections::HashMap;
use std::time::Duration;

use delayline_core::{Job as Delivery, QueueName, SettleOutcome, Verdict};
use metrics::{Counter, Histogram, Unit, counter, histogram};

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

/// The most queues whose meters are kept at hand.
const QUEUES: usize = 4_096;

/// The meters of an engine.
pub(crate) struct Meters {
    queues: HashMap<QueueName, QueueMeters>,
    answered: Counter,
    lost: Counter,
}

/// The meters of a queue.
pub(crate) struct QueueMeters {
    pub(crate) published: Counter,
    delivered: Counter,
    acked: Counter,
    nacked: Counter,
    snoozed: Counter,
    dead: Counter,
    expired: Counter,
    leases_ended: Counter,
    leases_lost: Counter,
    lateness: Histogram,
    run: Histogram,
    attempts: Histogram,
}

impl Meters {
    pub(crate) fn new() -> Meters {
        describe();
        Meters {
            queues: HashMap::new(),
            answered: counter!(ROUND_TRIPS, "outcome" => "answered"),
            lost: counter!(ROUND_TRIPS, "outcome" => "lost"),
        }
    }

    pub(crate) fn of(&mut self, queue: &QueueName) -> &QueueMeters {
        if self.queues.len() >= QUEUES && !self.queues.contains_key(queue) {
            self.queues.clear();
        }
        self.queues.entry(queue.clone()).or_insert_with(|| QueueMeters::new(queue))
    }

    pub(crate) fn round_trip(&self, is_answered: bool) {
        if is_answered { &self.answered } else { &self.lost }.increment(1);
    }
}

impl QueueMeters {
    fn new(queue: &QueueName) -> QueueMeters {
        let counter = |name: &'static str| counter!(name, "queue" => queue.to_string());
        let histogram = |name: &'static str| histogram!(name, "queue" => queue.to_string());
        QueueMeters {
            published: counter(PUBLISHED),
            delivered: counter(DELIVERED),
            acked: counter(ACKED),
            nacked: counter(NACKED),
            snoozed: counter(SNOOZED),
            dead: counter(DEAD),
            expired: counter(EXPIRED),
            leases_ended: counter(LEASES_ENDED),
            leases_lost: counter(LEASES_LOST),
            lateness: histogram(LATENESS),
            run: histogram(RUN),
            attempts: histogram(ATTEMPTS),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn delivered(&self, delivery: &Delivery) {
        self.delivered.increment(1);
        self.lateness.record(delivery.late_ms as f64 / 1000.0);
    }

    pub(crate) fn ran(&self, time: Duration) {
        self.run.record(time);
    }

    pub(crate) fn lease_lost(&self) {
        self.leases_lost.increment(1);
    }

    pub(crate) fn tended(&self, ended: u64, expired: u64) {
        self.leases_ended.increment(ended);
        self.expired.increment(expired);
    }

    /// A verdict was carried out; `attempt` if it is known. A job that had expired meanwhile was counted as such by whoever
    /// tended its queue.
    pub(crate) fn settled(&self, kind: Kind, attempt: Option<u16>, outcome: SettleOutcome) {
        let is_over = match outcome {
            SettleOutcome::Died => {
                self.dead.increment(1);
                true
            }
            SettleOutcome::Expired => false,
            SettleOutcome::Done => kind == Kind::Ack,
            SettleOutcome::Gone | SettleOutcome::Stale | SettleOutcome::Repeat => return,
        };
        match kind {
            Kind::Nack => self.nacked.increment(1),
            Kind::Ack if outcome == SettleOutcome::Done => self.acked.increment(1),
            Kind::Snooze if outcome == SettleOutcome::Done => self.snoozed.increment(1),
            Kind::Ack | Kind::Snooze | Kind::Other => {}
        }
        if let Some(attempt) = attempt.filter(|_| is_over) {
            self.attempts.record(f64::from(attempt));
        }
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
