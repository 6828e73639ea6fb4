use delayline_tokio::redis::{self, Client};
use serde_json::Value;

use crate::program::{delayline, run, said};
use crate::redis_server::RedisServer;

const CHECKS: [&str; 10] = [
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
