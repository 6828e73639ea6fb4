use serde_json::json;

use crate::service::Service;

async fn bury(service: &Service, ids: &[&str]) {
    for id in ids {
        service.publish("q", id).await;
        let lease = service.lease("q").await;
        service.post(&format!("/v1/leases/{lease}/bury?reason=bad+{id}"), "").await;
    }
}

#[tokio::test]
async fn dead_letters_are_listed_with_their_reasons() {
    let service = Service::start().await;
    bury(&service, &["a", "b", "c"]).await;
    let page = service.get("/v1/queues/q/dead?count=2").await.json;
    let reasons: Vec<_> = page["jobs"].as_array().unwrap().iter().map(|job| &job["reason"]).collect();
    assert_eq!(reasons, ["bad a", "bad b"]);
    assert_eq!(
        (&page["jobs"][0]["payload"], &page["jobs"][0]["state"]),
        (&json!({ "of": "a" }), &json!("dead"))
    );
    let cursor = page["cursor"].as_str().unwrap();
    let page = service.get(&format!("/v1/queues/q/dead?count=2&cursor={cursor}")).await.json;
    assert_eq!((&page["jobs"][0]["id"], &page["cursor"]), (&json!("c"), &json!(null)));
    service.get("/v1/queues/none/dead").await.is(200, json!({ "jobs": [], "cursor": null }));
}

#[tokio::test]
async fn dead_letters_are_requeued_and_purged_by_id_or_all() {
    let service = Service::start().await;
    bury(&service, &["a", "b", "c", "d"]).await;
    let requeued = service.post("/v1/queues/q/dead/requeue", r#"{"ids":["b","x"]}"#).await;
    requeued.is(200, json!({ "requeued": 1, "left": 3 }));
    let job = service.take("q").await;
    assert_eq!((&job["id"], &job["attempt"]), (&json!("b"), &json!(1)));
    let purged = service.post("/v1/queues/q/dead/purge", r#"{"ids":["a"]}"#).await;
    purged.is(200, json!({ "purged": 1, "left": 2 }));
    service
        .post("/v1/queues/q/dead/requeue", r#"{"all":true}"#)
        .await
        .is(200, json!({ "requeued": 2, "left": 0 }));
    assert_eq!(service.sizes("q").await, [2, 0, 1, 0]);
    service
        .post("/v1/queues/q/dead/purge", r#"{"all":true}"#)
        .await
        .is(200, json!({ "purged": 0, "left": 0 }));
}

#[tokio::test]
async fn more_ids_than_the_queue_takes_at_once_are_fine() {
    let service = Service::start().await;
    bury(&service, &["a"]).await;
    let mut ids: Vec<String> = (0..999).map(|n| format!("x-{n}")).collect();
    ids.push("a".into());
    let purged = service.post("/v1/queues/q/dead/purge", json!({ "ids": ids }).to_string()).await;
    purged.is(200, json!({ "purged": 1, "left": 0 }));
}
