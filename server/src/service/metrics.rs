mod requests;

use std::fmt::{Display, Write};

use delayline_tokio::{Namespace, QueueName, Stats, UnixMs};

pub(crate) use self::requests::RequestMeters;

const AGE: &str = "delayline_queue_oldest_due_seconds";

/// Tells the recorder what is counted here.
pub(crate) fn describe() {
    crate::service::push::metrics::describe();
    requests::describe();
}

/// What is known of queues as Prometheus text; names of queues need no escapes.
pub(crate) fn render_queues(queues: &[(QueueName, Stats)], now: UnixMs) -> String {
    let mut text = String::new();
    let labels = |queue: &QueueName| {
        let namespace = queue.namespace();
        let namespace = namespace.as_ref().map_or("", Namespace::as_str);
        format!("queue=\"{queue}\",namespace=\"{namespace}\"")
    };
    family(&mut text, "delayline_queue_jobs", "gauge", "Jobs by state, of at most 200 queues.");
    for (queue, stats) in queues {
        for (state, jobs) in [
            ("ready", stats.ready),
            ("delayed", stats.delayed),
            ("leased", stats.leased),
            ("dead", stats.dead),
        ] {
            sample(&mut text, "delayline_queue_jobs", &format!("{},state=\"{state}\"", labels(queue)), jobs);
        }
    }
    family(&mut text, "delayline_queue_paused", "gauge", "Whether the queue is paused.");
    for (queue, stats) in queues {
        sample(&mut text, "delayline_queue_paused", &labels(queue), u64::from(stats.paused));
    }
    family(&mut text, AGE, "gauge", "For how long the first job that is ready has been due; 0 if none is.");
    for (queue, stats) in queues {
        let overdue = stats.oldest_due.filter(|_| stats.ready > 0).map_or(0, |due| now.since(due));
        let seconds = format!("{}.{:03}", overdue / 1_000, overdue % 1_000);
        sample(&mut text, AGE, &labels(queue), seconds);
    }
    family(
        &mut text,
        "delayline_queue_events_total",
        "counter",
        "What happened to jobs since the queue came to be.",
    );
    for (queue, stats) in queues {
        for (event, count) in stats.counters.named() {
            sample(
                &mut text,
                "delayline_queue_events_total",
                &format!("{},event=\"{event}\"", labels(queue)),
                count,
            );
        }
    }
    text
}

/// Which version this is: always 1, so that it can be joined with other metrics.
pub(crate) fn build_info(text: &mut String) {
    const BUILD_INFO: &str = "delayline_build_info";
    family(text, BUILD_INFO, "gauge", "The version of the service, as a label; always 1.");
    sample(text, BUILD_INFO, concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
}

/// A metric that is one number.
pub(crate) fn single(text: &mut String, name: &str, help: &str, value: u64) {
    family(text, name, "gauge", help);
    let _ = writeln!(text, "{name} {value}");
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &str, value: impl Display) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}
