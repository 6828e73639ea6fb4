use std::time::SystemTime;

use jiff::Timestamp;
use reqwest::Method;
use serde_json::json;

use crate::service::{Service, send, text};

#[tokio::test]
async fn the_three_lines_of_the_readme() {
    let service = Service::start().await;
    let curl_form = "application/x-www-form-urlencoded";
    let request = service.request(Method::POST, "/v1/queues/welcome/jobs?delay=300ms");
    let published = send(request.header("content-type", curl_form).body(r#"{"to": "ann"}"#)).await;
    assert_eq!(published.status, 201);
    let (id, due) = (text(&published.json["id"]), text(&published.json["due"]));
    assert_eq!(published.headers["location"], format!("/v1/queues/welcome/jobs/{id}"));
    assert!(due.ends_with('Z') && due.len() == "2026-11-21T10:00:05.000Z".len(), "{due}");

    let job = service.take("welcome").await;
    let late =
        SystemTime::now().duration_since(due.parse::<Timestamp>().unwrap().into()).expect("never early");
    assert!(late.as_secs() < 5, "{late:?}");
    assert_eq!((&job["id"], &job["due"], &job["queue"]), (&json!(id), &json!(due), &json!("welcome")));
    assert_eq!((&job["encoding"], &job["payload"]), (&json!("json"), &json!({ "to": "ann" })));

    let lease = text(&job["lease"]);
    service.post(&format!("/v1/leases/{lease}/ack"), "").await.is(200, json!({ "status": "ok" }));
    assert_eq!(service.sizes("welcome").await, [0, 0, 0, 0]);
}

#[tokio::test]
async fn options_come_by_query_or_header() {
    let service = Service::start().await;
    let request = service
        .request(Method::POST, "/v1/queues/q/jobs?id=order:17&attempts=3")
        .header("delayline-backoff", "15s 3m")
        .header("Delayline-TTL", "1h")
        .header("Delayline-Header-Tenant", "acme")
        .header("Content-Type", "text/plain")
        .body("hello");
    assert_eq!(send(request).await.json["id"], "order:17");
    let kept = service.get("/v1/queues/q/jobs/order:17").await.json;
    assert_eq!((&kept["state"], &kept["backoff"]), (&json!("ready"), &json!("15s 3m")));
    assert!(kept["expires"].is_string(), "{kept}");
    let job = service.take("q").await;
    assert_eq!((&job["attempt"], &job["max_attempts"]), (&json!(1), &json!(3)));
    assert_eq!(job["headers"], json!({ "tenant": "acme" }));
    assert_eq!(
        (&job["content_type"], &job["encoding"], &job["payload"]),
        (&json!("text/plain"), &json!("text"), &json!("hello"))
    );
}

#[tokio::test]
async fn a_time_may_be_named() {
    let service = Service::start().await;
    let at = "2035-11-21T11:00:05.25%2B01:00";
    let published = service.post(&format!("/v1/queues/q/jobs?at={at}"), "1").await;
    assert_eq!(published.json["due"], "2035-11-21T10:00:05.250Z");
    let past = service.post("/v1/queues/q/jobs?at=2020-01-01T00:00:00Z", "1").await;
    assert_eq!(past.status, 201);
    assert_eq!(service.sizes("q").await, [1, 1, 0, 0]);
}

#[tokio::test]
async fn bytes_come_back_as_they_were() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs", vec![0, 255, 10]).await;
    let job = service.take("q").await;
    assert_eq!((&job["encoding"], &job["payload"]), (&json!("base64"), &json!("AP8K")));
    service.post("/v1/queues/q/jobs", "").await;
    assert_eq!(service.take("q").await["payload"], "");
}

#[tokio::test]
async fn a_used_id_is_a_conflict_and_shows_the_job() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let again = service.post("/v1/queues/q/jobs?id=a&delay=1h", "other").await;
    again.is_problem(409, "duplicate", "publish with another id");
    assert_eq!(
        (&again.json["job"]["id"], &again.json["job"]["payload"]),
        (&json!("a"), &json!({ "of": "a" }))
    );
    assert_eq!(again.json["job"]["state"], "ready");
    assert_eq!(service.sizes("q").await, [1, 0, 0, 0]);
}

#[tokio::test]
async fn a_waiting_job_may_be_replaced() {
    let service = Service::start().await;
    let replace = "/v1/queues/q/jobs?id=a&replace=true";
    let first = service.post(&format!("{replace}&delay=1h&ttl=2h"), "old").await;
    assert_eq!((first.status.as_u16(), &first.json["replaced"]), (201, &json!(null)));
    let second = service.post(replace, "new").await;
    assert_eq!((second.status.as_u16(), &second.json["replaced"]), (201, &json!(true)));
    assert_eq!(second.headers["location"], "/v1/queues/q/jobs/a");
    assert_eq!(service.sizes("q").await, [1, 0, 0, 0]);
    let job = service.take("q").await;
    assert_eq!((&job["id"], &job["payload"], &job["attempt"]), (&json!("a"), &json!("new"), &json!(1)));
    service.post(replace, "newer").await.is_problem(409, "duplicate", "only one that waits is replaced");
    assert_eq!(service.sizes("q").await, [0, 0, 1, 0]);
    assert_eq!(service.post("/v1/queues/q/jobs?replace=false", "1").await.status, 201);
}

