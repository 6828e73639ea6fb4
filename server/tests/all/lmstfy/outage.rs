use std::collections::BTreeSet;

use serde_json::json;

use super::{Lmstfy, TOKEN};
use crate::redis_server::RedisServer;

/// Every write is on disk before it is answered.
pub(super) const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[tokio::test]
async fn a_redis_that_is_away_is_an_internal_error_and_nothing_else() {
    let mut redis = RedisServer::start(&DURABLE).await;
    let lmstfy = Lmstfy::with(&["--redis", &redis.url(), "--timeout", "1s"]).await;
    let held = lmstfy.publish("/api/ns/q?tries=5", "x").await;
    lmstfy.consume("q", "ttr=3600").await;
    let ready = lmstfy.publish("/api/ns/q", "x").await;
    redis.kill();
    let job = format!("/api/ns/q/job/{held}");
    for (method, path) in [
        ("PUT", "/api/ns/q"),
        ("PUT", &*job),
        ("GET", "/api/ns/q"),
        ("GET", "/api/ns/q?timeout=1"),
        ("GET", "/api/ns/q?count=5"),
        ("GET", "/api/ns/q/peek"),
        ("GET", "/api/ns/q/size"),
        ("GET", &*job),
        ("DELETE", &*job),
        ("DELETE", "/api/ns/q"),
        ("GET", "/api/ns/q/deadletter"),
        ("PUT", "/api/ns/q/deadletter"),
        ("DELETE", "/api/ns/q/deadletter"),
    ] {
        lmstfy.ask(method, path, "x").await.is_error(500, "internal error");
    }
    lmstfy.ask("PUT", "/api/ns/q/bulk", "[1,2]").await.is_error(500, "internal error");
    // What needs no Redis is refused as always.
    let path = "/api/ns/_q?tries=0";
    lmstfy.ask("PUT", path, "x").await.is_error(400, "queue name contains forbidden characters");
    redis.restart(&DURABLE).await;
    crate::eventually("it is back", async || (lmstfy.ask("GET", &job, "").await.status == 200).then_some(()))
        .await;
    lmstfy.ask("DELETE", &job, "").await.is_empty(204);
    let mut found = BTreeSet::new();
    while let Some(id) = lmstfy.ask("GET", "/api/ns/q", "").await.json()["job_id"].as_str() {
        found.insert(id.to_owned());
    }
    assert!(found.contains(&ready) && !found.contains(&held), "{found:?}");
}

/// Jobs that were said to be published are all there, each poll that was under way goes on, and no job is lost.
#[tokio::test]
async fn a_redis_that_restarts_half_way_loses_nothing() {
    let mut redis = RedisServer::start(&DURABLE).await;
    let lmstfy = Lmstfy::with(&["--redis", &redis.url(), "--timeout", "2s"]).await;
    let mut published = BTreeSet::new();
    let mut done = BTreeSet::new();
    let produce = async {
        for n in 0..60 {
            let query = if n % 3 == 0 { "delay=1&tries=20" } else { "tries=20" };
            loop {
                let reply = lmstfy.ask("PUT", &format!("/api/ns/q?{query}"), n.to_string()).await;
                match reply.status {
                    201 => {
                        published.insert(reply.json()["job_id"].as_str().unwrap().to_owned());
                        break;
                    }
                    500 => reply.is_error(500, "internal error"),
                    _ => panic!("{reply:?}"),
                }
            }
            if n == 20 {
                redis.restart(&DURABLE).await;
            }
        }
    };
    let consume = async {
        while done.len() < 60 {
            let reply = lmstfy.ask("GET", "/api/ns/q?ttr=2&timeout=5&count=3", "").await;
            let Some(jobs) = reply.json().as_array().cloned() else { continue };
            for job in jobs {
                let id = job["job_id"].as_str().unwrap();
                let acked = lmstfy.ask("DELETE", &format!("/api/ns/q/job/{id}"), "").await;
                if acked.status == 204 {
                    done.insert(id.to_owned());
                }
            }
        }
    };
    tokio::join!(produce, consume);
    // A publish that was answered 500 may have been carried out, and is a job more.
    while !published.is_subset(&done) {
        let job = lmstfy.consume("q", "ttr=60").await;
        let id = job["job_id"].as_str().unwrap().to_owned();
        lmstfy.ask("DELETE", &format!("/api/ns/q/job/{id}"), "").await.is_empty(204);
        done.insert(id);
    }
    assert_eq!(lmstfy.sizes("q").await[3], 0);
}

/// An instance that cannot ask for tokens lets nobody in, and does not say that a token is wrong.
#[tokio::test]
async fn tokens_that_cannot_be_looked_for_are_not_called_wrong() {
    let mut redis = RedisServer::start(&DURABLE).await;
    let lmstfy = Lmstfy::with(&["--redis", &redis.url(), "--timeout", "1s"]).await;
    redis.kill();
    crate::eventually("what is known is too old", async || {
        let reply = lmstfy.ask_with("PUT", "/api/ns/q?tries=0", &[("X-Token", TOKEN)], "x").await;
        if reply.status == 400 {
            return None;
        }
        assert_eq!((reply.status, reply.json()), (500, json!({ "error": "internal error" })));
        Some(())
    })
    .await;
}
