use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use delayline_tokio::Client;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::eventually;
use crate::program::{self, delayline, fed, run, run_json, said, signal};
use crate::redis_server::RedisServer;

const HOUR: Duration = Duration::from_secs(3600);

/// Every command that runs until it is told to stop, and what it says once it does.
const RUNS_ON: [(&[&str], &str); 7] = [
    (&["serve", "--listen", "127.0.0.1:0"], "listening on http://"),
    (&["rest", "--listen", "127.0.0.1:0", "--token", "t"], "listening on http://"),
    (&["consume", "q"], "consuming q"),
    (&["consume", "q", "--exec", "cat"], "consuming q"),
    (&["pump"], "tending the queues"),
    (&["push"], "pushing the queues"),
    (&["stats", "--watch", "100ms", "--log-level", "info"], "queue"),
];

/// A process, and what it says on stdout and stderr.
struct Running {
    child: Child,
    lines: BufReader<File>,
    said: String,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::piped()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let child = command.spawn().unwrap();
        let lines = BufReader::new(File::from_std(OwnedFd::from(reader).into()));
        Running { child, lines, said: String::new() }
    }

    async fn says(&mut self, text: &str) {
        let reading = async {
            while !self.said.contains(text) {
                let read = self.lines.read_line(&mut self.said).await.unwrap();
                assert!(read > 0, "it ended: {}", self.said);
            }
        };
        let found = timeout(Duration::from_secs(30), reading).await.is_ok();
        assert!(found, "it does not say {text:?}: {}", self.said);
    }

    /// Its exit code, and all it said.
    async fn ends(mut self) -> (Option<i32>, String) {
        let _ = timeout(Duration::from_secs(30), self.lines.read_to_string(&mut self.said)).await;
        (ended(self.child).await, self.said)
    }
}

async fn ended(mut child: Child) -> Option<i32> {
    timeout(Duration::from_secs(20), child.wait()).await.expect("it does not end").unwrap().code()
}

#[tokio::test]
async fn a_signal_that_does_not_mean_stop_stops_nothing() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x", "--delay", "1h"]).await;
    for (words, says) in RUNS_ON {
        let mut running = Running::start(delayline(Some(&redis), words));
        running.says(says).await;
        signal("-PIPE", &running.child).await;
        for harmless in ["HUP", "USR1", "USR2"] {
            signal(&format!("-{harmless}"), &running.child).await;
            running.says(&format!("SIG{harmless}: ")).await;
        }
        signal("-TERM", &running.child).await;
        let (code, heard) = running.ends().await;
        assert_eq!(code, Some(0), "{words:?}: {heard}");
    }
}

#[tokio::test]
async fn whoever_is_told_to_stop_says_so_and_ends() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x", "--delay", "1h"]).await;
    for (words, says) in RUNS_ON {
        for stops in ["TERM", "INT"] {
            let mut running = Running::start(delayline(Some(&redis), words));
            running.says(says).await;
            signal(&format!("-{stops}"), &running.child).await;
            let (code, heard) = running.ends().await;
            assert_eq!(code, Some(0), "{words:?}: {heard}");
            assert!(heard.contains(&format!("SIG{stops}: stopping")), "{words:?}: {heard}");
            assert!(heard.contains("stopped") || words[0] == "stats", "{words:?}: {heard}");
        }
    }
}

#[tokio::test]
async fn an_import_is_ended_by_a_stop_alone() {
    let redis = RedisServer::start(&[]).await;
    for stops in ["TERM", "INT"] {
        let words = ["publish", "q", "--ndjson", "--log-level", "info"];
        let mut running = Running::start(delayline(Some(&redis), &words));
        running.says("reading jobs for q").await;
        for harmless in ["HUP", "USR1", "USR2"] {
            signal(&format!("-{harmless}"), &running.child).await;
            running.says(&format!("SIG{harmless}: ")).await;
        }
        signal(&format!("-{stops}"), &running.child).await;
        let (code, heard) = running.ends().await;
        assert_eq!(code, Some(130), "{heard}");
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

#[tokio::test]
async fn told_to_stop_it_gives_back_what_nobody_reads_and_ends() {
    let redis = flooded().await;
    let mut consume = delayline(Some(&redis), &["consume", "q"]);
    let mut consume = consume.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _reader = consume.stdout.take();
    eventually("it has printed as much as the pipe holds", async || {
        let stats = run_json(&redis, &["stats", "q", "--json"]).await;
        (stats["counters"]["acked"] != 0 && stats["sizes"]["leased"] != 0).then_some(())
    })
    .await;
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
    // One sight of all queues is more than a pipe holds.
    let client = Client::connect(&redis.url()).await.unwrap();
    for number in 0..200 {
        let queue = client.bytes(format!("queue-{number}")).unwrap();
        queue.publish_bytes("x").delay(HOUR).await.unwrap();
    }
    client.close().await;
    for words in
        [&["consume", "q"][..], &["consume", "q", "--exec", "yes"], &["stats", "--watch", "100ms", "--json"]]
    {
        let mut child = delayline(Some(&redis), words);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut reader = child.stdout.take().unwrap();
        assert!(reader.read_u8().await.is_ok(), "{words:?}");
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
        let output = program::ended(child).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        assert!(
            !said.contains("panicked") && !said.to_lowercase().contains("broken pipe"),
            "{words:?}: {said}"
        );
    }
}
