use std::fmt::Write;
use std::time::Instant;

use ::metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use delayline_tokio::{QueueName, Stats};

const REQUESTS: &str = "delayline_http_requests_total";
const SECONDS: &str = "delayline_http_request_seconds";

/// Tells the recorder what is counted here.
pub(crate) fn describe() {
    describe_counter!(REQUESTS, "Requests answered.");
    describe_histogram!(SECONDS, Unit::Seconds, "From a request to the beginning of its answer.");
}

/// Counts and measures every answer.
pub(crate) async fn count(request: Request, next: Next) -> Response {
    let method = known(request.method());
    let route =
        request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_string();
    let begun = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_str().to_string();
    histogram!(SECONDS, "method" => method, "route" => route.clone()).record(begun.elapsed());
    counter!(REQUESTS, "method" => method, "route" => route, "status" => status).increment(1);
    response
}

/// Callers may make methods up, but no series by that.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
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
