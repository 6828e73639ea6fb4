use serde_json::{Value, json};

use crate::program::{bury, fails, lines_of, run, run_json, said, words_of};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn a_job_is_shown_with_what_it_carries() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "{\"to\":\"ann\"}", "--id", "a", "--delay", "1h", "--header", "Tenant=x"])
        .await;
    let job = run_json(&redis, &["job", "q", "a", "--json"]).await;
    assert_eq!(
        (&job["state"], &job["payload"], &job["headers"]["Tenant"]),
        (&json!("delayed"), &json!({ "to": "ann" }), &json!("x"))
    );
    let shown = said(&redis, &["job", "q", "a"]).await;
    let lines = words_of(&shown);
    for line in [&["state", "delayed"][..], &["headers", "Tenant", "x"], &["payload", "{\"to\":\"ann\"}"]] {
        assert!(lines.iter().any(|found| found == line), "{line:?} is not in {shown}");
    }
    fails(&redis, &["job", "q", "b"], 1, "queue q has no job b").await;
    let output = run(&redis, &["job", "q", "b", "--json"]).await;
    assert_eq!(lines_of(&output.stderr)[0]["code"], "no_such_job");
    fails(&redis, &["job", "q", "a b"], 2, "job id \"a b\" is not valid").await;
}

#[tokio::test]
async fn a_payload_is_shown_as_json_text_or_base64() {
    let redis = RedisServer::start(&[]).await;
    for (id, body, encoding, payload) in [
        ("json", &b"[1]"[..], "json", json!([1])),
        ("text", b"a\x1b[2Jb", "text", json!("a\u{1b}[2Jb")),
        ("bytes", b"\xff\0", "base64", json!("/wA=")),
    ] {
        let output = crate::program::fed(&redis, &["publish", "q", "--id", id], body).await;
        assert!(output.status.success(), "{output:?}");
        let job = run_json(&redis, &["job", "q", id, "--json"]).await;
        assert_eq!((&job["encoding"], &job["payload"]), (&json!(encoding), &payload));
    }
    for words in [&["job", "q", "text"][..], &["list", "q"]] {
        assert!(!said(&redis, words).await.contains('\x1b'), "a payload moves the cursor");
    }
}

#[tokio::test]
async fn lists_come_in_pages() {
    let redis = RedisServer::start(&[]).await;
    for id in ["a", "b", "c"] {
        said(&redis, &["publish", "q", "x", "--id", id, "--delay", "1h"]).await;
    }
    let page = run_json(&redis, &["list", "q", "--state", "delayed", "--limit", "2", "--json"]).await;
    assert_eq!((&page["jobs"][0]["id"], &page["jobs"][1]["id"]), (&json!("a"), &json!("b")));
    let cursor = page["cursor"].as_str().unwrap();
    let rest = run_json(&redis, &["list", "q", "--state", "delayed", "--cursor", cursor, "--json"]).await;
    assert_eq!((&rest["jobs"][0]["id"], &rest["cursor"]), (&json!("c"), &Value::Null));
    let all = run(&redis, &["list", "q", "--state", "delayed", "--limit", "1", "--all", "--json"]).await;
    let ids: Vec<Value> = lines_of(&all.stdout).iter().map(|job| job["id"].clone()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let shown = run(&redis, &["list", "q", "--state", "delayed", "--limit", "1"]).await;
    assert!(String::from_utf8_lossy(&shown.stderr).contains("there are more: --cursor "), "{shown:?}");
    let shown = said(&redis, &["list", "q", "--state", "delayed", "--limit", "1", "--all"]).await;
    let ids: Vec<&str> = words_of(&shown).iter().map(|line| line[0]).collect();
    assert_eq!(ids, ["id", "a", "b", "c"], "{shown}");
    let none = run(&redis, &["list", "q"]).await;
    assert!(String::from_utf8_lossy(&none.stderr).contains("no ready jobs, but 3 delayed"), "{none:?}");
    assert!(none.status.success() && none.stdout.is_empty(), "{none:?}");
    fails(&redis, &["list", "none"], 1, "there is no queue none").await;
    fails(&redis, &["list", "q", "--state", "late"], 2, "possible values: ready, delayed, leased, dead")
        .await;
    fails(&redis, &["list", "q", "--limit", "0"], 2, "1..=256").await;
    fails(&redis, &["list", "q", "--cursor", "x"], 2, "--cursor").await;
}

#[tokio::test]
async fn jobs_are_cancelled_and_rescheduled() {
    let redis = RedisServer::start(&[]).await;
    for id in ["a", "b", "c"] {
        said(&redis, &["publish", "q", "x", "--id", id, "--delay", "1h"]).await;
    }
    assert_eq!(said(&redis, &["cancel", "q", "a"]).await, "a cancelled\n");
    let output = run(&redis, &["cancel", "q", "a", "b", "--json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let expected = [json!({ "id": "a", "status": "gone" }), json!({ "id": "b", "status": "cancelled" })];
    assert_eq!(lines_of(&output.stdout), expected);
    assert_eq!(lines_of(&output.stderr)[0]["code"], "partly");
    let moved = said(&redis, &["reschedule", "q", "c", "--at", "2030-01-01T00:00:00Z"]).await;
    assert_eq!(moved, "c due 2030-01-01T00:00:00.000Z\n");
    let moved = run_json(&redis, &["reschedule", "q", "c", "--delay", "0s", "--json"]).await;
    assert_eq!(
        (&moved["id"], &moved["status"], moved["due"].is_string()),
        (&json!("c"), &json!("moved"), true)
    );
    assert_eq!(run_json(&redis, &["job", "q", "c", "--json"]).await["state"], "ready");
    fails(&redis, &["reschedule", "q", "a", "--delay", "1s"], 1, "a is not there").await;
    fails(&redis, &["reschedule", "q", "c"], 2, "--delay <TIME>").await;
    fails(&redis, &["reschedule", "q", "c", "--delay", "9000d"], 2, "10 years").await;
    fails(&redis, &["cancel", "q"], 2, "<ID>").await;
}

#[tokio::test]
async fn dead_letters_are_requeued_and_purged() {
    let redis = RedisServer::start(&[]).await;
    bury(&redis, "q", &["a", "b", "c", "d"]).await;
    let listed = run_json(&redis, &["dead", "list", "q", "--json"]).await;
    assert_eq!((&listed["jobs"][0]["id"], &listed["jobs"][0]["reason"]), (&json!("a"), &json!("broken")));
    assert!(said(&redis, &["dead", "list", "q"]).await.contains("broken"));
    assert_eq!(said(&redis, &["dead", "requeue", "q", "a"]).await, "requeued 1 of queue q, 3 left\n");
    let output = run(&redis, &["dead", "purge", "q", "a", "b", "--json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let expected = json!({ "queue": "q", "purged": 1, "left": 2, "missing": ["a"] });
    assert_eq!(lines_of(&output.stdout), [expected]);
    let requeued = run_json(&redis, &["dead", "requeue", "q", "--all", "--json"]).await;
    assert_eq!(requeued, json!({ "queue": "q", "requeued": 2, "left": 0, "missing": [] }));
    assert_eq!(said(&redis, &["dead", "purge", "q", "--all"]).await, "purged 0 of queue q, 0 left\n");
    fails(&redis, &["dead", "purge", "q"], 2, "<ID>").await;
    fails(&redis, &["dead", "purge", "q", "a", "--all"], 2, "cannot be used with").await;
    fails(&redis, &["dead", "requeue", "q", "x"], 1, "x is no dead letter").await;
}
