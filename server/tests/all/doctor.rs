use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use delayline_tokio::redis::{self, Client};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::program::{delayline, ended, run, said, signal};
use crate::redis_server::RedisServer;

const CHECKS: [&str; 11] = [
    "reachable",
    "version",
    "role",
    "eviction",
    "persistence",
    "memory",
    "permissions",
    "round trip",
    "clock",
    "latency",
    "queues",
];

fn ask(redis: &RedisServer, words: &[&str]) {
    let mut connection = Client::open(redis.url()).unwrap().get_connection().unwrap();
    let (name, words) = words.split_first().unwrap();
    redis::cmd(name).arg(words).exec(&mut connection).unwrap();
}

/// The exit code of a doctor at this URL, and what it found.
async fn examined(url: &str) -> (Option<i32>, Vec<Value>) {
    let output = delayline(None, &["doctor", "--json", "--redis", url]).output().await.unwrap();
    let findings =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code(), findings)
}

#[track_caller]
fn is(findings: &[Value], check: &str, status: &str, says: &str) {
    let finding = findings.iter().find(|finding| finding["check"] == check);
    let finding = finding.unwrap_or_else(|| panic!("{check} is not in {findings:?}"));
    assert_eq!(finding["status"], status, "{findings:?}");
    assert!(finding["detail"].as_str().unwrap().contains(says), "{says:?} is not in {finding}");
    assert_eq!(finding["mend"].is_string(), status != "ok", "{finding}");
}

#[tokio::test]
async fn nothing_is_wrong_with_a_healthy_redis() {
    let redis = RedisServer::start(&["--appendonly", "yes"]).await;
    let (code, findings) = examined(&redis.url()).await;
    assert_eq!(code, Some(0), "{findings:?}");
    let checks: Vec<&str> = findings.iter().map(|finding| finding["check"].as_str().unwrap()).collect();
    assert_eq!(checks, CHECKS);
    for check in CHECKS {
        is(&findings, check, "ok", "");
    }
    let text = said(&redis, &["doctor"]).await;
    assert_eq!(text.lines().count(), CHECKS.len(), "{text}");
    assert!(text.lines().all(|line| line.starts_with("ok ")), "{text}");
    assert_eq!(said(&redis, &["queues"]).await, "", "it leaves its queue behind");
}

#[tokio::test]
async fn a_redis_that_evicts_is_no_place_for_jobs() {
    let redis = RedisServer::start(&["--maxmemory-policy", "allkeys-lru", "--maxmemory", "64mb"]).await;
    let (code, findings) = examined(&redis.url()).await;
    assert_eq!(code, Some(1), "{findings:?}");
    is(&findings, "eviction", "error", "allkeys-lru");
    is(&findings, "persistence", "warning", "off");
    is(&findings, "memory", "ok", "of 64.0 MiB used");
    is(&findings, "round trip", "ok", "");
    let output = run(&redis, &["doctor"]).await;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("CONFIG SET maxmemory-policy noeviction"), "{text}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of the checks failed"), "{output:?}");
}

#[tokio::test]
async fn a_user_who_may_not_run_scripts_is_told() {
    let redis = RedisServer::start(&[]).await;
    for rules in ["~* &* +@all -evalsha", "~other:* resetchannels +@all", "~{dl:* ~{dl}:* &{dl:* +@read +acl"]
    {
        let words = ["ACL", "SETUSER", "ann", "reset", "on", ">hunter2"].into_iter().chain(rules.split(' '));
        ask(&redis, &words.collect::<Vec<_>>());
        let url = format!("{}?user=ann&pass=hunter2", redis.url());
        let (code, findings) = examined(&url).await;
        assert_eq!(code, Some(1), "{findings:?}");
        is(&findings, "permissions", "error", "of 30 commands are refused: ");
        is(&findings, "round trip", "error", "");
        assert!(!format!("{findings:?}").contains("hunter2"), "{findings:?}");
        let denied = findings.iter().find(|finding| finding["check"] == "permissions").unwrap();
        ask(&redis, &denied["mend"].as_str().unwrap().split(' ').collect::<Vec<_>>());
        let (code, findings) = examined(&url).await;
        assert_eq!(code, Some(0), "what it says to mend does not help: {findings:?}");
    }
}

