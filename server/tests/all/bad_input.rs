use reqwest::Method;
use serde_json::json;

use crate::service::{Answer, Service, bind, send, text};

async fn post_with(service: &Service, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = service.request(Method::POST, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request.body(body.to_string())).await
}

#[tokio::test]
async fn a_publish_that_is_not_right_publishes_nothing() {
    let service = Service::with(&["--max-payload", "1KiB"]).await;
    for (options, code, says) in [
        ("dealy=5s", "unknown_option", "\"dealy\" is not an option here: use id, delay, at"),
        ("delay=5", "bad_option", "5 in \"5\" has no unit: write 5s for seconds"),
        ("delay=-5s", "bad_option", "\"-5s\" is not a length of time"),
        ("delay=5s&delay=6s", "bad_option", "delay is given more than once"),
        ("delay=11000d", "delay_too_long", "10 years"),
        ("at=2090-01-01T00:00:00Z", "delay_too_long", "10 years"),
        ("at=tomorrow", "bad_option", "write RFC 3339"),
        ("at=2026-11-21T10:00:05+01:00", "bad_option", "a + must be written %2B"),
        ("delay=5s&at=2026-11-21T10:00:05Z", "bad_due", "give one"),
        ("id=a%20b", "bad_job_id", "use 1 to 128 of"),
        ("id=", "bad_job_id", "use 1 to 128 of"),
        ("attempts=0", "bad_option", "attempts is 0, but must be 1 to 999"),
        ("attempts=1000", "bad_option", "attempts is 1000, but must be 1 to 999"),
        ("attempts=many", "bad_option", "it must be 1 to 999"),
        ("backoff=15s+3+10m", "bad_option", "3 in \"3\" has no unit"),
        ("backoff=linear", "bad_option", "is not a backoff: write none, fixed 5s"),
        ("ttl=1s&delay=5s", "ttl_too_short", "make the ttl longer"),
        ("ttl=0s", "ttl_too_short", "make the ttl longer"),
        ("replace=true", "bad_option", "give it the id of the job"),
        ("replace=yes&id=a", "bad_option", "replace: provided string was not `true` or `false`"),
    ] {
        let answer = service.post(&format!("/v1/queues/q/jobs?{options}"), "1").await;
        answer.is_problem(400, code, says);
    }
    for (header, value, code, says) in [
        ("Delayline-Dealy", "5s", "unknown_option", "the header Delayline-dealy is not an option here"),
        ("Delayline-Delay", "5", "bad_option", "has no unit"),
        ("Idempotency-Key", "a b", "bad_job_id", "use 1 to 128 of"),
    ] {
        post_with(&service, "/v1/queues/q/jobs", &[(header, value)], "1").await.is_problem(400, code, says);
    }
    let both = post_with(&service, "/v1/queues/q/jobs?id=a", &[("Idempotency-Key", "b")], "1").await;
    both.is_problem(400, "bad_option", "give one");
    let replaces = "/v1/queues/q/jobs?replace=true";
    let both = post_with(&service, replaces, &[("Idempotency-Key", "b")], "1").await;
    both.is_problem(400, "bad_option", "as a repeat would replace: give an id");
    let long = [("Delayline-Header-Long", &*"x".repeat(4_000))];
    post_with(&service, "/v1/queues/q/jobs", &long, "1").await.is_problem(400, "bad_job", "shorter headers");
    let large = service.post("/v1/queues/q/jobs", "x".repeat(1_025)).await;
    large.is_problem(413, "payload_too_large", "over 1024 bytes: store it elsewhere");
    service.get("/v1/queues/q").await.is_problem(404, "no_such_queue", "");
    let fits = service.post("/v1/queues/q/jobs", "x".repeat(1_024)).await;
    assert_eq!(fits.status, 201);
}

#[tokio::test]
async fn a_payload_may_have_a_mebibyte() {
    let service = Service::start().await;
    let large = service.post("/v1/queues/q/jobs", "x".repeat((1 << 20) + 1)).await;
    large.is_problem(413, "payload_too_large", "over 1048576 bytes");
    assert_eq!(service.post("/v1/queues/q/jobs", "x".repeat(1 << 20)).await.status, 201);
}

#[tokio::test]
async fn names_of_queues_are_checked_everywhere() {
    let service = Service::start().await;
    let long = "q".repeat(256);
    for name in ["a%20b", "q%231", "~x", "x~", "a~b~c", "%C3%A9", &long] {
        for (method, path) in [
            (Method::POST, "/jobs"),
            (Method::POST, "/batch"),
            (Method::GET, "/jobs/a"),
            (Method::DELETE, "/jobs/a"),
            (Method::PATCH, "/jobs/a"),
            (Method::GET, ""),
            (Method::DELETE, ""),
            (Method::PUT, "/config"),
            (Method::POST, "/pause"),
            (Method::POST, "/resume"),
            (Method::GET, "/dead"),
            (Method::POST, "/dead/requeue"),
            (Method::POST, "/dead/purge"),
        ] {
            let answer = send(service.request(method, &format!("/v1/queues/{name}{path}"))).await;
            answer.is_problem(
                400,
                "bad_queue_name",
                "use 1 to 255 of A-Z a-z 0-9 . _ -, alone or as namespace~queue",
            );
        }
        let answer = service.post(&format!("/v1/take?queue={name}"), "").await;
        answer.is_problem(400, "bad_queue_name", "use 1 to 255 of");
    }
    service.get("/v1/queues").await.is(200, json!({ "queues": [], "cursor": null }));
}

