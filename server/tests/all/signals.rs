use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::eventually;
use crate::program::{delayline, fed, run, run_json, said, signal};
use crate::redis_server::RedisServer;

/// Every command that runs until it is told to stop, and what it says once it does.
const RUNS_ON: [(&[&str], &str); 6] = [
    (&["serve", "--listen", "127.0.0.1:0"], "listening on http://"),
    (&["rest", "--listen", "127.0.0.1:0", "--token", "t"], "listening on http://"),
    (&["consume", "q"], "consuming q"),
    (&["consume", "q", "--exec", "cat"], "consuming q"),
    (&["pump"], "tending the queues"),
    (&["stats", "--watch", "100ms"], "queue"),
];

/// Starts it with its stdout and stderr in one pipe, and waits until it says so.
async fn up(mut command: Command, says: &str) -> (Child, impl Future<Output = String> + use<>) {
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::piped()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let child = command.spawn().unwrap();
    drop(command);
    let mut lines =
        BufReader::new(tokio::fs::File::from_std(std::fs::File::from(std::os::fd::OwnedFd::from(reader))));
    let mut heard = String::new();
    let until_up = async {
        while !heard.contains(says) {
            let read = lines.read_line(&mut heard).await.unwrap();
            assert!(read > 0, "it ended: {heard}");
        }
    };
    timeout(Duration::from_secs(30), until_up).await.unwrap_or_else(|_| panic!("it does not say {says:?}"));
    let rest = async move {
        let _ = lines.read_to_string(&mut heard).await;
        heard
    };
    (child, rest)
}

async fn ended(mut child: Child) -> Option<i32> {
    timeout(Duration::from_secs(20), child.wait()).await.expect("it does not end").unwrap().code()
}

#[tokio::test]
async fn a_signal_that_does_not_mean_stop_stops_nothing() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x", "--delay", "1h"]).await;
    for (words, says) in RUNS_ON {
        let (child, heard) = up(delayline(Some(&redis), words), says).await;
        for harmless in ["-HUP", "-USR1", "-USR2", "-PIPE", "-HUP"] {
            signal(harmless, &child).await;
        }
        let still = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            signal("-TERM", &child).await;
        };
        let (heard, ()) = tokio::join!(heard, still);
        assert_eq!(ended(child).await, Some(0), "{words:?}: {heard}");
        if words[0] != "stats" {
            assert!(heard.contains("SIGHUP"), "{words:?}: {heard}");
        }
    }
}

#[tokio::test]
async fn whoever_is_told_to_stop_says_so_and_ends() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x", "--delay", "1h"]).await;
    for (words, says) in RUNS_ON {
        for stops in ["TERM", "INT"] {
            let (child, heard) = up(delayline(Some(&redis), words), says).await;
            signal(&format!("-{stops}"), &child).await;
            let (heard, code) = tokio::join!(heard, ended(child));
            assert_eq!(code, Some(0), "{words:?}: {heard}");
            if words[0] != "stats" {
                assert!(heard.contains(&format!("SIG{stops}: stopping")), "{words:?}: {heard}");
                assert!(heard.contains("stopped"), "{words:?}: {heard}");
            }
        }
    }
}

#[tokio::test]
async fn an_import_is_ended_by_a_stop_alone() {
    let redis = RedisServer::start(&[]).await;
    for (signals, code) in
        [(&["-HUP", "-USR1", "-USR2", "-PIPE", "-TERM"][..], 130), (&["-HUP", "-INT"], 130)]
    {
        let (child, heard) =
            up(delayline(Some(&redis), &["publish", "q", "--ndjson", "--log-level", "info"]), "reading")
                .await;
        for told in signals {
            signal(told, &child).await;
        }
        let (heard, ended) = tokio::join!(heard, ended(child));
        assert_eq!(ended, Some(code), "{signals:?}: {heard}");
    }
}

