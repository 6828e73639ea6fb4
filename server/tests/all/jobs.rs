use reqwest::Method;
use serde_json::{Value, json};

use crate::redis_server::RedisServer;
use crate::service::{Service, send, text};

fn ids(page: &Value) -> Vec<&str> {
    page["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_job_can_be_looked_at_in_every_state() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?id=a&delay=1h", "1").await;
    let kept = service.get("/v1/queues/q/jobs/a").await;
    assert_eq!((&kept.json["state"], &kept.json["attempt"]), (&json!("delayed"), &json!(0)));
    service.patch("/v1/queues/q/jobs/a", r#"{"delay":"0s"}"#).await;
    let lease = service.lease("q").await;
    let kept = service.get("/v1/queues/q/jobs/a").await;
    assert_eq!((&kept.json["state"], &kept.json["attempt"]), (&json!("leased"), &json!(1)));
    assert!(kept.json["lease_ends"].is_string());
    service.post(&format!("/v1/leases/{lease}/bury?reason=no+such+address"), "").await;
    let kept = service.get("/v1/queues/q/jobs/a").await;
    assert_eq!((&kept.json["state"], &kept.json["reason"]), (&json!("dead"), &json!("no such address")));
    assert!(kept.json["died"].is_string());
    service.get("/v1/queues/q/jobs/b").await.is_problem(404, "no_such_job", "acked, cancelled or expired");
}

#[tokio::test]
async fn a_waiting_job_can_be_cancelled_and_no_other() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    service.delete("/v1/queues/q/jobs/a").await.is(200, json!({ "id": "a", "status": "cancelled" }));
    service.delete("/v1/queues/q/jobs/a").await.is_problem(404, "no_such_job", "no job a");
    service.publish("q", "b").await;
    let lease = service.lease("q").await;
    service.delete("/v1/queues/q/jobs/b").await.is_problem(409, "leased", "wait until its lease ends");
    service.post(&format!("/v1/leases/{lease}/bury"), "").await;
    service.delete("/v1/queues/q/jobs/b").await.is_problem(409, "dead", "purge it");
    assert_eq!(service.sizes("q").await, [0, 0, 0, 1]);
}