#[tokio::test]
async fn what_a_user_may_not_ask_is_a_warning() {
    let redis = RedisServer::start(&["--appendonly", "yes"]).await;
    let rules = "on >x ~{dl:* ~{dl}:* &{dl:* +@read +@write +@scripting +@pubsub +@connection +time";
    let words: Vec<&str> = ["ACL", "SETUSER", "ann"].into_iter().chain(rules.split(' ')).collect();
    ask(&redis, &words);
    let (code, findings) = examined(&format!("{}?user=ann&pass=x", redis.url())).await;
    assert_eq!(code, Some(0), "{findings:?}");
    is(&findings, "server", "warning", "INFO");
    is(&findings, "permissions", "warning", "");
    is(&findings, "round trip", "ok", "");
}

#[tokio::test]
async fn a_replica_is_not_written() {
    let (primary, replica) = (RedisServer::start(&[]).await, RedisServer::start(&[]).await);
    drop(primary);
    ask(&replica, &["REPLICAOF", "127.0.0.1", "1"]);
    let (code, findings) = examined(&replica.url()).await;
    assert_eq!(code, Some(1), "{findings:?}");
    is(&findings, "role", "error", "replica of 127.0.0.1:1");
}

#[tokio::test]
async fn a_redis_that_is_down_is_an_error() {
    let mut redis = RedisServer::start(&[]).await;
    redis.kill();
    let (code, findings) = examined(&redis.url()).await;
    assert_eq!((code, findings.len()), (Some(1), 1), "{findings:?}");
    is(&findings, "reachable", "error", "redis.sock");
    let output = run(&redis, &["doctor"]).await;
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("say with --redis or DELAYLINE_REDIS_URL"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_wrong_password_or_url_is_told() {
    let redis = RedisServer::start(&["--requirepass", "right"]).await;
    let (code, findings) = examined(&format!("{}?pass=hunter2", redis.url())).await;
    assert_eq!(code, Some(1), "{findings:?}");
    is(&findings, "reachable", "error", "");
    assert!(findings[0]["mend"].as_str().unwrap().contains("user and password"), "{findings:?}");
    for words in [&["doctor"][..], &["doctor", "--redis", "memory://"], &["doctor", "--redis", "http://h/"]] {
        let output = delayline(None, words).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

/// What the scripts call, and what is sent beside them.
const CALLED: [&str; 26] = [
    "EVALSHA",
    "EVAL",
    "TIME",
    "GET",
    "SET",
    "HGET",
    "HMGET",
    "RENAME",
    "HSET",
    "HSETNX",
    "HINCRBY",
    "HDEL",
    "ZADD",
    "ZCARD",
    "ZCOUNT",
    "ZMSCORE",
    "ZPOPMIN",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZREM",
    "ZREMRANGEBYSCORE",
    "ZSCORE",
    "UNLINK",
    "PUBLISH",
    "HSCAN",
    "SUBSCRIBE",
];

fn keys(redis: &RedisServer) -> Vec<String> {
    let mut connection = Client::open(redis.url()).unwrap().get_connection().unwrap();
    redis::cmd("KEYS").arg("*").query(&mut connection).unwrap()
}

#[tokio::test]
async fn a_command_that_the_server_lacks_is_named_and_nothing_is_left_behind() {
    for name in CALLED {
        let redis = RedisServer::start(&["--rename-command", name, ""]).await;
        let (code, findings) = examined(&redis.url()).await;
        assert_eq!(code, Some(1), "{name}: {findings:?}");
        is(&findings, "permissions", "error", name);
        assert!(!format!("{findings:?}").contains("a bug of delayline"), "{name}: {findings:?}");
        let left = keys(&redis).into_iter().find(|key| key.contains("doctor-"));
        assert_eq!(left, None, "{name}");
    }
}

/// Redis 6.2 does not tell what a user may do: it is tried.
#[tokio::test]
async fn a_command_that_is_denied_is_named_by_an_older_server_too() {
    let redis = RedisServer::start(&[]).await;
    let all = "on >x ~* &* +@all -acl|dryrun";
    for name in CALLED.iter().filter(|name| !["EVALSHA", "PUBLISH", "SUBSCRIBE"].contains(name)) {
        let denied = format!("-{}", name.to_lowercase());
        let rules = all.split(' ').chain([&*denied]);
        ask(&redis, &["ACL", "SETUSER", "ann", "reset"].into_iter().chain(rules).collect::<Vec<_>>());
        let (_, findings) = examined(&format!("{}?user=ann&pass=x", redis.url())).await;
        is(&findings, "permissions", "error", name);
    }
}

/// Passes all on, until a client speaks of a queue of the doctor's: what that connection asks from then on is done, but
/// nothing is answered.
struct Mute {
    directory: TempDir,
    spoken: Arc<AtomicBool>,
}

impl Mute {
    /// The server gets to know the scripts first, so that it does what is asked of it at once.
    async fn before(redis: &RedisServer) -> Mute {
        said(redis, &["doctor"]).await;
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("redis.sock")).unwrap();
        let server = PathBuf::from(redis.url().strip_prefix("redis+unix://").unwrap());
        let spoken = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&spoken);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (heard, server) = (Arc::clone(&heard), UnixStream::connect(&server).await.unwrap());
                tokio::spawn(pass_on(client, server, heard));
            }
        });
        Mute { directory, spoken }
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.directory.path().join("redis.sock").display())
    }
}

