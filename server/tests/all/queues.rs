use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;

use crate::eventually;
use crate::service::{Service, send, text};

#[tokio::test]
async fn queues_are_listed_page_by_page() {
    let service = Service::start().await;
    let wanted: BTreeSet<String> = (0..25).map(|n| format!("q-{n}")).collect();
    for queue in &wanted {
        service.publish(queue, "a").await;
    }
    let mut found = BTreeSet::new();
    let (mut path, mut pages) = ("/v1/queues?count=10".to_string(), 0);
    loop {
        let page = service.get(&path).await;
        found.extend(page.json["queues"].as_array().unwrap().iter().map(text));
        pages += 1;
        match page.json["cursor"].as_str() {
            Some(cursor) => path = format!("/v1/queues?count=10&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(found, wanted);
    assert!((1..=25).contains(&pages), "{pages}");
}

#[tokio::test]
async fn a_queue_shows_what_is_in_it() {
    let service = Service::start().await;
    service.get("/v1/queues/q").await.is_problem(404, "no_such_queue", "its first job makes it");
    service.publish("q", "a").await;
    service.post("/v1/queues/q/jobs?delay=30m", "1").await;
    service.post("/v1/queues/q/jobs?delay=90m", "1").await;
    service.post("/v1/queues/q/jobs?delay=9h", "1").await;
    let queue = service.get("/v1/queues/q?hours=3").await;
    assert!(!queue.headers.contains_key("etag"), "counters have no version: {queue:?}");
    let queue = queue.json;
    assert_eq!(queue["sizes"], json!({ "ready": 1, "delayed": 3, "leased": 0, "dead": 0 }));
    assert_eq!(queue["delayed_by_hour"], json!([1, 1, 0]));
    assert_eq!((&queue["paused"], &queue["cfgver"]), (&json!(false), &json!(0)));
    assert_eq!(queue["counters"]["published"], 4);
    assert_eq!(queue["config"], json!({ "bury_expired": false }));
    assert!(queue["oldest_due"].is_string());
}

#[tokio::test]
async fn a_config_is_replaced_as_a_whole() {
    let service = Service::start().await;
    let config =
        json!({ "attempts": 5, "backoff": "15s 3m", "retention": "7d", "bury_expired": true, "max_jobs": 9 });
    let put = service.put("/v1/queues/q/config", config.to_string()).await;
    assert_eq!(put.status, 200, "{put:?}");
    assert_eq!((&put.json["config"], &put.json["cfgver"]), (&config, &json!(1)));
    assert_eq!(put.headers["etag"], "\"1\"");
    assert_eq!(service.get("/v1/queues/q").await.json["config"], config);
    service.put("/v1/queues/q/config", r#"{"attempts":2}"#).await;
    let config = service.get("/v1/queues/q").await.json["config"].clone();
    assert_eq!(config, json!({ "attempts": 2, "bury_expired": false }));
    service.publish("q", "a").await;
    assert_eq!(service.take("q").await["max_attempts"], 2);
}

#[tokio::test]
async fn if_match_keeps_writers_apart() {
    let service = Service::start().await;
    let put = async |version: &str, attempts: u16| {
        let request = service.request(Method::PUT, "/v1/queues/q/config").header("If-Match", version);
        send(request.body(json!({ "attempts": attempts }).to_string())).await
    };
    assert_eq!(put("0", 3).await.json["cfgver"], 1);
    put("\"0\"", 4).await.is_problem(412, "config_conflict", "at version 1");
    assert_eq!(service.get("/v1/queues/q").await.json["config"]["attempts"], 3);
    assert_eq!(put("\"1\"", 4).await.json["cfgver"], 2);
    assert_eq!(put("*", 5).await.json["cfgver"], 3);
    put("one", 6).await.is_problem(400, "bad_header", "pass the ETag");
}

#[tokio::test]
async fn a_paused_queue_delivers_nothing_until_it_is_resumed() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let paused = service.post("/v1/queues/q/pause", "").await;
    assert_eq!((&paused.json["paused"], &paused.json["cfgver"]), (&json!(true), &json!(1)));
    assert_eq!(service.post("/v1/take?queue=q", "").await.status, 204);
    assert_eq!(service.get("/v1/queues/q").await.json["paused"], true);
    let (job, resumed) = tokio::join!(service.take("q"), service.post("/v1/queues/q/resume", ""));
    assert_eq!((&job["id"], &resumed.json["paused"]), (&json!("a"), &json!(false)));
}

#[tokio::test]
async fn jobs_expire_though_nobody_takes() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?delay=50ms&ttl=60ms", "1").await;
    let expired = async || {
        let counters = service.get("/v1/queues/q").await.json["counters"].clone();
        (counters["expired"] == 1).then_some(())
    };
    eventually("the job expires", expired).await;
    assert_eq!(service.sizes("q").await, [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_queue_can_be_destroyed_with_all_it_holds() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let lease = service.lease("q").await;
    service.publish("q", "b").await;
    let destroyed = service.delete("/v1/queues/q").await;
    destroyed.is(200, json!({ "queue": "q", "destroyed": { "waiting": 1, "leased": 1, "dead": 0 } }));
    service.post(&format!("/v1/leases/{lease}/ack"), "").await.is_problem(410, "gone", "destroyed");
    service.delete("/v1/queues/q").await.is_problem(404, "no_such_queue", "no queue q");
}

#[tokio::test]
async fn queues_are_listed_with_sizes_and_by_namespace() {
    let service = Service::start().await;
    for queue in ["a", "b", "acme~a", "acme~b", "acme.eu~a"] {
        service.publish(queue, "1").await;
    }
    service.post("/v1/queues/acme~b/jobs?delay=1h", "1").await;
    let found = async |options: &str| {
        let page = service.get(&format!("/v1/queues?{options}")).await.json;
        let names = page["queues"].as_array().unwrap().iter().map(text);
        (names.collect::<BTreeSet<String>>(), page["sizes"].clone())
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
    assert_eq!(found("").await, (names(&["a", "b", "acme~a", "acme~b", "acme.eu~a"]), json!(null)));
    assert_eq!(found("namespace=").await.0, names(&["a", "b"]));
    assert_eq!(found("namespace=other").await.0, names(&[]));
    let one = json!({ "ready": 1, "delayed": 0, "leased": 0, "dead": 0 });
    let two = json!({ "ready": 1, "delayed": 1, "leased": 0, "dead": 0 });
    let sizes = json!({ "acme~a": one, "acme~b": two });
    assert_eq!(found("namespace=acme&sizes=true").await, (names(&["acme~a", "acme~b"]), sizes));
    service.get("/v1/queues?namespace=a~b").await.is_problem(400, "bad_namespace", "1 to 255 of");
    service.get("/v1/queues?sizes=yes").await.is_problem(400, "bad_option", "sizes");
}

/// However sparse a namespace is among the queues, its pages come to an end with all of it.
#[tokio::test]
async fn the_queues_of_a_namespace_are_found_among_many_others() {
    let service = Service::start().await;
    for n in 0..60 {
        service.publish(&format!("other-{n}"), "1").await;
    }
    for n in 0..3 {
        service.publish(&format!("acme~{n}"), "1").await;
    }
    let (mut found, mut cursor, mut pages) = (BTreeSet::new(), String::new(), 0);
    loop {
        let page = service.get(&format!("/v1/queues?namespace=acme&count=1{cursor}")).await.json;
        found.extend(page["queues"].as_array().unwrap().iter().map(text));
        pages += 1;
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, ["acme~0", "acme~1", "acme~2"].map(String::from).into());
    assert!(pages < 60, "{pages}");
}

#[tokio::test]
async fn a_config_is_read_with_its_version_and_not_again_by_who_knows_it() {
    let service = Service::start().await;
    service.get("/v1/queues/q/config").await.is_problem(404, "no_such_queue", "its first job makes it");
    service.put("/v1/queues/q/config", r#"{"attempts":5}"#).await;
    let get = async |known: &str| {
        let request = service.request(Method::GET, "/v1/queues/q/config");
        send(request.header("If-None-Match", known)).await
    };
    let shown = service.get("/v1/queues/q/config").await;
    shown.is(200, json!({ "cfgver": 1, "config": { "attempts": 5, "bury_expired": false } }));
    assert_eq!(shown.headers["etag"], "\"1\"");
    let known = get("\"0\", \"1\"").await;
    assert_eq!((known.status.as_u16(), &known.json), (304, &json!("")));
    assert_eq!(known.headers["etag"], "\"1\"");
    service.post("/v1/queues/q/pause", "").await;
    let changed = get("\"1\"").await;
    assert_eq!((changed.status.as_u16(), &changed.json["cfgver"]), (200, &json!(2)));
    service.get("/v1/queues/q/config?x=1").await.is_problem(400, "unknown_option", "x");
}