#[tokio::test]
async fn an_idempotency_key_may_be_repeated() {
    let service = Service::start().await;
    for quoted in ["key-1", "\"key-1\""] {
        let request =
            service.request(Method::POST, "/v1/queues/q/jobs?delay=1h").header("Idempotency-Key", quoted);
        let answer = send(request.body("1")).await;
        let is_first = !quoted.starts_with('"');
        assert_eq!(answer.status, if is_first { 201 } else { 200 });
        assert_eq!(answer.json["id"], "key-1");
        assert_eq!(answer.json["duplicate"], if is_first { json!(null) } else { json!(true) });
        assert!(answer.json["due"].is_string());
    }
    assert_eq!(service.sizes("q").await, [0, 1, 0, 0]);
}

#[tokio::test]
async fn a_full_queue_refuses_more() {
    let service = Service::start().await;
    service.put("/v1/queues/q/config", r#"{"max_jobs":1}"#).await;
    service.publish("q", "a").await;
    let full = service.post("/v1/queues/q/jobs", "1").await;
    full.is_problem(429, "queue_full", "purge dead letters, or raise max_jobs");
    assert!(full.headers.contains_key("retry-after"));
    assert_eq!(service.sizes("q").await, [1, 0, 0, 0]);
}

#[tokio::test]
async fn options_that_are_put_into_the_body_are_not_taken_for_a_payload() {
    let service = Service::start().await;
    let described = r#"{"payload":{"to":"ann"},"delay":"1h"}"#;
    let answer = service.post("/v1/queues/q/jobs", described).await;
    answer.is_problem(400, "options_in_body", "options go into the query, as in ?delay=5s");
    service.get("/v1/queues/q").await.is_problem(404, "no_such_queue", "");
    let answer = service.post("/v1/queues/q/batch", format!("[{{\"payload\":{described}}}]")).await;
    assert_eq!(answer.json["results"][0]["status"], "created", "{answer:?}");
    let request = service.request(Method::POST, "/v1/queues/q/jobs").header("content-type", "text/plain");
    assert_eq!(send(request.body(described)).await.status, 201);
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn a_cloud_event_comes_out_as_it_went_in() {
    let service = Service::start().await;
    let attributes = [
        ("ce-specversion", "1.0"),
        ("ce-id", "A234-1234-1234"),
        ("ce-source", "/mycontext/4"),
        ("ce-type", "com.example.someevent"),
        ("ce-comexampleextension1", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
    ];
    let request = service.request(Method::POST, "/v1/queues/q/jobs").header("content-type", "text/xml");
    let request = attributes.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    assert_eq!(send(request.body("<paid/>")).await.status, 201);
    let job = service.take("q").await;
    assert_eq!(job["headers"], json!(std::collections::BTreeMap::from(attributes)));
    assert_eq!((&job["content_type"], &job["payload"]), (&json!("text/xml"), &json!("<paid/>")));

    let event =
        json!({ "specversion": "1.0", "id": "17", "source": "b", "type": "c", "data": { "payload": 1 } });
    let structured = "application/cloudevents+json; charset=utf-8";
    let request = service.request(Method::POST, "/v1/queues/q/jobs").header("content-type", structured);
    assert_eq!(send(request.body(event.to_string())).await.status, 201);
    let job = service.take("q").await;
    assert_eq!((&job["content_type"], &job["encoding"]), (&json!(structured), &json!("json")));
    assert_eq!(job["payload"], event);
}

#[tokio::test]
async fn a_trace_goes_with_each_job_that_a_request_publishes() {
    let service = Service::start().await;
    let traced = |path: &str, content_type: &str, body: &'static str| {
        let request = service.request(Method::POST, path).header("content-type", content_type);
        send(request.header("traceparent", PARENT).header("tracestate", "a=1,b=2").body(body))
    };
    traced("/v1/queues/q/jobs", "application/json", "1").await;
    traced("/v1/queues/q/batch", "application/json", r#"[{"payload":1}]"#).await;
    traced("/v1/queues/q/batch", "application/x-ndjson", r#"{"payload":1}"#).await;
    for _ in 0..3 {
        let job = service.take("q").await;
        assert_eq!((&job["traceparent"], &job["tracestate"]), (&json!(PARENT), &json!("a=1,b=2")), "{job}");
        let kept = service.get(&format!("/v1/queues/q/jobs/{}", text(&job["id"]))).await.json;
        assert_eq!(
            (&kept["traceparent"], &kept["tracestate"]),
            (&json!(PARENT), &json!("a=1,b=2")),
            "{kept}"
        );
    }
    let request = service.request(Method::POST, "/v1/queues/q/jobs").header("traceparent", "none");
    assert_eq!(send(request.body("1")).await.status, 201);
    let job = service.take("q").await;
    assert!(job.get("traceparent").is_none() && job.get("tracestate").is_none(), "{job}");
}
