use std::time::{Duration, Instant};

use crate::redis_server::RedisServer;
use crate::service::{Service, bind};

#[tokio::test]
async fn a_redis_that_is_away_is_told_within_the_deadline() {
    let mut redis = RedisServer::start(&[]).await;
    let service = Service::with(&["--redis", &redis.url(), "--timeout", "1s"]).await;
    service.publish("q", "a").await;
    let lease = service.lease("q").await;
    assert_eq!(service.get("/readyz").await.status, 200);
    redis.kill();
    let begun = Instant::now();
    for (path, body) in [
        ("/v1/queues/q/jobs?id=b", "1"),
        ("/v1/queues/q/pause", ""),
        (&*format!("/v1/leases/{lease}/ack"), ""),
    ] {
        let answer = service.post(path, body).await;
        let code = answer.json["code"].as_str().unwrap();
        assert!(matches!(code, "not_sent" | "unknown"), "{answer:?}");
        answer.is_problem(503, code, "");
        assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
    }
    assert_eq!(service.get("/readyz").await.status, 503);
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    assert_eq!(service.get("/healthz").await.status, 200);
    assert!(service.get("/metrics").await.json.as_str().unwrap().contains("delayline_up 0"));
}

/// Each take is told so, the first one and those that come after it.
#[tokio::test]
async fn no_take_is_told_that_there_are_no_jobs_by_a_redis_that_was_not_asked() {
    let mut redis = RedisServer::start(&[]).await;
    let service = Service::with(&["--redis", &redis.url(), "--timeout", "1s"]).await;
    assert_eq!(service.post("/v1/take?queue=q", "").await.status, 204);
    redis.kill();
    for wait in ["0s", "300ms", "300ms", "1s"] {
        let answer = service.post(&format!("/v1/take?queue=q&wait={wait}"), "").await;
        answer.is_problem(503, "not_sent", "");
    }
}

#[tokio::test]
async fn jobs_outlive_the_service_on_a_redis() {
    let redis = RedisServer::start(&[]).await;
    let service = Service::with(&["--redis", &redis.url()]).await;
    service.publish("q", "a").await;
    service.stop().await;
    let service = Service::with(&["--redis", &redis.url()]).await;
    assert_eq!(service.take("q").await["id"], "a");
}

#[tokio::test]
async fn a_strict_service_refuses_a_redis_that_evicts() {
    let redis = RedisServer::start(&["--maxmemory-policy", "allkeys-lru"]).await;
    assert!(bind(&["--redis", &redis.url()]).await.is_ok());
    let refused = bind(&["--redis", &redis.url(), "--strict"]).await.err().unwrap();
    assert!(refused.to_string().contains("set maxmemory-policy noeviction"), "{refused}");
    assert_eq!(refused.exit_code(), 1);
}

/// A repeat of what was named is safe, and said to be; a repeat of a job whose id was drawn could double it.
#[cfg(unix)]
#[tokio::test]
async fn an_unknown_outcome_says_when_to_repeat_unless_that_could_double_a_job() {
    use reqwest::Method;

    use crate::service::send;

    let redis = RedisServer::start(&[]).await;
    let service = Service::with(&["--redis", &redis.url(), "--timeout", "1s"]).await;
    service.publish("q", "a").await;
    redis.pause();
    // Each to a queue of its own, as the batches of one queue wait for each other.
    let drawn = service.post("/v1/queues/drawn/jobs", "1");
    let named = service.post("/v1/queues/named/jobs?id=b", "1");
    let keyed = service.request(Method::POST, "/v1/queues/keyed/jobs").header("Idempotency-Key", "c");
    let moved = service.patch("/v1/queues/q/jobs/a", r#"{"delay":"1h"}"#);
    let (drawn, named, keyed, moved) = tokio::join!(drawn, named, send(keyed.body("1")), moved);
    drawn.is_problem(504, "unknown", "with an id or an Idempotency-Key it could be repeated safely");
    assert!(!drawn.headers.contains_key("retry-after"), "{drawn:?}");
    for answer in [named, keyed, moved] {
        answer.is_problem(503, "unknown", "");
        assert_eq!(answer.headers["retry-after"], "1", "{answer:?}");
    }
    redis.resume();
}
