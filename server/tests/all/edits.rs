//! What operators change by hand about jobs and configs: editing, releasing, patching.

use serde_json::{Value, json};

use crate::program::{fails, fed, lines_of, run, run_json, said};
use crate::redis_server::RedisServer;
use crate::service::{Service, send, text};

const JOB: &str = "/v1/queues/q/jobs/a";

async fn failed_once(service: &Service) {
    service.post("/v1/queues/q/jobs?id=a&attempts=5&backoff=fixed+1h&ttl=1d", r#"{"to":"an"}"#).await;
    let lease = service.lease("q").await;
    service.post(&format!("/v1/leases/{lease}/nack?reason=no+such+address"), "").await;
}

#[tokio::test]
async fn an_edit_keeps_what_it_does_not_name() {
    let service = Service::start().await;
    failed_once(&service).await;
    let before = service.get(JOB).await.json;
    let edited = service.patch(JOB, r#"{"payload":{"to":"ann"},"headers":{"tenant":"acme"}}"#).await;
    assert_eq!((edited.status.as_u16(), &edited.json["due"]), (200, &before["due"]));
    let after = service.get(JOB).await.json;
    assert_eq!(
        (&after["payload"], &after["headers"]),
        (&json!({ "to": "ann" }), &json!({ "tenant": "acme" }))
    );
    for name in ["due", "expires", "attempt", "max_attempts", "deliveries", "reason", "published", "backoff"]
    {
        assert_eq!(after[name], before[name], "{name}");
    }
    let edited = service
        .patch(JOB, r#"{"attempts":null,"backoff":null,"ttl":null,"delay":"0s","headers":{"tenant":null}}"#);
    assert_eq!(edited.await.status.as_u16(), 200);
    let after = service.take("q").await;
    let job = &after;
    assert_eq!(
        (&job["attempt"], &job["max_attempts"], &job["payload"]),
        (&json!(2), &json!(10), &json!({ "to": "ann" }))
    );
    assert_eq!((&job["headers"], &service.get(JOB).await.json["expires"]), (&json!({}), &Value::Null));
    let counters = service.get("/v1/queues/q").await.json["counters"].clone();
    assert_eq!((&counters["published"], &counters["cancelled"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn only_a_waiting_job_is_edited() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?id=a&ttl=2h", "1").await;
    let edit = r#"{"payload":2}"#;
    let late = service.patch(JOB, r#"{"payload":2,"at":"2035-01-01T00:00:00Z"}"#).await;
    late.is_problem(409, "expires", "or another ttl with it");
    service.patch(JOB, r#"{"attempts":0}"#).await.is_problem(400, "bad_attempts", "0 attempts");
    service.patch(JOB, "{}").await.is_problem(400, "nothing_to_change", "the body names nothing");
    let lease = service.lease("q").await;
    service.patch(JOB, edit).await.is_problem(409, "leased", "cannot be edited");
    service.post(&format!("/v1/leases/{lease}/bury"), "").await;
    service.patch(JOB, edit).await.is_problem(409, "dead", "requeue it first");
    service.patch("/v1/queues/q/jobs/b", edit).await.is_problem(404, "no_such_job", "no job b");
    assert_eq!(service.sizes("q").await, [0, 0, 0, 1]);
}

/// One that was acked between being looked at and being edited does not come back, and of two edits none is lost.
#[tokio::test]
async fn edits_at_the_same_time_lose_nothing() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?id=a&delay=1h", "0").await;
    let names: Vec<String> = (0..4).map(|n| format!("h{n}")).collect();
    let bodies: Vec<String> =
        names.iter().map(|name| json!({ "headers": { name: "1" } }).to_string()).collect();
    let edits = bodies.iter().map(async |body| {
        loop {
            let answer = service.patch(JOB, body.clone()).await;
            match answer.status.as_u16() {
                200 => return,
                // It lost to the others five times, which is told: nothing is lost that was answered.
                409 => assert_eq!(answer.json["code"], "changed"),
                other => panic!("{other}: {}", answer.json),
            }
        }
    });
    futures_util::future::join_all(edits).await;
    let headers = service.get(JOB).await.json["headers"].clone();
    assert_eq!(headers.as_object().unwrap().keys().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_job_is_taken_from_its_consumer_by_force_only() {
    let service = Service::start().await;
    service.post("/v1/queues/q/jobs?id=a", "1").await;
    let release = format!("{JOB}/release?force=true");
    service.post(&release, "").await.is_problem(409, "waiting", "there is nothing to release");
    let lease = service.lease("q").await;
    service.post(&format!("{JOB}/release"), "").await.is_problem(400, "not_forced", "add force=true");
    service.post(&release, "").await.is(200, json!({ "id": "a", "status": "released" }));
    let kept = service.get(JOB).await.json;
    assert_eq!((&kept["state"], &kept["attempt"]), (&json!("ready"), &json!(0)));
    let again = service.take("q").await;
    assert_eq!(again["attempt"], 1);
    service.post(&format!("/v1/leases/{lease}/ack"), "").await.is_problem(
        409,
        "stale",
        "this lease has ended",
    );
    let lease = text(&again["lease"]);
    service.post(&format!("/v1/leases/{lease}/bury"), "").await;
    service.post(&release, "").await.is_problem(409, "dead", "requeue it");
    service.post("/v1/queues/q/jobs/b/release?force=true", "").await.is_problem(
        404,
        "no_such_job",
        "no job b",
    );
}

#[tokio::test]
async fn a_patch_of_a_config_changes_what_it_names() {
    let service = Service::start().await;
    let config = "/v1/queues/q/config";
    service.patch(config, r#"{"attempts":5}"#).await.is_problem(404, "no_such_queue", "no queue q");
    service.put(config, r#"{"attempts":5,"retention":"7d"}"#).await;
    let patched = service.patch(config, r#"{"attempts":null,"max_jobs":9}"#).await;
    let expected = json!({ "retention": "7d", "bury_expired": false, "max_jobs": 9 });
    patched.is(200, json!({ "cfgver": 2, "config": expected }));
    assert_eq!(patched.headers["etag"], "\"2\"");
    for (version, status) in [("\"1\"", 412), ("\"2\"", 200), ("*", 200)] {
        let request = service.request(reqwest::Method::PATCH, config).header("if-match", version);
        assert_eq!(send(request.body(r#"{"attempts":3}"#)).await.status.as_u16(), status, "{version}");
    }
    service.patch(config, r#"{"attempt":3}"#).await.is_problem(400, "bad_config", "unknown field `attempt`");
    service.patch(config, r#"{"forward":"list:x"}"#).await.is_problem(400, "forward_needs_redis", "--redis");
    assert_eq!(service.get("/v1/queues/q").await.json["config"]["attempts"], 3);
}

#[tokio::test]
async fn a_job_is_edited_by_hand() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "1", "--id", "a", "--delay", "1h", "--header", "trace=x"]).await;
    let edit = [
        "edit",
        "q",
        "a",
        "--payload",
        "2",
        "--header",
        "tenant=acme",
        "--remove-header",
        "trace",
        "--attempts",
        "20",
    ];
    assert!(said(&redis, &edit).await.starts_with("a due 2"));
    let fed = fed(&redis, &["edit", "q", "a", "--payload-file", "-", "--json"], b"{\"n\":3}").await;
    assert_eq!(lines_of(&fed.stdout)[0]["id"], "a", "{fed:?}");
    let job = run_json(&redis, &["job", "q", "a", "--json"]).await;
    assert_eq!(
        (&job["payload"], &job["headers"], &job["max_attempts"]),
        (&json!({ "n": 3 }), &json!({ "tenant": "acme" }), &json!(20))
    );
    said(&redis, &["edit", "q", "a", "--attempts", "default", "--ttl", "2h", "--delay", "0s"]).await;
    let job = run_json(&redis, &["job", "q", "a", "--json"]).await;
    assert_eq!(
        (&job["state"], &job["max_attempts"], job["expires"].is_string()),
        (&json!("ready"), &Value::Null, true)
    );
    fails(&redis, &["edit", "q", "a"], 2, "required").await;
    fails(&redis, &["edit", "q", "b", "--attempts", "2"], 1, "queue q has no job b").await;
    fails(&redis, &["edit", "quue", "b", "--attempts", "2"], 1, "there is no queue quue").await;
    let gone = run(&redis, &["edit", "q", "b", "--attempts", "2", "--json"]).await;
    assert_eq!(lines_of(&gone.stderr)[0]["code"], "no_such_job");
}

#[tokio::test]
async fn a_job_is_released_by_hand() {
    let redis = RedisServer::start(&[]).await;
    for id in ["a", "b"] {
        said(&redis, &["publish", "q", "1", "--id", id]).await;
    }
    let killed =
        run(&redis, &["consume", "q", "--count", "1", "--lease", "1h", "--exec", "kill -KILL $PPID"]).await;
    assert!(!killed.status.success(), "{killed:?}");
    fails(&redis, &["release", "q", "a"], 2, "--force").await;
    let released = run(&redis, &["release", "q", "a", "b", "--force", "--json"]).await;
    let lines = lines_of(&released.stdout);
    assert_eq!(
        (released.status.code(), lines[0]["status"].clone(), lines[1]["status"].clone()),
        (Some(1), json!("released"), json!("waiting"))
    );
    let job = run_json(&redis, &["job", "q", "a", "--json"]).await;
    assert_eq!((&job["state"], &job["attempt"], &job["deliveries"]), (&json!("ready"), &json!(0), &json!(1)));
}

#[tokio::test]
async fn the_config_in_force_is_shown_with_its_defaults() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["config", "set", "q", "attempts=10", "--create"]).await;
    let shown = said(&redis, &["config", "get", "q"]).await;
    for line in [
        "config attempts      10",
        "config backoff       exponential 1s..1h jitter 10% (default)",
        "config retention     for ever (default)",
        "config bury_expired  false (default)",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line:?} is not in {shown}");
    }
    let shown = run_json(&redis, &["config", "get", "q", "--json"]).await;
    assert_eq!((&shown["in_force"]["attempts"], &shown["in_force"]["retention"]), (&json!(10), &Value::Null));
    assert_eq!(shown["in_force"]["backoff"], "exponential 1s..1h jitter 10%");
}

#[tokio::test]
async fn a_command_says_by_its_exit_what_becomes_of_its_job() {
    let redis = RedisServer::start(&[]).await;
    for (id, exit) in [("done", 0), ("later", 75), ("never", 65), ("failed", 1)] {
        said(&redis, &["publish", "q", &exit.to_string(), "--id", id, "--backoff", "fixed 1h"]).await;
    }
    let exec = ["consume", "q", "--count", "4", "--snooze", "2h", "--exec", "echo why >&2; exit $(cat)"];
    said(&redis, &exec).await;
    assert_eq!(run(&redis, &["job", "q", "done"]).await.status.code(), Some(1));
    for (id, state, attempt, reason) in [
        ("later", "delayed", 0, Value::Null),
        ("never", "dead", 1, json!("why")),
        ("failed", "delayed", 1, json!("why")),
    ] {
        let job = run_json(&redis, &["job", "q", id, "--json"]).await;
        assert_eq!(
            (&job["state"], &job["attempt"], &job["reason"]),
            (&json!(state), &json!(attempt), &reason),
            "{id}"
        );
    }
    fails(&redis, &["consume", "q", "--concurrency", "4"], 2, "--exec").await;
    fails(&redis, &["consume", "q", "--exec", "x", "--concurrency", "0"], 2, "1..=1000").await;
}

/// Each command waits until as many are there: they run at the same time, or never end.
#[tokio::test]
async fn as_many_commands_run_at_a_time_as_are_asked_for() {
    let redis = RedisServer::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    for id in ["a", "b", "c"] {
        said(&redis, &["publish", "q", "1", "--id", id]).await;
    }
    let there = folder.path().display();
    let meet =
        format!("touch {there}/$DELAYLINE_ID; until test $(ls {there} | wc -l) -ge 3; do sleep 0.01; done");
    said(&redis, &["consume", "q", "--count", "3", "--concurrency", "3", "--exec", &meet]).await;
    assert_eq!(run_json(&redis, &["stats", "q", "--json"]).await["counters"]["acked"], 3);
}

#[tokio::test]
async fn jobs_are_printed_in_the_order_of_their_due_times() {
    let redis = RedisServer::start(&[]).await;
    let jobs: String = (0..500)
        .map(|n| format!("{{\"payload\":{n},\"at\":\"2020-01-01T00:{:02}:{:02}Z\"}}\n", n / 60, n % 60))
        .rev()
        .collect::<Vec<_>>()
        .concat();
    let published = fed(&redis, &["publish", "q", "--ndjson"], jobs.as_bytes()).await;
    assert!(published.status.success(), "{published:?}");
    let printed = said(&redis, &["consume", "q", "--count", "500"]).await;
    let printed: Vec<usize> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(printed, (0..500).collect::<Vec<_>>());
}
