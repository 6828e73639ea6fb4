use serde_json::json;

use crate::redis_server::RedisServer;
use crate::service::{Service, text};

#[tokio::test]
async fn each_verdict_does_what_it_says() {
    let service = Service::start().await;
    for (id, verb, status, state, attempt) in [
        ("a", "nack?delay=1h&reason=busy", "ok", "delayed", 1),
        ("b", "snooze?delay=1h", "ok", "delayed", 0),
        ("c", "release", "ok", "ready", 0),
        ("d", "bury?reason=broken", "dead", "dead", 1),
    ] {
        let queue = format!("q-{id}");
        service.publish(&queue, id).await;
        let lease = service.lease(&queue).await;
        service.post(&format!("/v1/leases/{lease}/{verb}"), "").await.is(200, json!({ "status": status }));
        let kept = service.get(&format!("/v1/queues/{queue}/jobs/{id}")).await.json;
        assert_eq!((&kept["state"], &kept["attempt"]), (&json!(state), &json!(attempt)), "{verb}: {kept}");
    }
}

#[tokio::test]
async fn the_last_failed_attempt_kills() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?id=a&attempts=1", "1").await;
    let lease = service.lease("q").await;
    let nacked = service.post(&format!("/v1/leases/{lease}/nack?reason=no"), "").await;
    nacked.is(200, json!({ "status": "dead" }));
    assert_eq!(service.sizes("q").await, [0, 0, 0, 1]);
}

#[tokio::test]
async fn a_repeat_is_fine_and_a_foreign_lease_is_not() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let first = service.lease("q").await;
    service.post(&format!("/v1/leases/{first}/nack?delay=0s"), "").await.is(200, json!({ "status": "ok" }));
    service
        .post(&format!("/v1/leases/{first}/nack?delay=0s"), "")
        .await
        .is(200, json!({ "status": "repeat" }));
    let second = service.lease("q").await;
    for verb in ["ack", "nack", "snooze?delay=1s", "release", "bury", "extend"] {
        let answer = service.post(&format!("/v1/leases/{first}/{verb}"), "").await;
        answer.is_problem(409, "stale", "stop working on it");
    }
    assert_eq!(service.sizes("q").await, [0, 0, 1, 0]);
    service.post(&format!("/v1/leases/{second}/ack"), "").await.is(200, json!({ "status": "ok" }));
    for verb in ["ack", "extend"] {
        service.post(&format!("/v1/leases/{second}/{verb}"), "").await.is_problem(
            410,
            "gone",
            "no longer exists",
        );
    }
}

#[tokio::test]
async fn a_lease_can_be_extended() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let job = service.take("q").await;
    let extended = service.post(&format!("/v1/leases/{}/extend?lease=1h", text(&job["lease"])), "").await;
    assert_eq!(extended.json["status"], "ok");
    assert!(text(&extended.json["lease_ends"]) > text(&job["lease_ends"]), "{extended:?}");
}

#[tokio::test]
async fn many_can_be_settled_at_once() {
    let service = Service::start().await;
    for id in ["a", "b", "c", "d"] {
        service.publish("q", id).await;
    }
    let taken = service.post("/v1/take?queue=q&count=4", "").await.json["jobs"].clone();
    let lease = |n: usize| text(&taken[n]["lease"]);
    let settled = json!([
        { "lease": lease(0), "verdict": "ack" },
        { "lease": lease(1), "verdict": "nack", "delay": "1h", "reason": "busy" },
        { "lease": lease(0), "verdict": "nap" },
        { "lease": lease(2), "verdict": "snooze" },
        { "lease": lease(2), "verdict": "bury", "reason": "broken" },
        { "lease": lease(3), "verdict": "release" },
    ]);
    let answer = service.post("/v1/leases/settle", settled.to_string()).await;
    assert_eq!(answer.status, 200);
    let statuses: Vec<_> =
        answer.json["results"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["ok", "ok", "error", "error", "dead", "ok"]);
    assert!(
        text(&answer.json["results"][2]["detail"]).contains("unknown variant `nap`, expected one of `ack`")
    );
    assert!(text(&answer.json["results"][3]["detail"]).contains("a snooze needs a delay"));
    assert_eq!(service.sizes("q").await, [1, 1, 0, 1]);
    let gone = json!([{ "lease": lease(0), "verdict": "ack" }]).to_string();
    let gone = service.post("/v1/leases/settle", gone).await.json["results"][0].clone();
    assert_eq!((&gone["status"], &gone["code"]), (&json!("gone"), &json!("gone")));
}

