use serde_json::{Value, json};

use crate::eventually;
use crate::receiver::{ALLOW, Receiver, Reply, to};
use crate::service::Service;

/// The next job of a queue that is told.
async fn told(service: &Service, queue: &str) -> Value {
    let job = service.take(queue).await;
    let settled = service.post(&format!("/v1/leases/{}/ack", job["lease"].as_str().unwrap()), "").await;
    assert_eq!(settled.status, 200, "{settled:?}");
    job["payload"].clone()
}

#[tokio::test]
async fn a_delivery_is_told_of_with_the_answer_before_it_counts_as_done() {
    let answer = json!({ "ok": true });
    let receiver = Receiver::start(move |_, request| match request.id() {
        "long" => Reply::With(201, "content-type: text/plain\r\n", vec![b'x'; 100_000]),
        _ => Reply::json(&answer),
    })
    .await;
    let service = Service::with(&ALLOW).await;
    service.pushes("q", json!({ "url": receiver.url(), "callback": "done" }), json!({})).await;
    service.publish("q", "a").await;
    let callback = told(&service, "done").await;
    assert_eq!(
        callback,
        json!({
            "event": "delivered", "queue": "q", "id": "a", "attempt": 1, "status": 200, "truncated": false,
            "content_type": "application/json", "encoding": "json", "payload": { "ok": true }
        })
    );
    service.publish("q", "long").await;
    let callback = told(&service, "done").await;
    assert_eq!((&callback["status"], &callback["truncated"]), (&json!(201), &json!(true)));
    assert_eq!(callback["payload"].as_str().unwrap().len(), 64 << 10);
    service.counts("q", "acked", 2).await;
    assert_eq!(service.counted("done", "published").await, 2);
    service.stop().await;
}

#[tokio::test]
async fn a_delivery_that_cannot_be_told_of_does_not_count_as_done() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let service = Service::with(&ALLOW).await;
    assert_eq!(service.put("/v1/queues/done/config", r#"{"max_jobs":1}"#).await.status, 200);
    service.publish("done", "in-the-way").await;
    let push = json!({ "url": receiver.url(), "callback": "done", "timeout": "100ms" });
    service.pushes("q", push, json!({ "attempts": 9, "backoff": "100ms" })).await;
    service.publish("q", "a").await;
    let reason = eventually("the push is a failed attempt", async || {
        let job = service.get("/v1/queues/q/jobs/a").await.json;
        job["reason"].as_str().filter(|reason| !reason.is_empty()).map(str::to_owned)
    })
    .await;
    assert!(reason.starts_with("answered 200, but its callback was not published: "), "{reason}");
    assert_eq!(service.counted("q", "acked").await, 0);
    assert_eq!(told(&service, "done").await, json!({ "of": "in-the-way" }));
    service.counts("q", "acked", 1).await;
    assert_eq!(told(&service, "done").await["id"], "a");
    service.stop().await;
}

#[tokio::test]
async fn every_death_is_told_of_whoever_did_it() {
    let receiver = Receiver::start(|_, request| match request.id() {
        "gone" => Reply::status(410),
        _ => Reply::status(500),
    })
    .await;
    let service = Service::with(&ALLOW).await;
    let push = json!({ "url": receiver.url(), "failure_callback": "failed" });
    service.pushes("q", push, json!({ "attempts": 2, "backoff": "10ms" })).await;
    service.publish("q", "gone").await;
    let callback = told(&service, "failed").await;
    let expected = json!({
        "event": "dead", "queue": "q", "id": "gone", "attempts": 1, "reason": "answered 410",
        "died": callback["died"]
    });
    assert_eq!(callback, expected);
    service.publish("q", "broken").await;
    let callback = told(&service, "failed").await;
    assert_eq!((&callback["id"], &callback["attempts"]), (&json!("broken"), &json!(2)));
    // By somebody else: the queue is not pushed meanwhile, so that he is the one who takes the job.
    let off = json!({ "attempts": 2, "backoff": "10ms" });
    service.put("/v1/queues/q/config", off.to_string()).await;
    service.publish("q", "theirs").await;
    let lease = service.lease("q").await;
    let buried = service.post(&format!("/v1/leases/{lease}/bury?reason=no"), "").await;
    assert_eq!(buried.status, 200, "{buried:?}");
    let push = json!({ "url": receiver.url(), "failure_callback": "failed" });
    service.pushes("q", push, json!({ "attempts": 2, "backoff": "10ms" })).await;
    let callback = told(&service, "failed").await;
    assert_eq!((&callback["id"], &callback["reason"]), (&json!("theirs"), &json!("no")));
    assert_eq!(service.counted("failed", "published").await, 3);
    service.stop().await;
}

#[tokio::test]
async fn what_was_told_of_is_not_told_of_again_by_the_next_process() {
    let receiver = Receiver::always(Reply::status(410)).await;
    let redis = crate::redis_server::RedisServer::start(&[]).await;
    let url = redis.url();
    let arguments = [&ALLOW[..], &["--redis", &url]].concat();
    let service = Service::with(&arguments).await;
    let push = json!({ "url": receiver.url(), "failure_callback": "failed" });
    service.pushes("q", push, json!({})).await;
    for id in ["a", "b", "c"] {
        service.publish("q", id).await;
        assert_eq!(told(&service, "failed").await["id"], id);
    }
    let notes = || async {
        let client = delayline_tokio::redis::Client::open(url.clone()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut read = delayline_tokio::redis::cmd("HGET");
        let kept: Option<String> =
            read.arg("{dl}:registry:notes").arg("push-dead:q").query_async(&mut connection).await.unwrap();
        kept
    };
    let last = service.dead("q", 3).await.remove(2);
    let last = format!("{}", last["id"]);
    eventually("it is kept that c was told of", async || {
        let kept = notes().await?;
        let plain = crate::receiver::base64url(&kept);
        plain.ends_with(last.trim_matches('"')).then_some(())
    })
    .await;
    service.stop().await;
    let next = Service::with(&arguments).await;
    next.publish("q", "d").await;
    assert_eq!(told(&next, "failed").await["id"], "d");
    assert_eq!(next.counted("failed", "published").await, 4);
    next.stop().await;
}

#[tokio::test]
async fn a_job_names_its_own_callbacks_where_it_may() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let service = Service::with(&ALLOW).await;
    service.pushes("q", json!({ "url": receiver.url(), "own_callbacks": true }), json!({})).await;
    service.pushes("strict", to(&receiver), json!({})).await;
    let job = json!([{ "id": "a", "payload": 1, "headers": { "push-callback": "mine" } }]);
    for queue in ["q", "strict"] {
        service.post(&format!("/v1/queues/{queue}/batch"), job.to_string()).await;
    }
    assert_eq!(told(&service, "mine").await["id"], "a");
    let dead = service.dead("strict", 1).await.remove(0);
    let says = "its header push-callback is not allowed: leave it out";
    assert!(dead["reason"].as_str().unwrap().contains(says), "{dead}");
    assert_eq!(receiver.count(), 1);
    service.stop().await;
}
