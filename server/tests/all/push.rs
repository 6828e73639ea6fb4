use std::time::Duration;

use serde_json::json;

use crate::eventually;
use crate::receiver::{ALLOW, Receiver, Reply, to};
use crate::redis_server::RedisServer;
use crate::service::{Service, send};

#[tokio::test]
async fn a_job_is_pushed_with_all_that_is_known_of_it() {
    let receiver = Receiver::always(Reply::status(204)).await;
    let service = Service::with(&ALLOW).await;
    service.pushes("orders", to(&receiver), json!({})).await;
    let job = json!({
        "id": "order:1", "payload": { "a": 1 }, "content_type": "application/json", "headers": { "Tenant": "acme" }, "attempts": 3,
    });
    let request = service.request(reqwest::Method::POST, "/v1/queues/orders/batch");
    let published = send(request.body(json!([job]).to_string())).await;
    assert_eq!(published.status, 200, "{published:?}");
    let pushed = receiver.has(1).await.remove(0);
    service.counts("orders", "acked", 1).await;
    assert_eq!((pushed.path.as_str(), pushed.json()), ("/jobs", json!({ "a": 1 })));
    for (name, value) in [
        ("host", receiver.address.to_string().as_str()),
        ("content-type", "application/json"),
        ("webhook-id", "order:1"),
        ("webhook-signature", ""),
        ("delayline-queue", "orders"),
        ("delayline-attempt", "1"),
        ("delayline-max-attempts", "3"),
        ("delayline-header-tenant", "acme"),
        ("user-agent", concat!("delayline/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(pushed.header(name), value, "{name}");
    }
    assert!(pushed.header("delayline-due").ends_with('Z'));
    service.stop().await;
}

#[tokio::test]
async fn the_trace_of_a_job_goes_on() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let redis = RedisServer::start(&[]).await;
    let url = redis.url();
    let service = Service::with(&[&ALLOW[..], &["--redis", &url]].concat()).await;
    service.pushes("q", to(&receiver), json!({})).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let client = delayline_tokio::Client::connect(&url).await.unwrap();
    client.bytes("q").unwrap().publish_bytes("{}").trace(trace.parse().unwrap()).await.unwrap();
    assert_eq!(receiver.has(1).await[0].header("traceparent"), trace);
    client.close().await;
    service.stop().await;
}

#[tokio::test]
async fn a_connection_is_used_again_and_no_more_requests_are_under_way_than_may_be() {
    let receiver = Receiver::always(Reply::Slowly(Duration::from_millis(20), 200)).await;
    let service = Service::with(&ALLOW).await;
    let push = json!({ "url": receiver.url(), "concurrency": 5 });
    service.pushes("q", push, json!({})).await;
    for id in 0..100 {
        service.publish("q", &format!("job-{id}")).await;
    }
    service.counts("q", "acked", 100).await;
    assert_eq!(receiver.count(), 100);
    assert!(receiver.most_at_once() <= 5, "{} at once", receiver.most_at_once());
    assert!(receiver.connections() <= 10, "{} connections", receiver.connections());
    service.stop().await;
}

#[tokio::test]
async fn requests_to_a_host_come_at_its_rate() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let service = Service::with(&ALLOW).await;
    for id in 0..12 {
        service.publish("q", &format!("job-{id}")).await;
    }
    service.pushes("q", json!({ "url": receiver.url(), "rate": "10/s" }), json!({})).await;
    let requests = receiver.has(12).await;
    let took = requests[11].at - requests[0].at;
    assert!(took >= Duration::from_millis(900), "12 requests at 10/s within {took:?}");
    service.stop().await;
}

#[tokio::test]
async fn a_change_of_the_config_is_heeded_at_once() {
    let (first, second) =
        (Receiver::always(Reply::status(200)).await, Receiver::always(Reply::status(200)).await);
    let service = Service::with(&ALLOW).await;
    service.pushes("q", to(&first), json!({})).await;
    service.publish("q", "a").await;
    service.counts("q", "acked", 1).await;
    service.pushes("q", to(&second), json!({})).await;
    let mut number = 0;
    eventually("the other is pushed to", async || {
        number += 1;
        service.publish("q", &format!("b-{number}")).await;
        (second.count() > 0).then_some(())
    })
    .await;
    assert_eq!(service.put("/v1/queues/q/config", "{}").await.status, 200);
    eventually("nothing is pushed any more", async || {
        number += 1;
        service.publish("q", &format!("c-{number}")).await;
        (service.sizes("q").await[0] > 0).then_some(())
    })
    .await;
    service.stop().await;
}

#[tokio::test]
async fn a_config_that_cannot_be_pushed_by_is_refused() {
    let service = Service::start().await;
    for (push, says) in [
        (json!({}), "push names no URL"),
        (json!({ "url": "ftp://a.example/" }), "begin with https://"),
        (json!({ "url": "https://a.example/", "rate": "fast" }), "is no rate"),
        (json!({ "url": "https://a.example/", "callback": "q" }), "push.callback is the queue itself"),
    ] {
        let answer = service.put("/v1/queues/q/config", json!({ "push": push }).to_string()).await;
        answer.is_problem(400, "bad_config", says);
    }
    service.stop().await;
}

#[tokio::test]
async fn with_push_off_nothing_is_pushed() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let service = Service::with(&[&ALLOW[..], &["--push=false"]].concat()).await;
    service.pushes("q", to(&receiver), json!({})).await;
    service.publish("q", "a").await;
    assert_eq!(service.take("q").await["id"], "a");
    assert_eq!(receiver.count(), 0);
    service.stop().await;
}

#[tokio::test]
async fn a_service_that_stops_finishes_what_it_has_sent_and_gives_the_rest_back() {
    const HUNG: usize = 64;
    let receiver = Receiver::always(Reply::Slowly(Duration::from_millis(500), 200)).await;
    let hung = Receiver::always(Reply::HangBeforeHead).await;
    let redis = RedisServer::start(&[]).await;
    let url = redis.url();
    let service = Service::with(&[&ALLOW[..], &["--redis", &url]].concat()).await;
    service.pushes("slow", json!({ "url": receiver.url(), "concurrency": 2 }), json!({})).await;
    service.pushes("hung", json!({ "url": hung.url(), "concurrency": HUNG }), json!({})).await;
    for id in 0..10 {
        service.publish("slow", &format!("s-{id}")).await;
    }
    for id in 0..HUNG {
        service.publish("hung", &format!("h-{id}")).await;
    }
    tokio::join!(receiver.has(2), hung.has(HUNG));
    service.stop().await;
    let seen = receiver.count();
    assert!(seen < 10, "{seen} of 10 were pushed before the end");
    let other = Service::with(&["--redis", &url, "--push=false"]).await;
    assert_eq!(other.counted("slow", "acked").await, u64::try_from(seen).unwrap());
    let [ready, delayed, leased, dead] = other.sizes("slow").await;
    assert_eq!((ready, delayed, leased, dead), (10 - u64::try_from(seen).unwrap(), 0, 0, 0));
    assert_eq!(other.sizes("hung").await, [HUNG as u64, 0, 0, 0], "what hung is given back before the end");
    let given_back = other.take("hung").await;
    assert_eq!(given_back["attempt"], 1, "{given_back}");
    other.stop().await;
}
