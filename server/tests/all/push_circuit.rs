use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::eventually;
use crate::exposition::Exposition;
use crate::receiver::{ALLOW, Receiver, Reply, to};
use crate::redis_server::RedisServer;
use crate::service::Service;

const JOBS: usize = 200;

/// A receiver that answers 500 until it is mended.
async fn broken() -> (Receiver, Arc<AtomicBool>) {
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let receiver = Receiver::start(move |_, _| {
        if is_mended.load(Ordering::Relaxed) { Reply::status(200) } else { Reply::status(500) }
    })
    .await;
    (receiver, mended)
}

async fn push_state(service: &Service, queue: &str) -> Value {
    service.get(&format!("/v1/queues/{queue}")).await.json["push_state"].clone()
}

#[tokio::test]
async fn a_dead_endpoint_is_not_hammered_and_its_jobs_keep_their_attempts() {
    let (receiver, mended) = broken().await;
    let redis = RedisServer::start(&[]).await;
    let url = redis.url();
    let service = Service::with(&[&ALLOW[..], &["--redis", &url]].concat()).await;
    for id in 0..JOBS {
        service.publish("q", &format!("job-{id}")).await;
    }
    let push = json!({ "url": receiver.url(), "concurrency": 4 });
    service.pushes("q", push, json!({ "attempts": 3, "backoff": "10ms" })).await;
    let begun = Instant::now();
    let open = eventually("the circuit opens", async || {
        let state = push_state(&service, "q").await;
        (state["circuit"] == "open").then_some(state)
    })
    .await;
    assert_eq!(open["target"], format!("http://{}", receiver.address));
    assert_eq!(open["last_failure"]["why"], "answered 500");
    assert!(open["held_until"].is_string(), "{open}");
    let metrics = service.get("/metrics").await.json;
    let metrics = Exposition::read(metrics.as_str().unwrap());
    let host = format!("http://{}", receiver.address);
    assert!(metrics.families().contains("delayline_push_circuit_open"));
    assert!(metrics.value("delayline_push_requests_total", &[("outcome", "5xx")]) >= 5.0);
    assert!((metrics.value("delayline_push_circuit_open", &[("host", &host)]) - 1.0).abs() < 0.1);
    let told = crate::program::said(&redis, &["stats", "q", "--json"]).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["push_state"]["circuit"], "open", "{told}");
    // Probes come after 1, 3 and 7 seconds, a fifth earlier at most.
    tokio::time::sleep(Duration::from_millis(7_500).saturating_sub(begun.elapsed())).await;
    let requests = receiver.count();
    println!("{requests} requests within {:?} to an endpoint that answers 500", begun.elapsed());
    assert!((7..=5 + 3 + 4).contains(&requests), "{requests} requests");
    let spent = service.counted("q", "nacked").await + service.counted("q", "died").await;
    assert!(spent <= u64::try_from(requests).unwrap(), "{spent} attempts were spent on {requests} requests");
    mended.store(true, Ordering::Relaxed);
    eventually("all are pushed", async || {
        let done = service.counted("q", "acked").await + service.counted("q", "died").await;
        (done == u64::try_from(JOBS).unwrap()).then_some(())
    })
    .await;
    assert_eq!(service.counted("q", "died").await, 0);
    assert_eq!(push_state(&service, "q").await["circuit"], "closed");
    service.stop().await;
}

#[tokio::test]
async fn a_retry_after_holds_the_whole_target_back() {
    let receiver = Receiver::start(|before, _| match before {
        0 => Reply::With(503, "retry-after: 2\r\n", Vec::new()),
        _ => Reply::status(200),
    })
    .await;
    let service = Service::with(&ALLOW).await;
    service.pushes("q", json!({ "url": receiver.url(), "concurrency": 1 }), json!({})).await;
    for id in 0..5 {
        service.publish("q", &format!("job-{id}")).await;
    }
    let requests = receiver.has(6).await;
    let waited = requests[1].at - requests[0].at;
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    service.counts("q", "acked", 5).await;
    assert_eq!(service.counted("q", "nacked").await, 1);
    service.stop().await;
}

#[tokio::test]
async fn where_jobs_name_their_own_urls_only_those_of_the_broken_target_wait() {
    let (broken, mended) = broken().await;
    let fine = Receiver::always(Reply::status(200)).await;
    let service = Service::with(&ALLOW).await;
    let own = json!({ "own_urls": [broken.url(), fine.url()], "concurrency": 1 });
    service.pushes("q", own, json!({ "attempts": 9, "backoff": "10ms" })).await;
    let publish = async |id: String, url: String| {
        let job = json!([{ "id": id, "payload": 1, "headers": { "push-url": url } }]);
        let answer = service.post("/v1/queues/q/batch", job.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    for id in 0..20 {
        publish(format!("broken-{id}"), broken.url()).await;
    }
    eventually("jobs wait, their attempts unspent", async || {
        (service.counted("q", "snoozed").await > 0).then_some(())
    })
    .await;
    for id in 0..20 {
        publish(format!("fine-{id}"), fine.url()).await;
    }
    fine.has(20).await;
    let seen = broken.count();
    assert!(seen < 20, "{seen} requests to the broken one");
    mended.store(true, Ordering::Relaxed);
    service.counts("q", "acked", 40).await;
    assert_eq!(service.counted("q", "died").await, 0);
    service.stop().await;
}

#[tokio::test]
async fn verdicts_of_4xx_hold_nothing_back() {
    let receiver = Receiver::always(Reply::status(404)).await;
    let service = Service::with(&ALLOW).await;
    service.pushes("q", to(&receiver), json!({})).await;
    for id in 0..30 {
        service.publish("q", &format!("job-{id}")).await;
    }
    service.counts("q", "died", 30).await;
    assert_eq!((receiver.count(), &push_state(&service, "q").await["circuit"]), (30, &json!("closed")));
    service.stop().await;
}
