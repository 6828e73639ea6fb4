use std::time::{Duration, Instant};

use futures_util::FutureExt;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::redis_server::RedisServer;
use crate::rest_endpoint::{RestEndpoint, TOKEN};

async fn endpoint() -> (RedisServer, RestEndpoint) {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--faults"]).await;
    (redis, rest)
}

/// What is read from a connection over which INCR was asked for, until it is closed.
async fn raw(rest: &RestEndpoint) -> String {
    let mut connection = TcpStream::connect(rest.base.trim_start_matches("http://")).await.unwrap();
    let request = format!("GET /incr/n HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let closed = timeout(Duration::from_secs(20), connection.read_to_end(&mut read)).await;
    closed.expect("it is not closed").unwrap();
    String::from_utf8(read).unwrap()
}

/// How many requests there were to the endpoints of Redis.
async fn requests(rest: &RestEndpoint) -> u64 {
    rest.get("/_faults").await.json["requests"].as_u64().unwrap()
}

async fn incremented(rest: &RestEndpoint) -> serde_json::Value {
    rest.get("/get/n").await.json["result"].clone()
}

#[tokio::test]
async fn faults_befall_requests_in_their_order_and_are_counted() {
    let (_redis, rest) = endpoint().await;
    assert_eq!(rest.get("/_faults").await.json, json!({"left": [], "requests": 0}));
    let status = json!({"fault": "status", "status": 503, "body": "busy", "retry_after": 2});
    rest.plan(json!([{"fault": "pass"}, status, {"fault": "garbage", "times": 2}])).await;
    assert_eq!(rest.get("/incr/n").await.json, json!({"result": 1}));
    let refused = rest.get("/incr/n").await;
    assert_eq!((refused.status.as_u16(), refused.json.as_str()), (503, Some("busy")), "{refused:?}");
    assert_eq!(refused.headers["retry-after"], "2");
    let garbage = rest.get("/incr/n").await;
    assert_eq!(
        (garbage.status.as_u16(), &garbage.headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert!(garbage.json.as_str().unwrap().starts_with("<!doctype html>"), "{garbage:?}");
    let left = json!({"left": [{"fault": "garbage", "times": 1}], "requests": 3});
    assert_eq!(rest.get("/_faults").await.json, left);
    rest.get("/incr/n").await;
    assert_eq!(incremented(&rest).await, "3");
    let wrong = rest.post("/_faults", r#"[{"fault":"explode"}]"#).await;
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert_eq!(rest.get("/_faults").await.json, json!({"left": [], "requests": 5}));
}

#[tokio::test]
async fn an_answer_is_lost_or_cut_and_the_command_was_run() {
    let (_redis, rest) = endpoint().await;
    rest.plan(json!([{"fault": "drop"}])).await;
    assert_eq!(raw(&rest).await, "");
    assert_eq!(incremented(&rest).await, "1");
    rest.plan(json!([{"fault": "cut"}])).await;
    let cut = raw(&rest).await;
    assert!(cut.contains("content-length: 12\r\n") && cut.ends_with("\r\n\r\n{\"resu"), "{cut}");
    assert_eq!(incremented(&rest).await, "2");
}

#[tokio::test]
async fn an_answer_never_comes_or_comes_late() {
    let (_redis, rest) = endpoint().await;
    rest.plan(json!([{"fault": "hang"}, {"fault": "hang_after"}])).await;
    let unheard = tokio::spawn(rest.request(Method::GET, "/set/a/1").send());
    crate::eventually("it hangs", async || (requests(&rest).await == 1).then_some(())).await;
    let heard = tokio::spawn(rest.request(Method::GET, "/incr/n").send());
    crate::eventually("it is heard", async || (requests(&rest).await == 2).then_some(())).await;
    crate::eventually("it is run", async || (incremented(&rest).await == "1").then_some(())).await;
    assert!(!unheard.is_finished() && !heard.is_finished());
    assert_eq!(rest.get("/exists/a").await.json, json!({"result": 0}));
    rest.plan(json!([{"fault": "delay", "ms": 200}])).await;
    let begun = Instant::now();
    assert_eq!(rest.get("/incr/n").await.json, json!({"result": 2}));
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn scripts_are_forgotten_in_between() {
    let (_redis, rest) = endpoint().await;
    let loaded = rest.ask(json!(["SCRIPT", "LOAD", "return 7"])).await;
    let sha = loaded.json["result"].as_str().unwrap();
    rest.plan(json!([{"fault": "pass"}, {"fault": "flush"}])).await;
    let run = async || rest.ask(json!(["EVALSHA", sha, 0])).await;
    assert_eq!(run().await.json, json!({"result": 7}));
    assert!(run().await.json["error"].as_str().unwrap().starts_with("NOSCRIPT"));
}

#[tokio::test]
async fn what_hangs_does_not_keep_it_from_stopping() {
    let (_redis, rest) = endpoint().await;
    rest.plan(json!([{"fault": "hang", "times": 2}])).await;
    let hanging = tokio::spawn(rest.request(Method::GET, "/ping").send());
    crate::eventually("it hangs", async || (rest.get("/_faults").await.json["requests"] == 1).then_some(()))
        .await;
    let begun = Instant::now();
    rest.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(hanging.map(Result::unwrap).await.is_err());
}
