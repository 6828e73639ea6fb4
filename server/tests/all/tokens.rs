use std::pin::pin;
use std::time::{Duration, Instant};

use delayline_http::{Operation, ROUTES, Route, Scope};
use reqwest::Method;
use serde_json::{Value, json};

use crate::eventually;
use crate::program::{delayline, fails, run_json, said};
use crate::redis_server::RedisServer;
use crate::service::{Answer, Service, send, text};

const ROOT: &str = "root-0123456789abcdef0123456789abcdef";

/// A service that lets nobody in without a token, and the one that may do everything.
async fn guarded(arguments: &[&str]) -> Service {
    Service::with(&[&["--token", ROOT], arguments].concat()).await
}

async fn ask(service: &Service, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
    let request = service.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    send(request.body(body.to_owned())).await
}

async fn root(service: &Service, method: &str, path: &str, body: &str) -> Answer {
    ask(service, method, path, Some(ROOT), body).await
}

/// The id and the text of a new token.
async fn made(service: &Service, wanted: &Value) -> (String, String) {
    let answer = root(service, "POST", "/v1/tokens", &wanted.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    (text(&answer.json["id"]), text(&answer.json["token"]))
}

/// A job that is leased and one that waits, in `shop~q`: the lease of the first.
async fn prepared(service: &Service) -> String {
    for id in ["a", "b"] {
        let answer = root(service, "POST", &format!("/v1/queues/shop~q/jobs?id={id}"), "1").await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let taken = root(service, "POST", "/v1/take?queue=shop~q&lease=1h", "").await;
    text(&taken.json["jobs"][0]["lease"])
}

/// A request of this route that is right but for the token.
fn request(route: &Route, lease: &str) -> (String, String) {
    let path = route.path.replace("{queue}", "shop~q").replace("{id}", "b").replace("{lease}", lease);
    let path = path.replace("{namespace}", "shop").replace("{token}", "0123456789abcdef");
    let (query, body) = match route.operation {
        Operation::PublishBatch => ("", json!([{ "payload": 1, "id": "c" }])),
        Operation::Publish => ("?id=c", json!(1)),
        Operation::RescheduleJob => ("", json!({ "delay": "5s" })),
        Operation::ListJobs => ("?state=ready", Value::Null),
        Operation::CancelMany => ("", json!({ "ids": ["b"] })),
        Operation::RescheduleMany => ("", json!([{ "id": "b", "delay": "5s" }])),
        Operation::Take => ("?queue=shop~q", Value::Null),
        Operation::SettleMany => ("", json!([{ "lease": lease, "verdict": "ack" }])),
        Operation::Snooze => ("?delay=5s", Value::Null),
        Operation::ConfigureQueue => ("", json!({ "attempts": 3 })),
        Operation::RequeueDead | Operation::PurgeDead => ("", json!({ "all": true })),
        Operation::LimitNamespace => ("", json!({ "max_jobs": 1 })),
        Operation::CreateToken => ("", json!({ "scopes": ["admin"] })),
        _ => ("", Value::Null),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    (format!("{path}{query}"), body)
}

/// All that a request without the right token must leave as it is.
async fn state(service: &Service) -> Value {
    let queue = root(service, "GET", "/v1/queues/shop~q?hours=0", "").await.json;
    let tokens = root(service, "GET", "/v1/tokens", "").await.json;
    let ids: Vec<&Value> = tokens["tokens"].as_array().unwrap().iter().map(|token| &token["id"]).collect();
    let job = root(service, "GET", "/v1/queues/shop~q/jobs/b", "").await.json;
    let namespace = root(service, "GET", "/v1/namespaces/shop", "").await.json;
    json!({ "queue": queue, "tokens": ids, "job": job, "ceilings": namespace["ceilings"] })
}

#[tokio::test]
async fn no_route_is_answered_without_a_token_that_is_known_alive_and_for_it() {
    let service = guarded(&[]).await;
    let lease = prepared(&service).await;
    let all = json!(Scope::ALL.map(Scope::as_str));
    let (_, expired) = made(&service, &json!({ "scopes": all, "expires_in": "1ms" })).await;
    let (revoked_id, revoked) = made(&service, &json!({ "scopes": all })).await;
    assert_eq!(root(&service, "DELETE", &format!("/v1/tokens/{revoked_id}"), "").await.status, 200);
    let mut only = Vec::new();
    for scope in Scope::ALL {
        only.push((scope, made(&service, &json!({ "scopes": [scope.as_str()] })).await.1));
    }
    eventually("the token expires", async || {
        let answer = ask(&service, "GET", "/v1/queues", Some(&expired), "").await;
        (answer.status == 401).then_some(())
    })
    .await;
    let before = state(&service).await;
    let mut guarded = 0;
    for route in ROUTES.iter().filter(|route| route.scope.is_some()) {
        let (path, body) = request(route, &lease);
        let wrong = format!("dl_{}_{}", "0".repeat(16), "0".repeat(64));
        for token in [None, Some("nonsense"), Some(&*wrong), Some(&*expired), Some(&*revoked)] {
            let answer = ask(&service, route.method, &path, token, &body).await;
            answer.is_problem(401, "unauthorized", "token");
            assert_eq!(answer.headers["www-authenticate"], "Bearer", "{route:?}");
        }
        for (_, token) in only.iter().filter(|(scope, _)| Some(*scope) != route.scope) {
            let answer = ask(&service, route.method, &path, Some(token), &body).await;
            answer.is_problem(403, "forbidden", route.scope.unwrap().as_str());
        }
        guarded += 1;
    }
    assert!(guarded > 25, "{guarded}");
    assert_eq!(state(&service).await, before);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(&service, "GET", path, None, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn what_a_token_is_not_for_is_to_it_as_if_it_were_not_there() {
    let service = guarded(&[]).await;
    let lease = prepared(&service).await;
    let all = json!(Scope::ALL.map(Scope::as_str));
    let (_, other) = made(&service, &json!({ "scopes": all, "queues": ["other~*", "q"] })).await;
    let before = state(&service).await;
    for route in ROUTES.iter().filter(|route| route.scope.is_some()) {
        let (path, body) = request(route, &lease);
        let answer = ask(&service, route.method, &path, Some(&other), &body).await;
        match route.operation {
            Operation::ListQueues => assert_eq!(answer.json["queues"], json!([]), "{answer:?}"),
            Operation::ListNamespaces => assert_eq!(answer.json["namespaces"], json!([]), "{answer:?}"),
            Operation::ShowNamespace => answer.is_problem(404, "no_such_namespace", "shop"),
            Operation::SettleMany => {
                assert_eq!(answer.json["results"][0]["code"], "no_such_queue", "{answer:?}");
            }
            _ if path.contains("shop~q") || path.contains(&lease) => {
                answer.is_problem(404, "no_such_queue", "for this token");
                let absent = path.replace("shop~q", "shop~absent");
                if absent != path {
                    let there = ask(&service, route.method, &absent, Some(&other), &body).await;
                    let detail = text(&answer.json["detail"]).replace("shop~q", "shop~absent");
                    assert_eq!((there.status, text(&there.json["detail"])), (answer.status, detail));
                }
            }
            _ => answer.is_problem(403, "forbidden", "whole deployment"),
        }
    }
    assert_eq!(state(&service).await, before);
    for (path, reached) in
        [("/v1/queues/other~q/jobs", true), ("/v1/queues/q/jobs", true), ("/v1/queues/q2/jobs", false)]
    {
        let answer = ask(&service, "POST", path, Some(&other), "1").await;
        assert_eq!(answer.status == 201, reached, "{path} {answer:?}");
    }
    let listed = ask(&service, "GET", "/v1/queues", Some(&other), "").await;
    assert_eq!(listed.json["queues"], json!(["other~q", "q"]));
}

#[tokio::test]
async fn a_token_that_is_revoked_elsewhere_is_refused_within_five_seconds() {
    let redis = RedisServer::start(&[]).await;
    let (one, two) = (guarded(&["--redis", &redis.url()]).await, guarded(&["--redis", &redis.url()]).await);
    let (id, token) = made(&one, &json!({ "scopes": ["read"] })).await;
    eventually("the other service knows the token", async || {
        let answer = ask(&two, "GET", "/v1/queues", Some(&token), "").await;
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(root(&one, "DELETE", &format!("/v1/tokens/{id}"), "").await.status, 200);
    let begun = Instant::now();
    eventually("the other service refuses it", async || {
        let answer = ask(&two, "GET", "/v1/queues", Some(&token), "").await;
        (answer.status == 401).then_some(())
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_token_of_the_command_line_guards_every_service() {
    let redis = RedisServer::start(&[]).await;
    let service = Service::with(&["--redis", &redis.url()]).await;
    assert_eq!(service.get("/v1/queues").await.status, 200);
    let made = run_json(
        &redis,
        &["--json", "token", "create", "--scope", "read,publish", "--queue", "a*", "--description", "d"],
    )
    .await;
    let (id, token) = (text(&made["id"]), text(&made["token"]));
    eventually("a token is needed", async || (service.get("/v1/queues").await.status == 401).then_some(()))
        .await;
    assert_eq!(ask(&service, "POST", "/v1/queues/ab/jobs", Some(&token), "1").await.status, 201);
    assert_eq!(ask(&service, "POST", "/v1/queues/b/jobs", Some(&token), "1").await.status, 404);
    eventually("its use is noted", async || {
        let listed = run_json(&redis, &["--json", "token", "list"]).await;
        assert_eq!(listed["tokens"][0]["description"], "d", "{listed}");
        assert!(!listed.to_string().contains(&token[20..]), "{listed}");
        listed["tokens"][0]["last_used"].is_string().then_some(())
    })
    .await;
    assert!(said(&redis, &["token", "list"]).await.contains(&id));
    let rotated = run_json(&redis, &["--json", "token", "rotate", &id, "--overlap", "1h"]).await;
    let new = text(&rotated["token"]);
    eventually("both are valid", async || {
        let answer = ask(&service, "GET", "/v1/queues", Some(&new), "").await;
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(ask(&service, "GET", "/v1/queues", Some(&token), "").await.status, 200);
    said(&redis, &["token", "revoke", &id]).await;
    eventually("the old one is refused", async || {
        let answer = ask(&service, "GET", "/v1/queues", Some(&token), "").await;
        (answer.status == 401).then_some(())
    })
    .await;
    assert_eq!(ask(&service, "GET", "/v1/queues", Some(&new), "").await.status, 200);
    fails(&redis, &["token", "revoke", &id], 1, "there is no token").await;
    fails(&redis, &["token", "create", "--scope", "write"], 2, "is no scope").await;
    let nothing = delayline(None, &["token", "list"]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("curl http://127.0.0.1:4747/v1/tokens"));
}

#[tokio::test]
async fn every_administrative_act_leaves_a_line_without_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.ndjson");
    let service = guarded(&["--audit-log", path.to_str().unwrap()]).await;
    let lease = prepared(&service).await;
    let (id, admin) =
        made(&service, &json!({ "scopes": ["admin"], "description": "marker-of-a-body" })).await;
    let mut expected = 1;
    for route in ROUTES.iter().filter(|route| route.scope == Some(Scope::Admin)) {
        let (path, body) = request(route, &lease);
        ask(&service, route.method, &path, Some(&admin), &body).await;
        expected += usize::from(route.method != "GET");
    }
    let written = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), expected, "{written}");
    assert_eq!((&lines[0]["token"], &lines[0]["operation"]), (&json!("bootstrap"), &json!("CreateToken")));
    let paused = lines.iter().find(|line| line["operation"] == "PauseQueue").unwrap();
    assert_eq!((&paused["token"], &paused["status"]), (&json!(id), &json!(200)));
    assert_eq!(
        (&paused["path"], &paused["client"]),
        (&json!("/v1/queues/shop~q/pause"), &json!("127.0.0.1"))
    );
    for secret in [ROOT, &admin[20..], "marker-of-a-body"] {
        assert!(!written.contains(secret), "{written}");
    }
}

#[tokio::test]
async fn a_namespace_holds_no_more_than_it_may() {
    let service = Service::start().await;
    let ceilings = json!({ "max_queues": 2, "max_jobs": 4 }).to_string();
    assert_eq!(service.put("/v1/namespaces/shop", ceilings).await.status, 200);
    for path in ["shop~a/jobs?id=1", "shop~b/jobs?id=1", "shop~b/jobs?id=2", "free~a/jobs", "plain/jobs"] {
        assert_eq!(service.post(&format!("/v1/queues/{path}"), "1").await.status, 201, "{path}");
    }
    let answer = service.post("/v1/queues/shop~c/jobs", "1").await;
    answer.is_problem(429, "namespace_full", "may hold 2 queues");
    assert_eq!(answer.headers["retry-after"], "5");
    let batch = json!([{ "payload": 1 }, { "payload": 2 }]).to_string();
    service.post("/v1/queues/shop~a/batch", batch).await.is_problem(429, "namespace_full", "may hold 4 jobs");
    assert_eq!(service.post("/v1/queues/shop~a/jobs?id=2", "1").await.status, 201);
    service.post("/v1/queues/shop~a/jobs", "1").await.is_problem(429, "namespace_full", "4 jobs");
    let shown = service.get("/v1/namespaces/shop").await.json;
    assert_eq!((&shown["queues"], &shown["sizes"]["ready"]), (&json!(2), &json!(4)), "{shown}");
    let listed = service.get("/v1/namespaces").await.json;
    let expected = json!([
        { "namespace": "", "queues": 1 }, { "namespace": "free", "queues": 1 }, { "namespace": "shop", "queues": 2 }
    ]);
    assert_eq!(listed["namespaces"], expected);
    assert_eq!(service.delete("/v1/namespaces/shop").await.status, 200);
    assert_eq!(service.post("/v1/queues/shop~c/jobs", "1").await.status, 201);
    service.delete("/v1/namespaces/shop").await.is_problem(404, "no_such_namespace", "shop");
    for (body, says) in
        [("{}", "limits nothing"), ("\"x\"", "limits no namespace"), (r#"{"jobs":1}"#, "unknown field")]
    {
        service.put("/v1/namespaces/shop", body).await.is_problem(400, "bad_json", says);
    }
}

#[tokio::test]
async fn room_that_is_made_elsewhere_is_seen_within_seconds() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["namespace", "limit", "shop", "--max-jobs", "1"]).await;
    let (one, two) =
        (Service::with(&["--redis", &redis.url()]).await, Service::with(&["--redis", &redis.url()]).await);
    one.publish("shop~a", "1").await;
    one.post("/v1/queues/shop~a/jobs", "1").await.is_problem(429, "namespace_full", "1 jobs");
    assert_eq!(two.delete("/v1/queues/shop~a/jobs/1").await.status, 200);
    eventually("there is room again", async || {
        (one.post("/v1/queues/shop~a/jobs", "1").await.status == 201).then_some(())
    })
    .await;
    let shown = run_json(&redis, &["--json", "namespace", "show", "shop"]).await;
    assert_eq!((&shown["ready"], &shown["ceilings"]["max_jobs"]), (&json!(1), &json!(1)), "{shown}");
    said(&redis, &["namespace", "unlimit", "shop"]).await;
    fails(&redis, &["namespace", "unlimit", "shop"], 1, "nothing limits").await;
}

#[tokio::test]
async fn nobody_listens_to_the_world_without_tokens() {
    let redis = RedisServer::start(&[]).await;
    let exposed = ["--listen", "0.0.0.0:0", "--redis", &redis.url()];
    let refused = crate::service::bind(&exposed).await.err().unwrap().to_string();
    assert!(
        refused.contains("there are no tokens") && refused.contains("delayline token create"),
        "{refused}"
    );
    for allowed in [&["--insecure"][..], &["--token", ROOT], &["--require-tokens"]] {
        assert!(crate::service::bind(&[&exposed, allowed].concat()).await.is_ok(), "{allowed:?}");
    }
    said(&redis, &["token", "create", "--scope", "admin"]).await;
    assert!(crate::service::bind(&exposed).await.is_ok());
    for (token, says) in [("short", "32 or more"), (&*"ä".repeat(32), "signs of ASCII")] {
        let refused = crate::service::bind(&["--token", token]).await.err().unwrap().to_string();
        assert!(refused.contains(says) && !refused.contains(token), "{refused}");
    }
}

#[tokio::test]
async fn a_token_that_asks_too_much_is_told_when_to_ask_again() {
    let service = guarded(&[]).await;
    let limits = json!({ "requests": "1/s burst 2", "takes": 1 });
    let (_, token) = made(&service, &json!({ "scopes": ["publish", "consume"], "limits": limits })).await;
    let publish = async || ask(&service, "POST", "/v1/queues/q/jobs", Some(&token), "1").await;
    assert_eq!([publish().await.status.as_u16(), publish().await.status.as_u16()], [201, 201]);
    let refused = publish().await;
    refused.is_problem(429, "too_many_requests", "1/s burst 2 requests");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(root(&service, "GET", "/v1/queues/q", "").await.json["sizes"]["ready"], 2);
    eventually("the token may ask again", async || (publish().await.status == 201).then_some(())).await;
    let (_, one) = made(&service, &json!({ "scopes": ["consume"], "limits": { "takes": 1 } })).await;
    let take = || ask(&service, "POST", "/v1/take?queue=empty&wait=1m", Some(&one), "");
    let (mut first, mut second) = (pin!(take()), pin!(take()));
    let refused = tokio::select! {
        answer = first.as_mut() => answer,
        answer = second.as_mut() => answer,
    };
    refused.is_problem(429, "too_many_takes", "of this token");
    assert_eq!(ask(&service, "POST", "/v1/take?queue=empty", Some(&one), "").await.status, 204);
}
