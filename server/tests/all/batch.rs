use std::convert::Infallible;

use futures_util::StreamExt;
use futures_util::stream;
use reqwest::{Body, Method};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::service::{Service, send, text};

const NDJSON: &str = "application/x-ndjson";

#[tokio::test]
async fn each_item_of_an_array_has_its_outcome() {
    let service = Service::start().await;
    service.publish("q", "used").await;
    let batch = json!([
        { "payload": { "to": "ann" }, "id": "a", "delay": "1h", "headers": { "Tenant": "x" } },
        { "payload": "text", "encoding": "text", "at": "2035-11-21T10:00:05Z", "attempts": 3, "backoff": "15s 3m" },
        { "payload": 1, "id": "used" },
        { "payload": 1, "dealy": "5s" },
        { "payload": "AP8=", "encoding": "base64", "content_type": "image/x", "ttl": "1h" },
        { "payload": 1, "delay": "2h", "ttl": "1h" },
        17,
    ]);
    let answer = service.post("/v1/queues/q/batch", batch.to_string()).await;
    assert_eq!(answer.status, 200);
    let results = answer.json["results"].as_array().unwrap();
    let statuses: Vec<_> = results.iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["created", "created", "duplicate", "error", "created", "error", "error"]);
    assert_eq!((&results[0]["id"], &results[1]["due"]), (&json!("a"), &json!("2035-11-21T10:00:05.000Z")));
    assert_eq!((&results[2]["id"], &results[3]["code"]), (&json!("used"), &json!("bad_item")));
    assert!(text(&results[3]["detail"]).contains("unknown field `dealy`"));
    assert_eq!(results[5]["code"], "ttl_too_short");
    assert_eq!(service.sizes("q").await, [2, 2, 0, 0]);
    let kept = service.get(&format!("/v1/queues/q/jobs/{}", text(&results[4]["id"]))).await.json;
    assert_eq!((&kept["encoding"], &kept["payload"]), (&json!("base64"), &json!("AP8=")));
}

#[tokio::test]
async fn items_replace_waiting_jobs_in_their_order() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let batch = json!([
        { "payload": 1, "id": "a", "replace": true, "delay": "1h" },
        { "payload": 2, "id": "b", "replace": true },
        { "payload": 3, "id": "b", "replace": true, "delay": "1h" },
        { "payload": 4, "id": "a" },
        { "payload": 5, "replace": true },
    ]);
    let answer = service.post("/v1/queues/q/batch", batch.to_string()).await;
    let results = answer.json["results"].as_array().unwrap();
    let outcome = |one: &Value| (one["status"].clone(), one["replaced"].clone());
    let outcomes: Vec<_> = results.iter().map(outcome).collect();
    let replaced = (json!("created"), json!(true));
    let others = ["created", "duplicate", "error"].map(|status| (json!(status), json!(null)));
    let [created, duplicate, error] = others;
    assert_eq!(outcomes, [replaced.clone(), created, replaced, duplicate, error]);
    assert_eq!(results[4]["code"], "bad_option");
    assert_eq!(service.sizes("q").await, [0, 2, 0, 0]);
    for (id, payload) in [("a", 1), ("b", 3)] {
        assert_eq!(service.get(&format!("/v1/queues/q/jobs/{id}")).await.json["payload"], payload);
    }
}

#[tokio::test]
async fn an_array_has_at_most_a_thousand_items() {
    let service = Service::start().await;
    let items = |count: usize| Value::from(vec![json!({ "payload": 1 }); count]).to_string();
    let answer = service.post("/v1/queues/q/batch", items(1_001)).await;
    answer.is_problem(413, "too_many_items", "the array has more than 1000 items");
    service.get("/v1/queues/q").await.is_problem(404, "no_such_queue", "");
    let answer = service.post("/v1/queues/q/batch", items(1_000)).await;
    assert_eq!(answer.json["results"].as_array().unwrap().len(), 1_000);
    assert_eq!(service.sizes("q").await, [1_000, 0, 0, 0]);
}

#[tokio::test]
async fn lines_are_answered_by_lines() {
    let service = Service::with(&["--max-payload", "1KiB"]).await;
    let long = format!("{{\"payload\":\"{}\"}}", "x".repeat(80_000));
    let large = format!("{{\"payload\":\"{}\"}}", "x".repeat(1_100));
    let body = [
        "{\"payload\":1,\"id\":\"a\"}",
        "{\"payload\"",
        "",
        &long,
        &large,
        "{\"payload\":1,\"id\":\"a\"}\r",
        "{\"payload\":2}",
    ];
    let request = service.request(Method::POST, "/v1/queues/q/batch").header("content-type", NDJSON);
    let answer = send(request.body(body.join("\n"))).await;
    assert_eq!((answer.status.as_u16(), answer.headers["content-type"].to_str().unwrap()), (200, NDJSON));
    let lines: Vec<Value> =
        text(&answer.json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> =
        lines.iter().map(|line| (text(&line["status"]), line["code"].as_str().unwrap_or(""))).collect();
    let wanted = [
        ("created", ""),
        ("error", "bad_item"),
        ("error", "payload_too_large"),
        ("error", "payload_too_large"),
        ("duplicate", ""),
        ("created", ""),
    ];
    assert_eq!(seen, wanted.map(|(status, code)| (status.to_string(), code)));
    assert_eq!(service.sizes("q").await, [2, 0, 0, 0]);
}

#[tokio::test]
async fn lines_are_published_as_they_arrive() {
    let service = Service::start().await;
    let (lines, body) = mpsc::channel::<Result<String, Infallible>>(1);
    let body = stream::unfold(body, async |mut body| body.recv().await.map(|line| (line, body)));
    let request = service.request(Method::POST, "/v1/queues/q/batch").header("content-type", NDJSON);
    lines.send(Ok("{\"payload\":0}\n{\"pay".into())).await.unwrap();
    let response = request.body(Body::wrap_stream(body)).send().await.unwrap();
    let mut answers = response.bytes_stream();
    for n in 1..20 {
        let answer = answers.next().await.unwrap().unwrap();
        assert!(answer.starts_with(b"{\"status\":\"created\"") && answer.ends_with(b"}\n"), "{answer:?}");
        assert_eq!(service.sizes("q").await, [n, 0, 0, 0]);
        lines.send(Ok("load\":1}\n{\"pay".into())).await.unwrap();
    }
    drop(lines);
    let rest: Vec<_> = answers.map(Result::unwrap).collect().await;
    let rest = String::from_utf8(rest.concat()).unwrap();
    assert_eq!(rest.lines().count(), 2, "the last whole line, and the one that was cut: {rest}");
}

#[tokio::test]
async fn what_is_no_batch_is_refused() {
    let service = Service::start().await;
    let post = async |content_type: &str, body: &str| {
        let request =
            service.request(Method::POST, "/v1/queues/q/batch").header("content-type", content_type);
        send(request.body(body.to_string())).await
    };
    post("text/csv", "1").await.is_problem(415, "bad_content_type", "send a JSON array");
    post("application/json", "{\"payload\":1}").await.is_problem(400, "bad_json", "not a JSON array");
    post("application/json", "[{\"payload\":1},").await.is_problem(400, "bad_json", "EOF");
    post("application/json", "{\"payload\":1}\n{\"payload\":1}").await.is_problem(400, "bad_json", NDJSON);
    let large = format!("[{{\"payload\":\"{}\"}}]", "x".repeat(16 << 20));
    post("application/json", &large).await.is_problem(413, "body_too_large", "as NDJSON, which has no limit");
    service.get("/v1/queues/q").await.is_problem(404, "no_such_queue", "");
}
