use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::program::{delayline, run, run_json, signal};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn without_a_redis_it_says_how_to_ask_the_service() {
    for (words, curl) in [
        (
            &["publish", "q", "it's", "--delay", "5s"][..],
            r"curl --data-binary 'it'\''s' 'http://127.0.0.1:4747/v1/queues/q/jobs?delay=5s'",
        ),
        (&["consume", "a", "b"], "curl -X POST 'http://127.0.0.1:4747/v1/take?queue=a&queue=b&wait=1m'"),
        (&["stats"], "curl 'http://127.0.0.1:4747/v1/queues'"),
        (&["stats", "q", "--redis", "memory://"], "curl 'http://127.0.0.1:4747/v1/queues/q'"),
    ] {
        let output = delayline(None, words).output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("the in-memory store lives inside")
                || said.contains("The in-memory store lives inside"),
            "{said}"
        );
        assert!(said.contains(curl), "{said}");
    }
    let output = delayline(None, &["--json", "stats"]).output().await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stderr).unwrap()["code"], "no_redis");
}

#[tokio::test]
async fn a_wrong_command_line_says_what_to_write() {
    for (words, says) in [
        (&["publish", "q", "x", "--delay", "5"][..], "5 in \"5\" has no unit: write 5s"),
        (&["publish", "a b", "x"], "use 1 to 255 of"),
        (&["publish", "q", "x", "--delay", "5s", "--at", "2026-11-21T10:00:05Z"], "cannot be used with"),
        (&["consume"], "<QUEUE>"),
        (&["serve", "--listen", "0.0.0.0:0"], "accept that with --insecure"),
    ] {
        let output = delayline(None, words).output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{said}");
    }
    for words in [&["--help"][..], &["publish", "--help"], &["consume", "--help"], &["stats", "--help"]] {
        let output = delayline(None, words).output().await.unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains("Examples:"), "{words:?}");
    }
}

