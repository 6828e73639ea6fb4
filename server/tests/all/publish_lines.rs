use std::fmt::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::program::{delayline, ended, fails, fed, lines_of, run, run_json, signal, write};
use crate::redis_server::RedisServer;

const MIXED: &str = "{\"payload\":1,\"id\":\"a\"}\n\n{\"payload\":2,\"dealy\":\"5s\"}\nno json\n\
                     {\"payload\":3,\"id\":\"b\",\"delay\":\"1h\"}\n{\"payload\":4,\"id\":\"a\"}\n{\"payload\":5,\"attempts\":0}";

#[tokio::test]
async fn a_malformed_line_is_told_with_its_number_and_loses_nothing_else() {
    let redis = RedisServer::start(&[]).await;
    let output = fed(&redis, &["publish", "q", "--ndjson"], MIXED.as_bytes()).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 of 6 jobs published, 1 duplicates, 3 failed\n");
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    for (line, begins, says) in [
        (0, "line 3: ", "unknown field `dealy`"),
        (1, "line 4: ", "this is not a job"),
        (2, "line 6 (id a): ", "the id is in use"),
        (3, "line 7: ", "attempts"),
        (4, "delayline: 4 of 6 jobs were not published", ""),
    ] {
        assert!(lines[line].starts_with(begins) && lines[line].contains(says), "{said}");
    }
    let sizes = run_json(&redis, &["stats", "q", "--json"]).await["sizes"].clone();
    assert_eq!((&sizes["ready"], &sizes["delayed"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn outcomes_are_json_if_wanted() {
    let redis = RedisServer::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "jobs.ndjson", MIXED);
    let output = run(&redis, &["publish", "q", "--from", &file, "--json", "--allow-duplicates"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let tally = json!({ "lines": 6, "created": 2, "duplicates": 1, "failed": 3 });
    assert_eq!(lines_of(&output.stdout), [tally]);
    let told = lines_of(&output.stderr);
    let lines: Vec<&Value> = told.iter().map(|told| &told["line"]).collect();
    assert_eq!(lines, [&json!(3), &json!(4), &json!(7), &Value::Null]);
    assert_eq!((&told[0]["status"], &told[0]["code"]), (&json!("error"), &json!("bad_item")));
    assert_eq!((&told[2]["code"], &told[3]["code"]), (&json!("bad_attempts"), &json!("partly")));
}

#[tokio::test]
async fn an_input_that_is_published_again_adds_nothing() {
    let redis = RedisServer::start(&[]).await;
    let mut input = String::new();
    for id in 0..5_000 {
        let _ = writeln!(input, "{{\"payload\":{{\"n\":{id}}},\"id\":\"job:{id}\",\"delay\":\"1h\"}}");
    }
    for (created, duplicates) in [(5_000, 0), (0, 5_000)] {
        let words = ["publish", "q", "--from", "-", "--allow-duplicates", "--json"];
        let output = fed(&redis, &words, input.as_bytes()).await;
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let tally = json!({ "lines": 5_000, "created": created, "duplicates": duplicates, "failed": 0 });
        assert_eq!(lines_of(&output.stdout), [tally]);
    }
    assert_eq!(run_json(&redis, &["stats", "q", "--json"]).await["sizes"]["delayed"], 5_000);
}

#[tokio::test]
async fn a_slow_input_is_published_as_it_comes_and_may_be_cut_short() {
    let redis = RedisServer::start(&[]).await;
    let mut command = delayline(Some(&redis), &["publish", "q", "--ndjson"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut publish = command.spawn().unwrap();
    let mut stdin = publish.stdin.take().unwrap();
    stdin.write_all(b"{\"payload\":1}\n{\"payload\":2}\n{\"pay").await.unwrap();
    crate::eventually("what is there is published", async || {
        let stats = run(&redis, &["stats", "q", "--json"]).await;
        let stats: Value = serde_json::from_slice(&stats.stdout).unwrap_or_default();
        (stats["sizes"]["ready"] == 2).then_some(())
    })
    .await;
    signal("-INT", &publish).await;
    let output = ended(publish).await;
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("published up to line 2"), "{output:?}");
    drop(stdin);
}

#[tokio::test]
async fn a_redis_that_goes_away_ends_it() {
    let mut redis = RedisServer::start(&[]).await;
    let mut command = delayline(Some(&redis), &["publish", "q", "--ndjson", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut publish = command.spawn().unwrap();
    let mut stdin = publish.stdin.take().unwrap();
    stdin.write_all(b"{\"payload\":1}\n").await.unwrap();
    crate::eventually("the first is published", async || {
        let stats = run(&redis, &["stats", "q", "--json"]).await;
        let stats: Value = serde_json::from_slice(&stats.stdout).unwrap_or_default();
        (stats["sizes"]["ready"] == 1).then_some(())
    })
    .await;
    redis.kill();
    stdin.write_all(b"{\"payload\":2}\n").await.unwrap();
    let output = ended(publish).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let tally = json!({ "lines": 2, "created": 1, "duplicates": 0, "failed": 1 });
    assert_eq!(lines_of(&output.stdout), [tally]);
    let told = lines_of(&output.stderr);
    assert!(told.iter().any(|told| told["line"] == 2), "{told:?}");
    assert_eq!(
        told[0]["fields"]["message"].as_str().map(|said| said.contains("cannot be reached")),
        Some(true)
    );
    drop(stdin);
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let redis = RedisServer::start(&[]).await;
    fails(&redis, &["publish", "q", "--from", "/nonexistent/jobs"], 2, "cannot read /nonexistent/jobs").await;
    fails(&redis, &["publish", "q", "x", "--ndjson"], 2, "cannot be used with").await;
    fails(&redis, &["publish", "q", "--ndjson", "--delay", "5s"], 2, "cannot be used with").await;
    let long = [b"{\"payload\":\"", "x".repeat(3 << 20).as_bytes(), b"\"}\n{\"payload\":1}\n"].concat();
    let output = fed(&redis, &["publish", "q", "--ndjson"], &long).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 1: the line is over"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("1 of 2 jobs published"), "{output:?}");
    let output = delayline(None, &["publish", "q", "--from", "jobs"]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("/v1/queues/q/batch"), "{output:?}");
}
