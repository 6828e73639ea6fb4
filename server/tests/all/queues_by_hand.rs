use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::program::{bury, delayline, fails, lines_of, run, run_json, said, signal, words_of};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn queues_are_named_in_order() {
    let redis = RedisServer::start(&[]).await;
    assert_eq!(said(&redis, &["queues"]).await, "");
    for queue in ["b", "c", "a"] {
        said(&redis, &["publish", queue, "x"]).await;
    }
    assert_eq!(said(&redis, &["queues"]).await, "a\nb\nc\n");
    assert_eq!(run_json(&redis, &["queues", "--json"]).await, json!({ "queues": ["a", "b", "c"] }));
    let table = said(&redis, &["stats"]).await;
    let expected: [&[&str]; 4] = [
        &["queue", "ready", "delayed", "leased", "dead"],
        &["a", "1", "0", "0", "0"],
        &["b", "1", "0", "0", "0"],
        &["c", "1", "0", "0", "0"],
    ];
    assert_eq!(words_of(&table), expected, "{table}");
}

#[tokio::test]
async fn stats_are_watched() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x"]).await;
    for json in [false, true] {
        let mut command = delayline(Some(&redis), &["stats", "--watch", "100ms"]);
        command.args(json.then_some("--json"));
        let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        for _ in 0..3 {
            if !json {
                assert!(lines.next_line().await.unwrap().unwrap().starts_with("queue "));
            }
            let line = lines.next_line().await.unwrap().unwrap();
            if json {
                assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["sizes"]["ready"], 1);
            } else {
                assert!(line.starts_with("q "), "{line}");
            }
        }
        signal("-TERM", &watch).await;
        assert!(watch.wait().await.unwrap().success());
    }
    fails(&redis, &["stats", "--watch", "q"], 2, "is not a length of time").await;
}

#[tokio::test]
async fn only_what_is_named_in_a_config_changes() {
    let redis = RedisServer::start(&[]).await;
    let set = ["config", "set", "q", "attempts=5", "backoff=15s 3m 1h", "retention=7d", "--create", "--json"];
    let expected = json!({ "attempts": 5, "backoff": "15s 3m 1h", "retention": "7d", "bury_expired": false });
    let found = run_json(&redis, &set).await;
    assert_eq!(found, json!({ "queue": "q", "cfgver": 1, "config": expected }));
    said(&redis, &["config", "set", "q", "attempts=default", "max_bytes=1MiB"]).await;
    let expected =
        json!({ "backoff": "15s 3m 1h", "retention": "7d", "bury_expired": false, "max_bytes": 1_048_576 });
    let found = run_json(&redis, &["config", "get", "q", "--json"]).await;
    assert_eq!((&found["cfgver"], &found["config"]), (&json!(2), &expected));
    let shown = said(&redis, &["config", "get", "q"]).await;
    assert!(words_of(&shown).contains(&vec!["config", "retention", "7d"]), "{shown}");
    fails(&redis, &["config", "get", "none"], 1, "there is no queue none").await;
    for (change, says) in [
        ("attempt=5", "use attempts, backoff"),
        ("attempts=0", "attempts must be 1 to 999"),
        ("backoff=fast", "fast"),
        ("retention=9000w", "10 years"),
        ("attempts", "write NAME=VALUE"),
    ] {
        fails(&redis, &["config", "set", "q", change], 2, says).await;
    }
    assert_eq!(run_json(&redis, &["config", "get", "q", "--json"]).await["cfgver"], 2);
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let redis = RedisServer::start(&[]).await;
    let (a, b, c) = tokio::join!(
        run(&redis, &["config", "set", "q", "attempts=5", "--create"]),
        run(&redis, &["config", "set", "q", "retention=7d", "--create"]),
        run(&redis, &["config", "set", "q", "max_jobs=9", "--create"]),
    );
    assert!([&a, &b, &c].iter().all(|output| output.status.success()), "{a:?} {b:?} {c:?}");
    let config = run_json(&redis, &["config", "get", "q", "--json"]).await["config"].clone();
    assert_eq!(config, json!({ "attempts": 5, "retention": "7d", "bury_expired": false, "max_jobs": 9 }));
}

#[tokio::test]
async fn a_queue_is_paused_and_resumed() {
    let redis = RedisServer::start(&[]).await;
    assert_eq!(said(&redis, &["pause", "q", "--create"]).await, "q paused\n");
    assert_eq!(run_json(&redis, &["stats", "q", "--json"]).await["paused"], true);
    assert!(said(&redis, &["stats"]).await.contains("paused"));
    let resumed = run_json(&redis, &["resume", "q", "--json"]).await;
    assert_eq!(resumed, json!({ "queue": "q", "paused": false, "cfgver": 2 }));
    assert_eq!(said(&redis, &["resume", "q"]).await, "q resumed\n");
}

#[tokio::test]
async fn a_queue_is_destroyed_only_if_that_is_said() {
    let redis = RedisServer::start(&[]).await;
    bury(&redis, "q", &["a"]).await;
    said(&redis, &["publish", "q", "x", "--delay", "1h"]).await;
    fails(&redis, &["destroy", "q"], 2, "add --yes").await;
    let output = run(&redis, &["destroy", "q", "--json"]).await;
    assert_eq!(lines_of(&output.stderr)[0]["code"], "usage");
    assert_eq!(said(&redis, &["queues"]).await, "q\n");
    let destroyed = run_json(&redis, &["destroy", "q", "--yes", "--json"]).await;
    assert_eq!(destroyed, json!({ "queue": "q", "destroyed": { "waiting": 1, "leased": 0, "dead": 1 } }));
    assert_eq!(said(&redis, &["queues"]).await, "");
    fails(&redis, &["destroy", "q", "--yes"], 1, "there is no queue q").await;
    said(&redis, &["publish", "q", "x"]).await;
    let destroyed = said(&redis, &["destroy", "q", "--yes"]).await;
    assert_eq!(destroyed, "q destroyed, with 1 waiting, 0 leased and 0 dead jobs\n");
}

#[tokio::test]
async fn a_pump_forwards_what_comes_due() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["config", "set", "q", "forward=list:work", "--create"]).await;
    said(&redis, &["publish", "q", "hello", "--delay", "300ms"]).await;
    let mut pump = delayline(Some(&redis), &["pump"]).spawn().unwrap();
    crate::eventually("the job is forwarded", async || {
        let stats = run_json(&redis, &["stats", "q", "--json"]).await;
        (stats["counters"]["forwarded"] == 1).then_some(())
    })
    .await;
    signal("-TERM", &pump).await;
    assert!(pump.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_pump_ends_by_itself_if_told_for_how_long() {
    let redis = RedisServer::start(&[]).await;
    let begun = std::time::Instant::now();
    let output = run(&redis, &["pump", "--for", "300ms", "--json"]).await;
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    let message = lines_of(&output.stderr)[0]["fields"]["message"].clone();
    assert!(message.as_str().unwrap().contains("tending the queues in"), "{message}");
    let output = delayline(None, &["pump"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
