use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use delayline_tokio::{QueueName, Stats};

use crate::app::Shared;

/// How many requests were answered, by method, route and status.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<BTreeMap<(String, String, u16), u64>>);

/// Counts every answer.
pub(crate) async fn count(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let method = request.method().to_string();
    let route =
        request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_string();
    let response = next.run(request).await;
    app.requests.add(method, route, response.status().as_u16());
    response
}

impl Requests {
    fn add(&self, method: String, route: String, status: u16) {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((method, route, status)).or_default() += 1;
    }

    /// The counts as Prometheus text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        family(&mut text, "delayline_http_requests_total", "counter", "Requests answered.");
        for ((method, route, status), count) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            sample(&mut text, "delayline_http_requests_total", &labels, *count);
        }
        text
    }
}

/// What is known of queues as Prometheus text; names of queues need no escapes.
pub(crate) fn render_queues(queues: &[(QueueName, Stats)]) -> String {
    let mut text = String::new();
    family(&mut text, "delayline_queue_jobs", "gauge", "Jobs by state, of at most 200 queues.");
    for (queue, stats) in queues {
        for (state, jobs) in [
            ("ready", stats.ready),
            ("delayed", stats.delayed),
            ("leased", stats.leased),
            ("dead", stats.dead),
        ] {
            sample(&mut text, "delayline_queue_jobs", &format!("queue=\"{queue}\",state=\"{state}\""), jobs);
        }
    }
    family(&mut text, "delayline_queue_paused", "gauge", "Whether the queue is paused.");
    for (queue, stats) in queues {
        sample(&mut text, "delayline_queue_paused", &format!("queue=\"{queue}\""), stats.paused.into());
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
                &format!("queue=\"{queue}\",event=\"{event}\""),
                count,
            );
        }
    }
    text
}

/// A metric that is one number.
pub(crate) fn single(text: &mut String, name: &str, help: &str, value: u64) {
    family(text, name, "gauge", help);
    let _ = writeln!(text, "{name} {value}");
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &str, value: u64) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}
