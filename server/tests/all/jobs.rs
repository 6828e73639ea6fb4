use serde_json::json;

use crate::service::{Service, text};

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
