use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Child;
use tokio::time::timeout;

use crate::eventually;
use crate::program::{delayline, run_json, said, signal};
use crate::receiver::{ALLOW, Receiver, Reply, to};
use crate::redis_server::RedisServer;
use crate::service::Service;

fn pusher(redis: &RedisServer) -> Child {
    let mut command = delayline(Some(redis), &[&["push"][..], &ALLOW].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

async fn exit_code(mut child: Child) -> Option<i32> {
    timeout(Duration::from_secs(30), child.wait()).await.expect("it ends").unwrap().code()
}

#[tokio::test]
async fn a_process_of_its_own_pushes_what_others_configure() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let redis = RedisServer::start(&[]).await;
    let url = redis.url();
    let service = Service::with(&["--redis", &url, "--push=false"]).await;
    let pusher = pusher(&redis);
    service.pushes("q", to(&receiver), json!({})).await;
    said(&redis, &["publish", "q", "{}", "--id", "a"]).await;
    receiver.has(1).await;
    service.counts("q", "acked", 1).await;
    // A change of another field leaves the push as it is.
    said(&redis, &["config", "set", "q", "attempts=3"]).await;
    said(&redis, &["publish", "q", "{}", "--id", "b"]).await;
    assert_eq!(receiver.has(2).await[1].header("delayline-max-attempts"), "3");
    signal("-TERM", &pusher).await;
    assert_eq!(exit_code(pusher).await, Some(0));
    service.stop().await;
}

#[tokio::test]
async fn a_pusher_finds_what_a_library_has_configured_before_it_began() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let redis = RedisServer::start(&[]).await;
    let client = delayline_tokio::Client::connect(&redis.url()).await.unwrap();
    let queue = client.bytes("q").unwrap();
    let push = Some(to(&receiver).to_string());
    let config = delayline_tokio::QueueConfig { push, ..Default::default() };
    queue.configure(config, None).await.unwrap();
    queue.publish_bytes("{}").await.unwrap();
    let pusher = pusher(&redis);
    receiver.has(1).await;
    signal("-TERM", &pusher).await;
    assert_eq!(exit_code(pusher).await, Some(0));
    client.close().await;
}

#[tokio::test]
async fn a_pusher_that_is_killed_loses_nothing() {
    let receiver = Receiver::start(|before, _| match before {
        0 => Reply::HangBeforeHead,
        _ => Reply::status(200),
    })
    .await;
    let redis = RedisServer::start(&[]).await;
    let url = redis.url();
    let service = Service::with(&["--redis", &url, "--push=false"]).await;
    let push = json!({ "url": receiver.url(), "timeout": "100ms", "concurrency": 1 });
    service.pushes("q", push, json!({ "backoff": "10ms" })).await;
    let mut first = pusher(&redis);
    said(&redis, &["publish", "q", "{}", "--id", "a"]).await;
    receiver.has(1).await;
    first.kill().await.unwrap();
    let second = pusher(&redis);
    // The lease of a push of 100 ms ends after 30.1 s.
    eventually("the job is pushed again", async || {
        let stats = run_json(&redis, &["stats", "q", "--json"]).await;
        (stats["counters"]["acked"] == 1).then_some(())
    })
    .await;
    assert_eq!(receiver.requests()[1].header("delayline-attempt"), "2");
    signal("-TERM", &second).await;
    assert_eq!(exit_code(second).await, Some(0));
    service.stop().await;
}
