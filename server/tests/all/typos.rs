use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use crate::program::{delayline, fails, run, run_json, said};
use crate::redis_server::RedisServer;
use crate::service::Service;

/// Every command about a queue that is there already, with its name misspelt.
const ABOUT_A_QUEUE: [&[&str]; 17] = [
    &["pause", "wellcome"],
    &["resume", "wellcome"],
    &["config", "get", "wellcome"],
    &["config", "set", "wellcome", "attempts=5"],
    &["dead", "list", "wellcome"],
    &["dead", "list", "wellcome", "--all"],
    &["dead", "requeue", "wellcome", "--all"],
    &["dead", "requeue", "wellcome", "a"],
    &["dead", "purge", "wellcome", "--all"],
    &["dead", "purge", "wellcome", "a"],
    &["list", "wellcome"],
    &["list", "wellcome", "--state", "leased"],
    &["job", "wellcome", "a"],
    &["cancel", "wellcome", "a"],
    &["reschedule", "wellcome", "a", "--delay", "5s"],
    &["stats", "wellcome"],
    &["destroy", "wellcome", "--yes"],
];

#[tokio::test]
async fn a_misspelt_queue_is_told_with_the_nearest_and_is_not_made() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "welcome", "x", "--id", "a"]).await;
    for words in ABOUT_A_QUEUE {
        let says = "there is no queue wellcome (is it welcome that you mean?): ";
        fails(&redis, words, 1, says).await;
        let output = run(&redis, &[words, &["--json"]].concat()).await;
        assert_eq!(output.stdout, b"", "{words:?}");
        let told: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(told["code"], "no_such_queue", "{words:?}");
        assert_eq!(said(&redis, &["queues"]).await, "welcome\n", "{words:?}");
    }
    fails(&redis, &["pause", "xyzzy"], 1, "there is no queue xyzzy: to make it, add --create").await;
    fails(&redis, &["resume", "xyzzy"], 1, "there is no queue xyzzy: its first job makes it").await;
}

#[tokio::test]
async fn a_queue_is_made_by_a_pause_or_a_config_that_says_so() {
    let redis = RedisServer::start(&[]).await;
    let paused = run_json(&redis, &["pause", "one", "--create", "--json"]).await;
    assert_eq!(paused, json!({ "queue": "one", "paused": true, "cfgver": 1 }));
    let words = ["config", "set", "two", "attempts=5", "--create", "--json"];
    assert_eq!(run_json(&redis, &words).await["config"], json!({ "attempts": 5, "bury_expired": false }));
    assert_eq!(run_json(&redis, &words).await["cfgver"], 2);
    assert_eq!(said(&redis, &["queues"]).await, "one\ntwo\n");
}

#[tokio::test]
async fn whoever_consumes_a_queue_that_is_not_there_is_told() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "welcome", "x"]).await;
    let mut consume = delayline(Some(&redis), &["consume", "wellcome", "welcome", "--lease", "1s"]);
    let mut consume = consume.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(consume.stderr.take().unwrap()).lines();
    let told = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("it goes on");
            if line.contains("there is no queue") {
                break line;
            }
        }
    };
    let told = timeout(Duration::from_secs(30), told).await.expect("it says nothing");
    assert!(told.contains("there is no queue wellcome (is it welcome that you mean?)"), "{told}");
}

#[tokio::test]
async fn over_http_a_pause_makes_no_queue_unless_it_says_so() {
    let service = Service::start().await;
    service.publish("welcome", "a").await;
    for path in ["/v1/queues/wellcome/pause", "/v1/queues/wellcome/resume"] {
        service.post(path, "").await.is_problem(404, "no_such_queue", "there is no queue wellcome");
    }
    assert_eq!(service.get("/v1/queues").await.json["queues"], json!(["welcome"]));
    let made = service.post("/v1/queues/new/pause?create=true", "").await;
    made.is(200, json!({ "paused": true, "cfgver": 1 }));
    service
        .put("/v1/queues/newer/config", "{}")
        .await
        .is(200, json!({ "cfgver": 1, "config": { "bury_expired": false } }));
    service.post("/v1/queues/welcome/pause?create=perhaps", "").await.is_problem(400, "bad_option", "create");
}

#[tokio::test]
async fn a_command_within_a_consumer_is_not_taken_for_one_with_wrong_variables() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x", "--header", "Tenant=acme"]).await;
    let program = crate::program::DELAYLINE;
    let inner = format!("{program} queues");
    let output = delayline(Some(&redis), &["consume", "q", "--count", "1", "--exec", &inner]).output().await;
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "q\n", "{output:?}");
}
