use reqwest::Method;

use crate::service::{Service, send};

#[tokio::test]
async fn it_is_healthy_and_ready() {
    let service = Service::start().await;
    for path in ["/healthz", "/readyz"] {
        let answer = service.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.json.as_str()), (200, Some("ok\n")));
    }
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let answer = service.get("/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = answer.json.as_str().unwrap();
    for line in [
        "delayline_up 1",
        "delayline_queue_jobs{queue=\"q\",state=\"ready\"} 1",
        "delayline_queue_events_total{queue=\"q\",event=\"published\"} 1",
        "delayline_http_requests_total{method=\"POST\",route=\"/v1/queues/{queue}/jobs\",status=\"201\"} 1",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("delayline_") && value.parse::<u64>().is_ok(), "{line}");
    }
    service.publish("q", "b").await;
    let text = service.get("/metrics").await;
    assert!(text.json.as_str().unwrap().contains("state=\"ready\"} 1\n"), "measured again within 15 s");
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let service = Service::start().await;
    service.get("/v2/queues").await.is_problem(404, "no_such_route", "the routes are in the README");
    let answer = send(service.request(Method::PATCH, "/v1/queues/q")).await;
    answer.is_problem(405, "method_not_allowed", "the header Allow says");
    assert_eq!(answer.headers["allow"], "GET,HEAD,DELETE");
}