#[tokio::test]
async fn a_take_that_is_not_right_takes_nothing() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    for (options, code, says) in [
        ("", "bad_option", "add ?queue=NAME"),
        ("queue=q&count=0", "bad_option", "count is 0, but must be 1 to 256"),
        ("queue=q&count=257", "bad_option", "count is 257, but must be 1 to 256"),
        ("queue=q&wait=6m", "bad_option", "wait is 6m, but must be 0s to 5m"),
        ("queue=q&lease=100ms", "bad_option", "lease is 100ms, but must be 1s to 1d"),
        ("queue=q&lease=25h", "bad_option", "lease is 1d1h, but must be 1s to 1d"),
        ("queue=q&limit=5", "unknown_option", "use queue, count, wait, lease"),
    ] {
        service.post(&format!("/v1/take?{options}"), "").await.is_problem(400, code, says);
    }
    let many: Vec<String> = (0..65).map(|n| format!("queue=q-{n}")).collect();
    let answer = service.post(&format!("/v1/take?{}", many.join("&")), "").await;
    answer.is_problem(400, "bad_option", "65 queues are named, and at most 64 can be");
    assert_eq!(service.sizes("q").await, [1, 0, 0, 0]);
}

#[tokio::test]
async fn a_verdict_that_is_not_right_settles_nothing() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let lease = service.lease("q").await;
    for (path, code, says) in [
        ("x/ack", "bad_lease", "\"x\" is no lease: pass it as the job was delivered with it"),
        ("{}/ack?delay=5s", "unknown_option", "none is known here"),
        ("{}/nack?delay=5", "bad_option", "has no unit"),
        ("{}/nack?dealy=5s", "unknown_option", "use delay, reason"),
        ("{}/nack?delay=11000d", "too_long", "10 years"),
        ("{}/snooze", "bad_option", "a snooze needs a delay: add delay=5s"),
        ("{}/bury?delay=5s", "unknown_option", "use reason"),
        ("{}/extend?lease=1ms", "bad_option", "lease is 1ms, but must be 1s to 1d"),
    ] {
        let path = format!("/v1/leases/{}", path.replace("{}", &lease));
        service.post(&path, "").await.is_problem(400, code, says);
    }
    let body = service.post(&format!("/v1/leases/{lease}/release"), r#"{"reason":"x"}"#).await;
    body.is_problem(400, "unexpected_body", "pass options in the query");
    let many = vec![json!({ "lease": lease, "verdict": "ack" }); 1_001];
    let many = service.post("/v1/leases/settle", json!(many).to_string()).await;
    many.is_problem(413, "too_many_items", "more than 1000 items");
    service.post("/v1/leases/settle", "{}").await.is_problem(400, "bad_json", "not an array");
    assert_eq!(service.sizes("q").await, [0, 0, 1, 0]);
}

