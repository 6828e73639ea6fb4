use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use super::{Lmstfy, Reply, TOKEN, is_ulid};
use crate::program::{DELAYLINE, clean};
use crate::redis_server::RedisServer;

/// `sha256:` and the SHA-256 of [`TOKEN`], by coreutils.
const HASHED: &str = "sha256:fe4fb4bdbe2a26db5e8088f4d70b016821d0f289eee8d6f0896465b39a715271";

fn limit(of: &str) -> String {
    format!("/token/ns/{of}/limit")
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked() {
    let lmstfy = Lmstfy::start().await;
    let reply = lmstfy.admin("POST", "/token/ns?description=a%20%3Cb%3E", "").await;
    let token = reply.json()["token"].as_str().unwrap().to_owned();
    assert!(is_ulid(&token), "{token}");
    reply.is_json(201, &format!("{{\n    \"token\": \"{token}\"\n}}"));
    let made = [("X-Token", &*token)];
    assert_eq!(lmstfy.ask_with("PUT", "/api/ns/q", &made, "x").await.status, 201);
    // Its text is in that answer and nowhere else.
    let list = lmstfy.admin("GET", "/token/ns", "").await;
    assert!(list.body.starts_with("{\n    \"tokens\": {\n        \"sha256:"), "{list:?}");
    assert!(list.body.contains("\": \"a \\u003cb\\u003e\""), "{list:?}");
    assert!(
        !list.body.contains(&token) && list.body.contains(&format!("        \"{HASHED}\": \"tests\"")),
        "{list:?}"
    );
    let list = lmstfy.admin("GET", "/token/ns?pool=default", "").await;
    assert!(list.body.contains(&format!("        \"default:{HASHED}\": \"tests\"")), "{list:?}");
    lmstfy.admin("GET", "/token/other", "").await.is_json(200, "{\n    \"tokens\": {}\n}");
    lmstfy.admin("GET", "/token/ns?pool=x", "").await.is_error(400, "the pool was not exists");

    for _ in 0..2 {
        lmstfy.admin("DELETE", &format!("/token/ns/{token}?pool=ignored"), "").await.is_empty(204);
    }
    lmstfy.ask_with("PUT", "/api/ns/q", &made, "x").await.is_error(401, "invalid token");
    lmstfy
        .admin("DELETE", &format!("/token/ns/x:{TOKEN}"), "")
        .await
        .is_error(400, "the pool was not exists");
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q", "x").await.status, 201);
    lmstfy.admin("DELETE", &format!("/token/ns/default:{HASHED}"), "").await.is_empty(204);
    lmstfy.ask("PUT", "/api/ns/q", "x").await.is_error(401, "invalid token");
}

#[tokio::test]
async fn a_token_may_be_chosen_and_told_by_a_form() {
    let lmstfy = Lmstfy::start().await;
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let url = format!("{}/token/shop", lmstfy.admin);
    let own = "default:my-own-token-0123456789";
    let reply = lmstfy.send("POST", &url, &form, format!("description=d&token={own}")).await;
    reply.is_json(201, "{\n    \"token\": \"my-own-token-0123456789\"\n}");
    let token = [("X-Token", "my-own-token-0123456789")];
    assert_eq!(lmstfy.ask_with("PUT", "/api/shop/q", &token, "x").await.status, 201);
    let long = "n".repeat(256);
    for (path, error) in [
        ("/token/shop", "invalid description"),
        ("/token/shop?description=", "invalid description"),
        ("/token/shop?description=d&token=0123456789012345678", "the user token was too short"),
        (&*format!("/token/{long}?description=d"), "the namespace name was too long"),
        ("/token/a.b?description=d", "namespace name contains forbidden characters"),
        ("/token/shop?description=d&pool=x", "the pool was not exists"),
        ("/token/shop?description=d&token=x:my-own-token-0123456789", "the pool was not exists"),
        ("/token/shop?description=d&token=my-own-token-0123456789", "the token has already existed"),
    ] {
        lmstfy.admin("POST", path, "").await.is_error(400, error);
    }
}

#[tokio::test]
async fn a_token_may_have_a_limit_for_each_interval() {
    let lmstfy = Lmstfy::start().await;
    let path = limit(TOKEN);
    let success = r#"{"msg":"success"}"#;
    lmstfy.admin("GET", &path, "").await.is_json(404, "null");
    lmstfy.admin("DELETE", &path, "").await.is_json(200, success);
    lmstfy.admin("GET", "/limits", "").await.is_json(200, "[]");
    let body = r#"{"interval":3600,"write":2,"read":1}"#;
    let limiter = r#"{"read":1,"write":2,"interval":3600}"#;
    lmstfy.admin("POST", &path, body).await.is_json(201, &format!(r#"{{"limiter":{limiter}}}"#));
    lmstfy.admin("GET", &limit(HASHED), "").await.is_json(200, limiter);
    let all = format!(r#"[{{"namespace":"ns","token":"{HASHED}","limiter":{limiter}}}]"#);
    lmstfy.admin("GET", "/limits?force_update=true", "").await.is_json(200, &all);
    let again = format!("throttler token({TOKEN}) has already exists");
    lmstfy.admin("POST", &limit(&format!("default:{TOKEN}")), body).await.is_error(500, &again);

    // What comes to nothing does not count.
    let produce = format!(r#"{{"msg":"token({TOKEN}) produce reach the limit rate, please retry later"}}"#);
    let consume = format!(r#"{{"msg":"token({TOKEN}) consume reach the limit rate, please retry later"}}"#);
    for _ in 0..3 {
        assert_eq!(lmstfy.ask("PUT", "/api/ns/q?tries=0", "x").await.status, 400);
        assert_eq!(lmstfy.ask("GET", "/api/ns/q", "x").await.status, 404);
    }
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q", "x").await.status, 201);
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q/bulk", "[1,2]").await.status, 201);
    lmstfy.ask("PUT", "/api/ns/q", "x").await.is_json(429, &produce);
    lmstfy.ask("PUT", "/api/ns/q/bulk", "[1]").await.is_json(429, &produce);
    assert_eq!(lmstfy.ask("GET", "/api/ns/q", "").await.status, 200);
    lmstfy.ask("GET", "/api/ns/q?timeout=9", "").await.is_json(429, &consume);
    // Nothing else is limited.
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q/job/x", "x").await.status, 201);
    assert_eq!(lmstfy.ask("GET", "/api/ns/q/peek", "").await.status, 200);

    let reply = lmstfy.admin("PUT", &path, r#"{"read":5,"interval":3600}"#).await;
    reply.is_json(200, r#"{"limiter":{"read":5,"write":0,"interval":3600}}"#);
    assert_eq!(lmstfy.ask("PUT", "/api/ns/q", "x").await.status, 201);
    lmstfy.admin("DELETE", &path, "").await.is_json(200, success);
    lmstfy.admin("GET", &path, "").await.is_json(404, "null");
}

#[tokio::test]
async fn a_limit_that_cannot_be_is_refused() {
    let lmstfy = Lmstfy::start().await;
    for method in ["POST", "PUT"] {
        for body in ["", "{", r#"{"read":"1"}"#, "[]x"] {
            let reply = lmstfy.admin(method, &limit(TOKEN), body).await;
            reply.is(400, "text/plain; charset=utf-8", &reply.body);
            assert!(reply.json()["error"].is_object(), "{reply:?}");
        }
        let reply = lmstfy.admin(method, &limit(TOKEN), r#"{"interval":5}"#).await;
        reply.is_json(400, r#"{"limiter":{"read":0,"write":0,"interval":5}}"#);
        for (body, status, error) in [
            (r#"{"read":1}"#, 400, "interval should be \\u003e 0"),
            (r#"{"read":1,"interval":-1}"#, 500, "limiter interval should be \\u003e 0"),
            (
                r#"{"read":-1,"interval":1}"#,
                500,
                "the read and write of limiter can't be \\u003c= 0 at the same time",
            ),
        ] {
            lmstfy.admin(method, &limit(TOKEN), body).await.is_error(status, error);
        }
    }
    lmstfy.admin("GET", "/limits", "").await.is_json(200, "[]");
}

#[tokio::test]
async fn an_instance_hears_of_another_ones_tokens_and_limits() {
    let redis = RedisServer::start(&[]).await;
    let one = Lmstfy::with(&["--redis", &redis.url()]).await;
    let other = Lmstfy::without_token(&["--redis", &redis.url()]).await;
    assert_eq!(other.ask("PUT", "/api/ns/q", "x").await.status, 201);
    one.admin("PUT", &limit(TOKEN), r#"{"read":1,"write":-1,"interval":3600}"#).await;
    one.admin("DELETE", &format!("/token/ns/{TOKEN}"), "").await.is_empty(204);
    let revoked = async || (other.ask("PUT", "/api/ns/q", "x").await.status == 401).then_some(());
    timeout(Duration::from_secs(8), crate::eventually("it is revoked", revoked)).await.unwrap();
    // The text of a token is nowhere in Redis.
    let mut connection = delayline_tokio::redis::Client::open(redis.url()).unwrap();
    let fields: Vec<String> =
        delayline_tokio::redis::cmd("HGETALL").arg("{dl}:registry").query(&mut connection).unwrap();
    assert!(!fields.iter().any(|field| field.contains(TOKEN)), "{fields:?}");
}

#[tokio::test]
async fn what_there_is_is_told_to_administrators() {
    let lmstfy = Lmstfy::start().await;
    for queue in ["b", "a"] {
        lmstfy.publish(&format!("/api/ns/{queue}"), "x").await;
    }
    lmstfy.admin("GET", "/pools", "").await.is_json(200, "[\n    \"default\"\n]");
    let version = env!("CARGO_PKG_VERSION");
    lmstfy.admin("GET", "/version", "").await.is_json(
        200,
        &format!(
            "{{\n    \"build_commit\": \"unknown\",\n    \"build_date\": \"unknown\",\n    \"version\": \"{version}\"\n}}"
        ),
    );
    let info = "{\n    \"ns\": [\n        \"a\",\n        \"b\"\n    ]\n}\n";
    lmstfy.admin("GET", "/info", "").await.is(200, "text/plain; charset=utf-8", info);
    assert_eq!(lmstfy.admin("GET", "/info?pool=x", "").await.body, "");
    let metrics = lmstfy.admin("GET", "/metrics", "").await;
    assert!(metrics.status == 200 && metrics.body.contains("delayline_up 1"), "{metrics:?}");
    let status = async |method, query: &str| lmstfy.admin(method, &format!("/accesslog{query}"), "").await;
    status("GET", "").await.is_json(200, r#"{"status":"disabled"}"#);
    status("POST", "?status=enable").await.is_json(200, r#"{"status":"enabled"}"#);
    status("GET", "").await.is_json(200, r#"{"status":"enabled"}"#);
    status("POST", "?status=on").await.is_error(400, "invalid status");
    status("POST", "?status=disable").await.is_json(200, r#"{"status":"disabled"}"#);
}

#[tokio::test]
async fn accounts_are_asked_for_where_lmstfy_asks_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "s3cret\n").unwrap();
    let account = format!("ann:{}", file.display());
    let lmstfy = Lmstfy::without_token(&["--lmstfy-account", &account]).await;
    let ask = async |method, path: &str, basic: &str| -> Reply {
        let url = format!("{}{path}", lmstfy.admin);
        lmstfy.send(method, &url, &[("Authorization", basic)], "").await
    };
    for (method, path) in [
        ("GET", "/token/ns"),
        ("POST", "/token/ns?description=x"),
        ("DELETE", "/token/ns/x"),
        ("GET", "/token/ns/x/limit"),
        ("GET", "/limits"),
        ("POST", "/accesslog?status=enable"),
    ] {
        for basic in ["", "Basic YW5uOndyb25n", "Bearer s3cret"] {
            let reply = ask(method, path, basic).await;
            reply.is_empty(401);
            assert_eq!(reply.headers["www-authenticate"], "Basic realm=\"Authorization Required\"");
        }
        let reply = ask(method, path, "Basic YW5uOnMzY3JldA==").await;
        assert!(reply.status != 401, "{reply:?}");
    }
    for path in ["/pools", "/version", "/info", "/metrics", "/accesslog"] {
        assert_eq!(ask("GET", path, "").await.status, 200, "{path}");
    }
}

/// Tokens are in paths and queries of this API.
#[tokio::test]
async fn no_token_is_logged() {
    let mut command = clean(DELAYLINE);
    command.args(["serve", "--listen", "127.0.0.1:0", "--redis", "memory://", "--access-log"]);
    command.args(["--lmstfy", "127.0.0.1:0", "--lmstfy-admin", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let mut listening = Vec::new();
    let mut next = async |said: &mut String| {
        let line = timeout(Duration::from_secs(60), lines.next_line()).await.unwrap().unwrap().unwrap();
        said.push_str(&line);
        line
    };
    while listening.len() < 3 {
        let line = next(&mut said).await;
        if let Some((_, address)) = line.split_once("http://") {
            let end = address.find(|end: char| !(end.is_ascii_digit() || ".:".contains(end)));
            listening.push(format!("http://{}", &address[..end.unwrap_or(address.len())]));
        }
    }
    let http = reqwest::Client::new();
    let made =
        http.post(format!("{}/token/ns?description=d&token={TOKEN}", listening[2])).send().await.unwrap();
    assert_eq!(made.status(), 201);
    let limit = format!("{}/token/ns/{TOKEN}/limit", listening[2]);
    let limited = http.put(limit).body(r#"{"read":1,"interval":1}"#).send().await.unwrap();
    assert_eq!(limited.status(), 200);
    for path in [format!("/tokens/ns/{TOKEN}"), format!("/token/ns/{TOKEN}")] {
        http.delete(format!("{}{path}", listening[2])).send().await.unwrap();
    }
    http.put(format!("{}/api/ns/q?token={TOKEN}", listening[1])).body("x").send().await.unwrap();
    while !said.contains("route=\"/api/{namespace}/{queue}\"") {
        next(&mut said).await;
    }
    assert!(said.contains("route=\"/token/{namespace}/{token}/limit\""), "{said}");
    assert!(said.contains("\"path\":\"/token/ns/{token}\""), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
}