async fn pass_on(client: UnixStream, server: UnixStream, spoken: Arc<AtomicBool>) {
    let ((mut asks, mut hears), (mut answers, mut asked)) = (client.into_split(), server.into_split());
    let muted = Arc::new(AtomicBool::new(false));
    let mute = Arc::clone(&muted);
    tokio::spawn(async move {
        let mut bytes = vec![0; 65536];
        while let Ok(read @ 1..) = answers.read(&mut bytes).await {
            if !muted.load(Ordering::Relaxed) && hears.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    });
    let mut bytes = vec![0; 65536];
    while let Ok(read @ 1..) = asks.read(&mut bytes).await {
        // The first that does is the client; the doctor's own connection cleans up, and is heard.
        let speaks = bytes[..read].windows(8).any(|text| text == b":doctor-");
        if speaks && !spoken.swap(true, Ordering::Relaxed) {
            mute.store(true, Ordering::Relaxed);
        }
        if asked.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn the_queue_of_a_round_trip_that_fails_is_removed() {
    let redis = RedisServer::start(&[]).await;
    let mute = Mute::before(&redis).await;
    let (code, findings) = examined(&mute.url()).await;
    assert_eq!(code, Some(1), "{findings:?}");
    is(&findings, "round trip", "error", "");
    assert!(mute.spoken.load(Ordering::Relaxed), "it was not cut off");
    assert_eq!(keys(&redis), ["{dl}:config"]);
}

#[tokio::test]
async fn the_queue_of_a_round_trip_that_is_interrupted_is_removed() {
    for which in ["-INT", "-TERM"] {
        let redis = RedisServer::start(&[]).await;
        let mute = Mute::before(&redis).await;
        let mut command = delayline(None, &["doctor", "--redis", &mute.url()]);
        let doctor = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        crate::eventually("its queue is there", async || {
            keys(&redis).iter().any(|key| key.contains(":doctor-")).then_some(())
        })
        .await;
        signal(which, &doctor).await;
        let output = ended(doctor).await;
        assert_eq!(output.status.code(), Some(130), "{which}: {output:?}");
        assert_eq!(keys(&redis), ["{dl}:config"], "{which}");
    }
}