#[tokio::test]
async fn a_waiting_job_can_be_rescheduled_and_no_other() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?id=a&ttl=2h", "1").await;
    let moved = service.patch("/v1/queues/q/jobs/a", r#"{"delay":"1h"}"#).await;
    assert_eq!((moved.status.as_u16(), &moved.json["id"]), (200, &json!("a")));
    assert_eq!(text(&moved.json["due"]), text(&service.get("/v1/queues/q/jobs/a").await.json["due"]));
    let late = service.patch("/v1/queues/q/jobs/a", r#"{"at":"2035-01-01T00:00:00Z"}"#).await;
    late.is_problem(409, "expires", "choose an earlier time");
    service.patch("/v1/queues/q/jobs/a", r#"{"delay":"0s"}"#).await;
    let lease = service.lease("q").await;
    service.patch("/v1/queues/q/jobs/a", r#"{"delay":"1s"}"#).await.is_problem(
        409,
        "leased",
        "a consumer holds",
    );
    service.post(&format!("/v1/leases/{lease}/bury"), "").await;
    service.patch("/v1/queues/q/jobs/a", r#"{"delay":"1s"}"#).await.is_problem(409, "dead", "requeue it");
    service.patch("/v1/queues/q/jobs/b", r#"{"delay":"1s"}"#).await.is_problem(
        404,
        "no_such_job",
        "no job b",
    );
}

#[tokio::test]
async fn jobs_are_listed_by_their_state() {
    let service = Service::start().await;
    for (id, options) in [("a", "attempts=1"), ("b", ""), ("c", "delay=1h"), ("d", "delay=2h")] {
        service.post(&format!("/v1/queues/q/jobs?id={id}&{options}"), "1").await;
    }
    let lease = service.lease("q").await;
    service.post(&format!("/v1/leases/{lease}/nack?reason=busy"), "").await;
    service.publish("q", "e").await;
    service.take("q").await;
    for (state, expected) in
        [("ready", vec!["e"]), ("delayed", vec!["c", "d"]), ("leased", vec!["b"]), ("dead", vec!["a"])]
    {
        let page = service.get(&format!("/v1/queues/q/jobs?state={state}")).await.json;
        assert_eq!((ids(&page), &page["cursor"]), (expected, &json!(null)), "{state}");
        assert!(page["jobs"].as_array().unwrap().iter().all(|job| job["state"] == state), "{page}");
    }
    service.get("/v1/queues/none/jobs?state=dead").await.is(200, json!({ "jobs": [], "cursor": null }));
    service.get("/v1/queues/q/jobs").await.is_problem(400, "bad_option", "add state=ready");
    service.get("/v1/queues/q/jobs?state=due").await.is_problem(400, "bad_option", "no state of a job");
    let cursor = service.get("/v1/queues?count=1").await.json["cursor"].clone();
    if let Some(cursor) = cursor.as_str() {
        let of_queues = service.get(&format!("/v1/queues/q/jobs?state=ready&cursor={cursor}")).await;
        of_queues.is_problem(400, "bad_option", "not of this list");
    }
}

/// In memory, and on a Redis: spans of time that touch share no job and miss none, page by page.
#[tokio::test]
async fn jobs_are_listed_from_one_time_to_before_another() {
    let redis = RedisServer::start(&[]).await;
    for service in [Service::start().await, Service::with(&["--redis", &redis.url()]).await] {
        for n in 0..40 {
            let at = format!("2035-01-01T00:00:0{}.000Z", n / 10);
            service.post(&format!("/v1/queues/q/jobs?id=job-{n:02}&at={at}"), "1").await;
        }
        let all: Vec<String> = (0..40).map(|n| format!("job-{n:02}")).collect();
        let of = async |span: &str| {
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                let path = format!("/v1/queues/q/jobs?state=delayed&count=7&{span}{cursor}");
                let page = service.get(&path).await.json;
                found.extend(ids(&page).into_iter().map(String::from));
                match page["cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => return found,
                }
            }
        };
        assert_eq!(of("").await, all);
        assert_eq!(of("after=1970-01-01T00:00:00Z").await, all);
        let (second, third) = ("2035-01-01T00:00:01Z", "2035-01-01T00:00:02Z");
        assert_eq!(of(&format!("before={second}")).await, all[..10]);
        assert_eq!(of(&format!("after={second}&before={third}")).await, all[10..20]);
        assert_eq!(of(&format!("after={third}")).await, all[20..]);
        assert_eq!(of("after=2035-01-01T00:00:01.001Z").await, all[20..]);
        assert_eq!(of(&format!("after={third}&before={second}")).await, [""; 0]);
    }
}

#[tokio::test]
async fn many_jobs_are_cancelled_each_for_itself() {
    let service = Service::start().await;
    service.publish("q", "held").await;
    service.take("q").await;
    for n in 0..600 {
        service.post(&format!("/v1/queues/q/jobs?id=job-{n}&delay=1h"), "1").await;
    }
    let mut named: Vec<String> = (0..600).map(|n| format!("job-{n}")).collect();
    named.extend(["held", "none", "a b", "job-0"].map(String::from));
    let request = service.request(Method::DELETE, "/v1/queues/q/jobs");
    let answer = send(request.body(json!({ "ids": named }).to_string())).await;
    let results = answer.json["results"].as_array().unwrap();
    assert_eq!(results.len(), 604, "{answer:?}");
    assert!(results[..600].iter().all(|result| result["status"] == "cancelled"), "{answer:?}");
    assert_eq!(results[0], json!({ "status": "cancelled", "id": "job-0" }));
    assert_eq!(results[600], json!({ "status": "leased", "id": "held" }));
    assert_eq!(results[601], json!({ "status": "gone", "id": "none" }));
    assert_eq!((&results[602]["status"], &results[602]["code"]), (&json!("error"), &json!("bad_item")));
    assert_eq!(results[603], json!({ "status": "gone", "id": "job-0" }));
    assert_eq!(service.sizes("q").await, [0, 0, 1, 0]);
    service.delete("/v1/queues/q/jobs").await.is_problem(400, "bad_json", "write {\"ids\"");
}

#[tokio::test]
async fn many_jobs_are_rescheduled_each_for_itself() {
    let service = Service::start().await;
    for n in 0..600 {
        service.post(&format!("/v1/queues/q/jobs?id=job-{n}&delay=1h"), "1").await;
    }
    let moved = (0..600).map(|n| json!({ "id": format!("job-{n}"), "at": "2035-01-01T00:00:00Z" }));
    let others = [
        json!({ "id": "job-0", "delay": "0s" }),
        json!({ "id": "none", "delay": "5s" }),
        json!({ "id": "job-1" }),
    ];
    let body: Vec<Value> = moved.chain(others).collect();
    let answer = service.patch("/v1/queues/q/jobs", json!(body).to_string()).await;
    let results = answer.json["results"].as_array().unwrap();
    assert_eq!(results.len(), 603, "{answer:?}");
    let expected = json!({ "status": "moved", "id": "job-1", "due": "2035-01-01T00:00:00.000Z" });
    assert_eq!(results[1], expected);
    assert!(results[..600].iter().all(|result| result["status"] == "moved"), "{answer:?}");
    assert_eq!(results[601], json!({ "status": "gone", "id": "none" }));
    assert_eq!(results[602]["code"], "bad_due");
    assert_eq!(service.sizes("q").await, [1, 599, 0, 0]);
}

/// Two batches go to Redis: neither is answered, and each job says so.
#[cfg(unix)]
#[tokio::test]
async fn changes_that_are_not_answered_say_so_of_each_job() {
    let redis = RedisServer::start(&[]).await;
    let service = Service::with(&["--redis", &redis.url(), "--timeout", "1s"]).await;
    service.post("/v1/queues/q/jobs?id=job-0&delay=1h", "1").await;
    redis.pause();
    let ids: Vec<String> = (0..501).map(|n| format!("job-{n}")).collect();
    let request = service.request(Method::DELETE, "/v1/queues/q/jobs");
    let answer = send(request.body(json!({ "ids": ids }).to_string())).await;
    let results = answer.json["results"].as_array().unwrap();
    assert_eq!((answer.status.as_u16(), results.len()), (200, 501), "{answer:?}");
    for (result, id) in results.iter().zip(ids) {
        assert_eq!((&result["status"], &result["id"]), (&json!("error"), &json!(id)));
        assert!(["unknown", "not_sent"].contains(&result["code"].as_str().unwrap()), "{result}");
    }
    assert_eq!(results[0]["code"], "unknown");
    redis.resume();
}