#[tokio::test]
async fn a_redis_that_is_away_may_be_tried_again() {
    let mut redis = RedisServer::start(&[]).await;
    redis.kill();
    let begun = Instant::now();
    for words in
        [&["stats"][..], &["publish", "q", "x"], &["destroy", "q", "--yes"], &["pump"], &["stats", "--watch"]]
    {
        let output = run(&redis, words).await;
        assert_eq!(output.status.code(), Some(3), "{words:?}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("redis.sock") && said.contains("cannot be reached"), "{said}");
        assert!(said.contains("say with --redis or DELAYLINE_REDIS_URL where it is"), "{said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
    let output = run(&redis, &["--json", "queues"]).await;
    assert_eq!(serde_json::from_slice::<Value>(&output.stderr).unwrap()["code"], "unreachable");
}

#[tokio::test]
async fn every_command_ends_with_a_sentence_where_no_redis_answers() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = crate::program::write(folder.path(), "jobs", "{\"payload\":1}\n");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("redis://{}/", listener.local_addr().unwrap());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let closed = format!("redis://{closed}/");
    let commands: [&[&str]; 22] = [
        &["publish", "q", "x"],
        &["publish", "q", "--from", &jobs],
        &["consume", "q"],
        &["job", "q", "a"],
        &["list", "q"],
        &["cancel", "q", "a"],
        &["reschedule", "q", "a", "--delay", "1s"],
        &["dead", "list", "q"],
        &["dead", "requeue", "q", "--all"],
        &["dead", "purge", "q", "a"],
        &["queues"],
        &["stats"],
        &["stats", "q"],
        &["stats", "--watch"],
        &["config", "get", "q"],
        &["config", "set", "q", "attempts=5"],
        &["pause", "q"],
        &["resume", "q"],
        &["destroy", "q", "--yes"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["rest", "--listen", "127.0.0.1:0", "--token", "t"],
        &["pump"],
    ];
    let ending = commands.iter().flat_map(|words| [(*words, &silent), (*words, &closed)]);
    let ending = ending.map(async |(words, url)| {
        let words = [words, &["--redis", url, "--connect-timeout", "500ms"]].concat();
        let output = tokio::time::timeout(Duration::from_secs(60), delayline(None, &words).output()).await;
        let output = output.unwrap_or_else(|_| panic!("{words:?} does not end")).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{words:?}: {said}");
        let last = said.lines().last().unwrap();
        let is_told = last.starts_with("delayline: ") && last.contains(" cannot be reached: ");
        assert!(is_told, "{words:?}: {said}");
    });
    let ending: Vec<_> = ending.collect();
    futures_util::stream::iter(ending).buffer_unordered(8).collect::<()>().await;
    drop(listener);
}

#[tokio::test]
async fn a_password_is_never_said() {
    let mut redis = RedisServer::start(&[]).await;
    redis.kill();
    let url = format!("{}?user=ann&pass=hunter2", redis.url());
    for words in
        [&["stats", "--redis", &url][..], &["doctor", "--redis", &url], &["config", "show", "--redis", &url]]
    {
        let output = delayline(None, words).output().await.unwrap();
        let said = format!("{output:?}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[tokio::test]
async fn publish_consume_and_stats() {
    let redis = RedisServer::start(&[]).await;
    let words = [
        "--json",
        "publish",
        "q",
        "{\"to\":\"ann\"}",
        "--id",
        "a",
        "--header",
        "Tenant=x",
        "--attempts",
        "3",
    ];
    let published = run_json(&redis, &words).await;
    assert_eq!((&published["id"], published["due"].is_string()), (&json!("a"), true));
    let again = run(&redis, &words).await;
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(serde_json::from_slice::<Value>(&again.stderr).unwrap()["code"], "duplicate");
    let stats = run_json(&redis, &["stats", "q", "--json"]).await;
    assert_eq!(stats["sizes"]["ready"], 1);
    let job = run_json(&redis, &["consume", "q", "--json", "--count", "1"]).await;
    assert_eq!((&job["payload"], &job["max_attempts"]), (&json!({ "to": "ann" }), &json!(3)));
    assert_eq!(job["headers"], json!({ "Tenant": "x" }));
    let stats = run(&redis, &["stats"]).await;
    let row: Vec<String> = String::from_utf8(stats.stdout)
        .unwrap()
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .map(String::from)
        .collect();
    assert_eq!(row, ["q", "0", "0", "0", "0"]);
    assert_eq!(run(&redis, &["stats", "none"]).await.status.code(), Some(1));
}

#[tokio::test]
async fn a_payload_may_come_from_stdin() {
    let redis = RedisServer::start(&[]).await;
    let mut publish = delayline(Some(&redis), &["publish", "q"]).stdin(Stdio::piped()).spawn().unwrap();
    publish.stdin.take().unwrap().write_all(b"from stdin").await.unwrap();
    assert!(publish.wait().await.unwrap().success());
    let consumed = run(&redis, &["consume", "q", "--count", "1"]).await;
    assert_eq!(consumed.stdout, b"from stdin\n");
}

#[tokio::test]
async fn a_command_settles_by_its_exit() {
    let redis = RedisServer::start(&[]).await;
    for (id, body) in [("good", "fine"), ("bad", "broken")] {
        let words = [
            "publish",
            "q",
            body,
            "--id",
            id,
            "--attempts",
            "1",
            "--header",
            "Trace-Id=7",
            "--content-type",
            "text/x",
        ];
        assert!(run(&redis, &words).await.status.success());
    }
    let script = r#"body=$(cat); echo "$DELAYLINE_QUEUE $DELAYLINE_ID $DELAYLINE_ATTEMPT/$DELAYLINE_MAX_ATTEMPTS \
$DELAYLINE_HEADER_TRACE_ID $DELAYLINE_CONTENT_TYPE $body"; test "$body" = fine || { echo "cannot do $body" >&2; exit 3; }"#;
    let consumed = run(&redis, &["consume", "q", "--count", "2", "--exec", script]).await;
    assert!(consumed.status.success(), "{consumed:?}");
    let said = String::from_utf8(consumed.stdout).unwrap();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["q bad 1/1 7 text/x broken", "q good 1/1 7 text/x fine"]);
    assert!(String::from_utf8(consumed.stderr).unwrap().contains("cannot do broken"));
    let stats = run_json(&redis, &["stats", "q", "--json"]).await;
    assert_eq!(stats["sizes"], json!({ "ready": 0, "delayed": 0, "leased": 0, "dead": 1 }));
    let service = crate::service::Service::with(&["--redis", &redis.url()]).await;
    let dead = service.get("/v1/queues/q/dead").await.json;
    assert_eq!(
        (&dead["jobs"][0]["id"], &dead["jobs"][0]["reason"]),
        (&json!("bad"), &json!("cannot do broken"))
    );
}

#[tokio::test]
async fn a_lease_is_renewed_while_the_command_runs() {
    let redis = RedisServer::start(&[]).await;
    run(&redis, &["publish", "q", "x", "--id", "a"]).await;
    let consumed = run(&redis, &["consume", "q", "--count", "1", "--lease", "1s", "--exec", "sleep 3"]).await;
    assert!(consumed.status.success(), "{consumed:?}");
    let counters = run_json(&redis, &["stats", "q", "--json"]).await["counters"].clone();
    assert_eq!(
        (&counters["granted"], &counters["acked"], &counters["ended"]),
        (&json!(1), &json!(1), &json!(0))
    );
}

#[cfg(unix)]
#[tokio::test]
async fn serve_says_that_nothing_survives_and_stops_when_told() {
    let mut serve = delayline(None, &["serve", "--listen", "127.0.0.1:0", "--json"]);
    let mut serve = serve.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(serve.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let line: Value = serde_json::from_str(&line).unwrap();
        let message = line["fields"]["message"].as_str().unwrap_or_default().to_string();
        let is_last = message.contains(" listening on http://127.0.0.1:");
        said.push(message);
        if is_last {
            break;
        }
    }
    assert_eq!(
        said.iter().filter(|message| message.contains("nothing survives a restart")).count(),
        1,
        "{said:?}"
    );
    signal("-TERM", &serve).await;
    assert!(serve.wait().await.unwrap().success());
}

#[cfg(unix)]
#[tokio::test]
async fn serve_stops_when_told_while_it_connects() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", silent.local_addr().unwrap());
    let mut serve = delayline(None, &["serve", "--listen", "127.0.0.1:0", "--redis", &url]).spawn().unwrap();
    let _connection = silent.accept().await.unwrap();
    let begun = Instant::now();
    signal("-TERM", &serve).await;
    assert!(serve.wait().await.unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[cfg(unix)]
#[tokio::test]
async fn told_twice_to_stop_it_waits_for_nothing() {
    let redis = RedisServer::start(&[]).await;
    run(&redis, &["publish", "q", "x"]).await;
    let mut consume = delayline(Some(&redis), &["consume", "q", "--exec", "echo begun; sleep 600; true"]);
    let mut consume = consume.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(consume.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("begun"));
    let begun = Instant::now();
    while consume.try_wait().unwrap().is_none() {
        signal("-INT", &consume).await;
        assert!(begun.elapsed() < Duration::from_secs(60), "it still waits");
    }
    assert_eq!(consume.wait().await.unwrap().code(), Some(130));
    let closed = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
    assert_eq!(closed.expect("what it started is killed").unwrap(), None);
}