#[tokio::test]
async fn a_reschedule_that_is_not_right_moves_nothing() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?id=a&delay=1h", "1").await;
    let due = service.get("/v1/queues/q/jobs/a").await.json["due"].clone();
    for (body, code, says) in [
        ("", "bad_json", "write one or more of payload"),
        ("{}", "nothing_to_change", "the body names nothing"),
        (r#"{"dealy":"5s"}"#, "bad_json", "unknown field `dealy`"),
        (r#"{"delay":5}"#, "bad_json", "expected a string"),
        (r#"{"delay":"5"}"#, "bad_json", "has no unit"),
        (r#"{"delay":"11000d"}"#, "delay_too_long", "10 years"),
        (r#"{"delay":"5s","at":"2026-11-21T10:00:05Z"}"#, "bad_due", "give one"),
    ] {
        service.patch("/v1/queues/q/jobs/a", body).await.is_problem(400, code, says);
    }
    assert_eq!(service.get("/v1/queues/q/jobs/a").await.json["due"], due);
}

#[tokio::test]
async fn a_config_that_is_not_right_changes_nothing() {
    let service = Service::start().await;
    service.put("/v1/queues/q/config", r#"{"attempts":3}"#).await;
    for (body, code, says) in [
        ("", "bad_config", "the body is not a config"),
        (r#"{"attempt":3}"#, "bad_config", "unknown field `attempt`, expected one of"),
        (r#"{"attempts":0}"#, "bad_config", "attempts must be 1 to 999"),
        (r#"{"backoff":"15s 3"}"#, "bad_config", "has no unit"),
        (r#"{"retention":"1000w"}"#, "too_long", "10 years"),
        (r#"{"forward":"list:work"}"#, "forward_needs_redis", "start the service with --redis"),
        (r#"{"forward":"work"}"#, "bad_config", "write list:KEY or stream:KEY"),
    ] {
        service.put("/v1/queues/q/config", body).await.is_problem(400, code, says);
    }
    assert_eq!(service.get("/v1/queues/q").await.json["cfgver"], 1);
}

#[tokio::test]
async fn other_requests_that_are_not_right() {
    let service = Service::start().await;
    for (path, code, says) in [
        ("/v1/queues?cursor=x", "bad_option", "pass it as the page before answered it"),
        ("/v1/queues?count=0", "bad_option", "count is 0, but must be 1 to 1000"),
        ("/v1/queues?page=2", "unknown_option", "use cursor, count"),
        ("/v1/queues/q?hours=49", "bad_option", "hours is 49, but must be 0 to 48"),
        ("/v1/queues/q/dead?count=257", "bad_option", "count is 257, but must be 1 to 256"),
        ("/v1/queues/q/dead?cursor=x", "bad_option", "not of this list"),
        ("/v1/queues/q/jobs/a%20b", "bad_job_id", "use 1 to 128 of"),
    ] {
        service.get(path).await.is_problem(400, code, says);
    }
    for (body, says) in [
        ("", "write {\"ids\": [\"…\"]} or {\"all\": true}"),
        ("{}", "must name ids or all"),
        (r#"{"ids":[]}"#, "must name ids or all"),
        (r#"{"ids":["a"],"all":true}"#, "must name ids or all"),
        (r#"{"ids":["a b"]}"#, "job id \"a b\" is not valid"),
    ] {
        for verb in ["requeue", "purge"] {
            let answer = service.post(&format!("/v1/queues/q/dead/{verb}"), body).await;
            answer.is_problem(400, "bad_json", says);
        }
    }
    let ids = json!({ "ids": vec!["a"; 1_001] }).to_string();
    let answer = service.post("/v1/queues/q/dead/purge", ids).await;
    answer.is_problem(413, "too_many_items", "more than 1000 items");
}

#[tokio::test]
async fn a_service_that_others_can_reach_must_be_wanted() {
    let refused = bind(&["--listen", "0.0.0.0:0"]).await.err().unwrap();
    assert!(refused.to_string().contains("accept that with --insecure"), "{refused}");
    assert_eq!(refused.exit_code(), 2);
    assert!(bind(&["--listen", "0.0.0.0:0", "--insecure"]).await.is_ok());
    let refused = bind(&["--max-payload", "17MiB"]).await.err().unwrap();
    assert!(refused.to_string().contains("must be 1B to 16MiB"), "{refused}");
}

/// serde alone would take an array for an object, and its elements for the fields in some order.
#[tokio::test]
async fn an_array_is_no_object_whatever_the_body_is_about() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    for (method, path, body) in [
        (Method::PUT, "/v1/queues/q/config", "[3]"),
        (Method::PUT, "/v1/queues/q/config", r#"{"push": ["https://example.org"]}"#),
        (Method::PATCH, "/v1/queues/q/config", r#"{"push": ["https://example.org"]}"#),
        (Method::PATCH, "/v1/queues/q/jobs/a", r#"["5s"]"#),
        (Method::DELETE, "/v1/queues/q/jobs", r#"[["a"]]"#),
        (Method::POST, "/v1/queues/q/dead/requeue", "[null, true]"),
        (Method::POST, "/v1/queues/q/dead/purge", "[null, true]"),
        (Method::PUT, "/v1/namespaces/n", "[1]"),
        (Method::POST, "/v1/tokens", r#"[["read"]]"#),
        (Method::POST, "/v1/tokens", r#"{"scopes": ["read"], "limits": ["1/s"]}"#),
    ] {
        let answer = send(service.request(method, path).body(body)).await;
        assert_eq!(answer.status, 400, "{path} {body}: {answer:?}");
        assert!(text(&answer.json["detail"]).contains("expected an object"), "{path} {body}: {answer:?}");
    }
    for (method, path, body) in [
        (Method::POST, "/v1/queues/q/batch", "[[1]]"),
        (Method::PATCH, "/v1/queues/q/jobs", r#"[["a", "5s"]]"#),
        (Method::POST, "/v1/leases/settle", r#"[["lease", "ack"]]"#),
    ] {
        let answer = send(service.request(method, path).body(body)).await;
        let detail = text(&answer.json["results"][0]["detail"]);
        assert!(detail.contains("expected an object"), "{path} {body}: {answer:?}");
    }
}