/// Each verdict on a lease, after each: in memory, and on a Redis.
#[tokio::test]
async fn the_first_verdict_stands_and_a_different_one_is_told_which_it_was() {
    let redis = RedisServer::start(&[]).await;
    let verbs = ["ack", "nack?delay=1h", "snooze?delay=1h", "release", "bury"];
    for service in [Service::start().await, Service::with(&["--redis", &redis.url()]).await] {
        for first in verbs {
            let name = first.split('?').next().unwrap();
            // A nack of the last attempt ends among the dead, and was a nack all the same.
            for attempts in [1, 5].into_iter().filter(|attempts| *attempts > 1 || name == "nack") {
                let queue = format!("q-{name}-{attempts}");
                let path = format!("/v1/queues/{queue}/jobs?attempts={attempts}");
                assert_eq!(service.post(&path, "1").await.status, 201);
                let lease = service.lease(&queue).await;
                assert_eq!(service.post(&format!("/v1/leases/{lease}/{first}"), "").await.status, 200);
                for second in verbs {
                    let answer = service.post(&format!("/v1/leases/{lease}/{second}"), "").await;
                    let item = match second.split_once('?') {
                        None => json!([{ "lease": lease, "verdict": second }]),
                        Some((verdict, _)) => json!([{ "lease": lease, "verdict": verdict, "delay": "1h" }]),
                    };
                    let many = service.post("/v1/leases/settle", item.to_string()).await;
                    let result = &many.json["results"][0];
                    if first == "ack" {
                        answer.is_problem(410, "gone", "no longer exists");
                        assert_eq!(result["code"], "gone", "{second} after {first}");
                    } else if first == second {
                        answer.is(200, json!({ "status": "repeat" }));
                        assert_eq!(result["status"], "repeat", "{second} after {first}");
                    } else {
                        answer.is_problem(409, "settled", &format!("stands, which was a {name}"));
                        assert_eq!(result["code"], "settled", "{second} after {first}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_reason_and_a_delay_may_stand_in_the_body() {
    let service = Service::start().await;
    let long = "é".repeat(3_000);
    for (id, verb, body, reason, state) in [
        ("a", "nack", json!({ "reason": "two\nlines", "delay": "1h" }), "two\nlines", "delayed"),
        ("b", "bury", json!({ "reason": "broken" }), "broken", "dead"),
        ("c", "bury", json!({ "reason": long }), &long[..1_024], "dead"),
    ] {
        let queue = format!("q-{id}");
        service.publish(&queue, id).await;
        let lease = service.lease(&queue).await;
        let path = format!("/v1/leases/{lease}/{verb}");
        let both = service.post(&format!("{path}?reason=x"), body.to_string()).await;
        both.is_problem(400, "bad_option", "give them in one of both");
        assert_eq!(service.post(&path, body.to_string()).await.status, 200);
        let kept = service.get(&format!("/v1/queues/{queue}/jobs/{id}")).await.json;
        assert_eq!((&kept["state"], &kept["reason"]), (&json!(state), &json!(reason)), "{kept}");
    }
    service.publish("q", "d").await;
    let lease = service.lease("q").await;
    let path = format!("/v1/leases/{lease}");
    service.post(&format!("{path}/ack"), "{}").await.is_problem(400, "unexpected_body", "no body is read");
    service.post(&format!("{path}/nack"), "busy").await.is_problem(400, "bad_json", "write {\"reason\"");
    let huge = json!({ "reason": "x".repeat(70_000) }).to_string();
    service.post(&format!("{path}/nack"), huge).await.is_problem(413, "body_too_large", "64 KiB");
    assert_eq!(service.sizes("q").await, [0, 0, 1, 0]);
    service.post(&format!("{path}/snooze"), r#"{"delay":"1h"}"#).await.is(200, json!({ "status": "ok" }));
}
