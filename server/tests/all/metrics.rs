use std::collections::{BTreeMap, BTreeSet};

use delayline_tokio::redis;
use reqwest::Method;
use serde_json::json;

use crate::eventually;
use crate::exposition::Exposition;
use crate::receiver::{ALLOW, Receiver, Reply, to};
use crate::redis_server::RedisServer;
use crate::service::{Service, send, text};
use crate::ward::{KEYS, key};

const PAGE: &str = include_str!("../../../docs/metrics.md");

/// What the service says; the counts of the process are those of all services of these tests together.
async fn scrape(service: &Service) -> Exposition {
    let answer = service.get("/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Exposition::read(&text(&answer.json))
}

#[tokio::test]
async fn what_happens_to_jobs_is_counted() {
    let service = Service::start().await;
    for id in ["a", "b", "c"] {
        service.publish("counted", id).await;
    }
    service.post("/v1/queues/counted/jobs?id=a", "again").await;
    for verb in ["ack", "nack?delay=0s", "bury", "snooze?delay=1h"] {
        let lease = service.lease("counted").await;
        assert_eq!(service.post(&format!("/v1/leases/{lease}/{verb}"), "").await.status, 200, "{verb}");
    }
    let metrics = scrape(&service).await;
    for (name, count) in [
        ("delayline_published_total", 3.0),
        ("delayline_delivered_total", 4.0),
        ("delayline_acked_total", 1.0),
        ("delayline_nacked_total", 1.0),
        ("delayline_dead_total", 1.0),
        ("delayline_snoozed_total", 1.0),
        ("delayline_lateness_seconds_count", 4.0),
        ("delayline_queue_paused", 0.0),
    ] {
        let value = metrics.value(name, &[("queue", "counted")]);
        assert!((value - count).abs() < f64::EPSILON, "{name} is {value} instead of {count}");
    }
    let late = metrics.value("delayline_lateness_seconds_bucket", &[("queue", "counted"), ("le", "3600")]);
    assert!(late >= 4.0, "{late}");
    for (state, jobs) in [("ready", 0.0), ("delayed", 1.0), ("leased", 0.0), ("dead", 1.0)] {
        let value = metrics.value("delayline_queue_jobs", &[("queue", "counted"), ("state", state)]);
        assert!((value - jobs).abs() < f64::EPSILON, "{state} is {value} instead of {jobs}");
    }
    let granted =
        metrics.value("delayline_queue_events_total", &[("queue", "counted"), ("event", "granted")]);
    assert!((granted - 4.0).abs() < f64::EPSILON, "{granted}");
    assert!(metrics.value("delayline_up", &[]) > 0.0);
}

#[tokio::test]
async fn a_queue_whose_keys_are_broken_hides_no_other() {
    let redis = RedisServer::start(&[]).await;
    let service = Service::with(&["--redis", &redis.url()]).await;
    service.publish("sound", "a").await;
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    for name in KEYS {
        let queue = format!("broken-{name}");
        service.publish(&queue, "a").await;
        redis::cmd("SET").arg(key(&queue, name)).arg("garbage").exec(&mut connection).unwrap();
        let metrics = scrape(&service).await;
        assert!(metrics.value("delayline_up", &[]) > 0.0, "{name}");
        let sound = metrics.value("delayline_queue_jobs", &[("queue", "sound"), ("state", "ready")]);
        assert!((sound - 1.0).abs() < f64::EPSILON, "{name}: {sound} jobs are ready");
        assert_eq!(service.sizes("sound").await, [1, 0, 0, 0], "{name}");
    }
    assert_eq!(service.take("sound").await["id"], "a");
}

#[tokio::test]
async fn requests_are_counted_and_measured() {
    const ROUTE: &str = "/v1/queues/{queue}/jobs";
    let service = Service::start().await;
    let before = scrape(&service).await;
    service.publish("q", "a").await;
    service.get("/nowhere").await;
    send(service.request(Method::from_bytes(b"BREW").unwrap(), "/v1/take")).await;
    let after = scrape(&service).await;
    for labels in [
        &[("method", "POST"), ("route", ROUTE), ("status", "201")],
        &[("method", "GET"), ("route", "unmatched"), ("status", "404")],
        &[("method", "other"), ("route", "/v1/take"), ("status", "405")],
        &[("method", "GET"), ("route", "/metrics"), ("status", "200")],
    ] {
        let name = "delayline_http_requests_total";
        assert!(after.value(name, labels) >= 1.0 + before.value(name, labels), "{labels:?}");
        let name = "delayline_http_request_seconds_count";
        assert!(after.value(name, &labels[..2]) >= 1.0 + before.value(name, &labels[..2]), "{labels:?}");
    }
}

#[tokio::test]
async fn names_that_are_made_up_are_counted_together() {
    let service = Service::start().await;
    for n in 0..30 {
        let jobs = (0..10).map(|m| format!("made-up-{}", 10 * n + m));
        let publishing = jobs.map(async |queue| service.publish(&queue, "a").await);
        futures_util::future::join_all(publishing).await;
    }
    let metrics = scrape(&service).await;
    let series = metrics.series("delayline_published_total");
    let made_up = series.iter().filter(|labels| labels["queue"].starts_with("made-up-")).count();
    assert_eq!(made_up, 200);
    let series = metrics.series("delayline_queue_jobs");
    let measured: BTreeSet<&str> = series.iter().map(|labels| &*labels["queue"]).collect();
    assert!(measured.len() <= 200, "sizes of {} queues", measured.len());
    let others = metrics.value("delayline_published_total", &[("queue", "(others)")]);
    assert!(others >= 100.0, "{others}");
}

#[tokio::test]
async fn queues_are_measured_again_only_when_what_is_known_is_old() {
    let service = Service::start().await;
    let ready = [("queue", "measured"), ("state", "ready")];
    service.publish("measured", "a").await;
    let first = scrape(&service).await.value("delayline_queue_jobs", &ready);
    service.publish("measured", "b").await;
    let second = scrape(&service).await.value("delayline_queue_jobs", &ready);
    assert!((first - 1.0).abs() < f64::EPSILON && (second - first).abs() < f64::EPSILON, "{first}, {second}");
}

#[tokio::test]
async fn an_outage_is_counted_and_all_metrics_are_documented() {
    let mut redis = RedisServer::start(&[]).await;
    let url = redis.url();
    let service = Service::with(&[&ALLOW[..], &["--redis", &url, "--timeout", "1s"]].concat()).await;
    service.publish("outage", "a").await;
    fails_to_push(&service).await;
    let before = scrape(&service).await;
    redis.is_listened_to().await;
    redis.kill();
    // Sent to a Redis that is gone, or not even that.
    let lost = service.post("/v1/queues/outage/jobs", "1").await;
    assert!([503, 504].contains(&lost.status.as_u16()), "{lost:?}");
    redis.replace().await;
    eventually("it is ready", async || (service.get("/readyz").await.status == 200).then_some(())).await;
    let after = eventually("all is counted", async || {
        let after = scrape(&service).await;
        let has_grown = [
            ("delayline_round_trips_total", [("outcome", "answered")]),
            ("delayline_round_trips_total", [("outcome", "lost")]),
            ("delayline_reconnects_total", [("connection", "commands")]),
            ("delayline_reconnects_total", [("connection", "wakeups")]),
        ]
        .iter()
        .all(|(name, labels)| after.value(name, labels) > before.value(name, labels));
        has_grown.then_some(after)
    })
    .await;

    let page = documented();
    assert_eq!(after.families(), page.keys().copied().collect());
    for (name, (kind, labels)) in page {
        assert_eq!((after.kind(name), &after.labels(name)), (kind, &labels), "{name}");
    }
}

/// Pushes to a target that fails, until it is held back.
async fn fails_to_push(service: &Service) {
    let receiver = Receiver::always(Reply::status(500)).await;
    service.pushes("pushed", to(&receiver), json!({ "backoff": "1h" })).await;
    for id in ["a", "b", "c", "d", "e"] {
        service.publish("pushed", id).await;
    }
    let open = [("host", format!("http://{}", receiver.address))];
    let open = open.each_ref().map(|(label, host)| (*label, host.as_str()));
    eventually("the target is held back", async || {
        (scrape(service).await.value("delayline_push_circuit_open", &open) > 0.0).then_some(())
    })
    .await;
}

/// The kinds and labels of the table in docs/metrics.md.
pub(crate) fn documented() -> BTreeMap<&'static str, (&'static str, BTreeSet<&'static str>)> {
    let lines = PAGE.lines().filter(|line| line.starts_with("| `delayline_"));
    let rows = lines.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, kind, _, alarm] = cells[..] else { panic!("not a row of four cells: {line}") };
        assert!(!alarm.is_empty(), "{line}");
        let (kind, labels) = kind.split_once(", ").unwrap_or((kind, ""));
        let mut depth = 0_u32;
        let labels = labels.split_inclusive(['(', ')', ',']).filter_map(|part| {
            let is_label = depth == 0;
            depth = if part.ends_with('(') {
                1
            } else if part.ends_with(')') {
                0
            } else {
                depth
            };
            part.split('`').nth(1).filter(|_| is_label)
        });
        (name.trim_matches('`'), (kind, labels.collect()))
    });
    rows.collect()
}
