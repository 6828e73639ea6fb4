use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::eventually;
use crate::receiver::{ALLOW, Receiver, Reply, to};
use crate::service::{Service, text};

/// The reason of the first job that was pushed to a target like this, and has failed.
async fn failed(reply: Reply) -> String {
    let receiver = Receiver::always(reply).await;
    let service = Service::with(&ALLOW).await;
    let push = json!({ "url": receiver.url(), "timeout": "2s" });
    service.pushes("q", push, json!({ "backoff": "1h" })).await;
    service.publish("q", "a").await;
    service.counts("q", "nacked", 1).await;
    let job = service.get("/v1/queues/q/jobs/a").await.json;
    assert_eq!((&job["state"], &job["attempt"], receiver.count()), (&json!("delayed"), &json!(1), 1));
    service.stop().await;
    text(&job["reason"])
}

#[tokio::test]
async fn a_target_that_fails_has_its_job_tried_again_and_says_why() {
    let broken = || Reply::With(500, "", b"no database".to_vec());
    for (reply, says) in [
        (broken(), "answered 500: no database"),
        (Reply::HangBeforeHead, "no answer within 2000 ms"),
        (Reply::HangAfterHead(503), "answered 503: half"),
        (Reply::Reset, "the push did not arrive: "),
        (Reply::DripHead, "no answer within 2000 ms"),
        (Reply::DripBody(502), "answered 502: x"),
        (Reply::Endless(500), "answered 500: xxxx"),
    ] {
        let reason = failed(reply.clone()).await;
        assert!(reason.starts_with(says), "{reply:?}: {reason}");
    }
}

#[tokio::test]
async fn a_status_stands_whatever_becomes_of_the_body() {
    for reply in [Reply::HangAfterHead(200), Reply::DripBody(200), Reply::Endless(200)] {
        let receiver = Receiver::always(reply.clone()).await;
        let service = Service::with(&ALLOW).await;
        service.pushes("q", to(&receiver), json!({})).await;
        service.publish("q", "a").await;
        service.counts("q", "acked", 1).await;
        assert_eq!((receiver.count(), service.counted("q", "nacked").await), (1, 0), "{reply:?}");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_target_that_nobody_listens_at_is_a_failed_attempt() {
    let receiver = Receiver::always(Reply::status(200)).await;
    let url = receiver.url();
    drop(receiver);
    let service = Service::with(&ALLOW).await;
    service.pushes("q", json!({ "url": url }), json!({ "attempts": 1 })).await;
    service.publish("q", "a").await;
    let reason = text(&service.dead("q", 1).await[0]["reason"]);
    assert!(reason.contains("the push did not arrive: 127.0.0.1:"), "{reason}");
    assert!(reason.contains("cannot be connected to"), "{reason}");
    service.stop().await;
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let inner = Receiver::always(Reply::status(200)).await;
    let location: &'static str = Box::leak(format!("location: {}\r\n", inner.url()).into_boxed_str());
    for status in [301, 302, 307, 308] {
        let receiver = Receiver::always(Reply::With(status, location, Vec::new())).await;
        let service = Service::with(&ALLOW).await;
        service.pushes("q", to(&receiver), json!({ "attempts": 1 })).await;
        service.publish("q", "a").await;
        let reason = text(&service.dead("q", 1).await[0]["reason"]);
        assert_eq!(
            reason,
            format!("answered {status}, and redirects are not followed: push to where it leads")
        );
        service.stop().await;
    }
    assert_eq!(inner.connections(), 0);
}

#[tokio::test]
async fn a_4xx_is_a_death_and_a_retry_after_says_when() {
    let receiver = Receiver::start(|before, request| match request.id() {
        "gone" => Reply::With(410, "", b"no such hook".to_vec()),
        _ if before < 3 => Reply::With(429, "retry-after: 2\r\n", Vec::new()),
        _ => Reply::status(200),
    })
    .await;
    let service = Service::with(&ALLOW).await;
    service.pushes("q", to(&receiver), json!({ "backoff": "10ms" })).await;
    service.publish("q", "gone").await;
    let dead = service.dead("q", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempt"]), (&json!("answered 410: no such hook"), &json!(1)));
    service.publish("q", "busy").await;
    service.counts("q", "acked", 1).await;
    let requests = receiver.requests();
    let waited: Vec<Duration> = requests[1..].windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(waited.iter().all(|wait| *wait >= Duration::from_secs(2)), "{waited:?}");
    service.stop().await;
}

#[tokio::test]
async fn attempts_come_at_the_times_of_the_ladder_and_end_in_a_dead_letter() {
    let receiver = Receiver::always(Reply::status(500)).await;
    let service = Service::with(&ALLOW).await;
    let ladder = [300, 600, 1_200];
    service.pushes("q", to(&receiver), json!({ "attempts": 4, "backoff": "300ms 600ms 1200ms" })).await;
    service.publish("q", "a").await;
    let dead = service.dead("q", 1).await.remove(0);
    assert_eq!((&dead["attempt"], &dead["reason"]), (&json!(4), &json!("answered 500")));
    let requests = receiver.requests();
    let attempts: Vec<&str> = requests.iter().map(|request| request.header("delayline-attempt")).collect();
    assert_eq!(attempts, ["1", "2", "3", "4"]);
    for (pair, expected) in requests.windows(2).zip(ladder) {
        let waited = pair[1].at - pair[0].at;
        let expected = Duration::from_millis(expected);
        assert!(
            waited >= expected && waited < expected + Duration::from_secs(5),
            "{waited:?} for {expected:?}"
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn others_are_pushed_while_one_hangs() {
    let receiver = Receiver::start(|_, request| match request.id() {
        "hung" => Reply::HangBeforeHead,
        _ => Reply::status(200),
    })
    .await;
    let service = Service::with(&ALLOW).await;
    let push = json!({ "url": receiver.url(), "concurrency": 2, "timeout": "30s" });
    service.pushes("q", push, json!({})).await;
    service.publish("q", "hung").await;
    receiver.has(1).await;
    let begun = Instant::now();
    for id in 0..20 {
        service.publish("q", &format!("job-{id}")).await;
    }
    service.counts("q", "acked", 20).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(service);
}

#[tokio::test]
async fn what_is_pushed_over_an_outage_of_redis_is_pushed_again_or_settled() {
    let mut seen: Vec<Value> = Vec::new();
    let receiver = Receiver::always(Reply::Slowly(Duration::from_millis(300), 200)).await;
    let redis = crate::redis_server::RedisServer::start(&[]).await;
    let url = redis.url();
    let service = Service::with(&[&ALLOW[..], &["--redis", &url]].concat()).await;
    service.pushes("q", to(&receiver), json!({})).await;
    service.publish("q", "a").await;
    receiver.has(1).await;
    redis.pause();
    tokio::time::sleep(Duration::from_secs(1)).await;
    redis.resume();
    eventually("the job is done", async || {
        let answer = service.get("/v1/queues/q").await;
        seen.push(answer.json["sizes"].clone());
        (answer.json["counters"]["acked"] == 1).then_some(())
    })
    .await;
    assert_eq!(receiver.count(), 1, "{seen:?}");
    service.stop().await;
}