/// Publishes more than a pipe and all buffers on the way hold.
async fn flooded() -> RedisServer {
    let redis = RedisServer::start(&[]).await;
    let line = format!("{{\"payload\":\"{}\"}}\n", "x".repeat(20_000));
    let published = fed(&redis, &["publish", "q", "--ndjson"], line.repeat(300).as_bytes()).await;
    assert!(published.status.success(), "{published:?}");
    redis
}

/// Starts it, and waits until it holds jobs that nobody reads.
async fn stalled(redis: &RedisServer, words: &[&str]) -> Child {
    let mut consume = delayline(Some(redis), words);
    let consume = consume.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut acked = 0;
    eventually("it is stalled", async || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let stats = run_json(redis, &["stats", "q", "--json"]).await;
        let before = std::mem::replace(&mut acked, stats["counters"]["acked"].as_u64().unwrap());
        (before > 0 && before == acked && stats["sizes"]["leased"] != 0).then_some(())
    })
    .await;
    consume
}

#[tokio::test]
async fn told_to_stop_it_gives_back_what_nobody_reads_and_ends() {
    let redis = flooded().await;
    let mut consume = stalled(&redis, &["consume", "q"]).await;
    let _reader = consume.stdout.take();
    signal("-TERM", &consume).await;
    assert_eq!(ended(consume).await, Some(0));
    let stats = run_json(&redis, &["stats", "q", "--json"]).await;
    assert_eq!(stats["sizes"]["leased"], 0, "{stats}");
    let done = stats["counters"]["acked"].as_u64().unwrap();
    assert_eq!(stats["sizes"]["ready"], 300 - done, "{stats}");
    let rest = run(&redis, &["consume", "q", "--count", &(300 - done).to_string()]).await;
    assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
}

/// Tells it to stop again and again, as signals that come together count as one.
async fn told_until_it_ends(child: &mut Child) -> Option<i32> {
    eventually("it ends", async || {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code());
        }
        signal("-TERM", child).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        None
    })
    .await
}

#[tokio::test]
async fn told_twice_it_ends_whatever_is_not_read() {
    let redis = flooded().await;
    for words in
        [&["consume", "q"][..], &["consume", "q", "--exec", "yes"], &["stats", "--watch", "1ms", "--json"]]
    {
        let mut child = delayline(Some(&redis), words);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut reader = child.stdout.take().unwrap();
        assert!(reader.read_u8().await.is_ok(), "{words:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
        let code = told_until_it_ends(&mut child).await;
        assert!(matches!(code, Some(0 | 130)), "{words:?}: {code:?}");
    }
}

#[tokio::test]
async fn a_command_and_all_it_started_dies_with_a_consumer_that_is_killed() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x"]).await;
    let script = "sleep 600 & echo begun; sleep 600; true";
    let mut consume = delayline(Some(&redis), &["consume", "q", "--exec", script]);
    let mut consume = consume.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(consume.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("begun"));
    signal("-KILL", &consume).await;
    consume.wait().await.unwrap();
    let closed = timeout(Duration::from_secs(20), lines.next_line()).await;
    assert_eq!(closed.expect("what it started lives on").unwrap(), None);
}

#[tokio::test]
async fn output_that_nobody_reads_ends_a_command_quietly() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x", "--id", "a"]).await;
    for words in [
        &["queues"][..],
        &["stats"],
        &["stats", "--watch", "100ms"],
        &["list", "q", "--all", "--json"],
        &["job", "q", "a"],
        &["config", "get", "q"],
        &["config", "show"],
        &["publish", "q", "y"],
        &["pause", "q"],
        &["resume", "q", "--json"],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
        &["consume", "q"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = delayline(Some(&redis), words);
        command.stdout(writer).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        drop(command);
        let output = crate::program::ended(child).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        assert!(
            !said.contains("panicked") && !said.to_lowercase().contains("broken pipe"),
            "{words:?}: {said}"
        );
    }
}
