use std::time::{Duration, Instant};

use delayline_tokio::redis::{Client, Value, cmd};
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpStream;

use crate::eventually;
use crate::raw::Raw;
use crate::redis_server::RedisServer;
use crate::rest_endpoint::{RestEndpoint, TOKEN};
use crate::service::send;

#[tokio::test]
async fn what_admins_do_passes_only_where_that_is_allowed() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let admin = RestEndpoint::with(&redis, &["--allow-admin"]).await;
    for command in [
        json!(["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]),
        json!(["FLUSHALL"]),
        json!(["flushdb"]),
        json!(["SCRIPT", "FLUSH"]),
        json!(["ACL", "WHOAMI"]),
        json!(["SLOWLOG", "RESET"]),
        json!(["LATENCY", "RESET"]),
    ] {
        let refused = rest.ask(command.clone()).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        let says = refused.json["error"].as_str().unwrap();
        assert!(
            says.starts_with("ERR Command is not available: '") && says.contains("--allow-admin"),
            "{says}"
        );
        let piped = rest.post("/pipeline", json!([command, ["PING"]]).to_string()).await;
        assert!(piped.json[0]["error"].as_str().unwrap().contains("--allow-admin"), "{piped:?}");
        assert_eq!(piped.json[1], json!({ "result": "PONG" }));
        assert_eq!(rest.post("/multi-exec", json!([command]).to_string()).await.status, 400);
        assert_eq!(admin.ask(command).await.status, 200);
    }
    assert_eq!(admin.ask(json!(["SHUTDOWN", "NOSAVE"])).await.status, 400);
}

#[tokio::test]
async fn a_request_has_an_answer_within_the_time_and_a_script_without_end_is_killed() {
    let redis = RedisServer::start(&["--busy-reply-threshold", "200"]).await;
    let rest = RestEndpoint::with(&redis, &["--timeout", "1s"]).await;
    let begun = Instant::now();
    let late = rest.ask(json!(["EVAL", "while true do end", 0])).await;
    assert_eq!(late.status, 504, "{late:?}");
    let says = late.json["error"].as_str().unwrap();
    assert!(says.contains("did not answer within 1s") && says.contains("not known whether"), "{says}");
    eventually("others are served", async || (rest.get("/set/k/v").await.status == 200).then_some(())).await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn bodies_that_are_silent_make_way_for_those_that_come() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--max-body-memory", "4MiB"]).await;
    let mut silent = Vec::new();
    for _ in 0..12 {
        let mut raw = Raw(TcpStream::connect(rest.base.strip_prefix("http://").unwrap()).await.unwrap());
        raw.write(format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n",
            2 << 20
        ))
        .await;
        let body = vec![b' '; (2 << 20) - 1];
        let _ = tokio::time::timeout(Duration::from_secs(2), raw.try_write(&body)).await;
        silent.push(raw);
    }
    let command = json!(["SET", "k", "x".repeat(900_000)]);
    eventually("a large body finds room", async || {
        let answer = rest.ask(command.clone()).await;
        assert!([200, 503].contains(&answer.status.as_u16()), "{answer:?}");
        (answer.status == 200).then_some(())
    })
    .await;
    let mut closed = 0;
    for mut raw in silent {
        closed += u32::from(raw.rest().await.is_empty());
    }
    assert!(closed > 0, "they found room all by themselves");
}

#[tokio::test]
async fn a_script_that_is_slow_is_not_killed() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--timeout", "200ms"]).await;
    let slow = "local t = redis.call('TIME'); local s = t[1] * 1000000 + t[2]; redis.call('SET', 'begun', 1) \
                while true do local n = redis.call('TIME'); if n[1] * 1000000 + n[2] > s + 700000 then break end end \
                redis.call('SET', 'done', 1)";
    assert_eq!(rest.ask(json!(["EVAL", slow, 0])).await.status, 504);
    eventually("it is done", async || {
        let done = rest.get("/get/done").await;
        (done.json == json!({ "result": "1" })).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_silent_redis_is_told_of_in_time() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--timeout", "300ms"]).await;
    let mut pause = cmd("CLIENT");
    pause.arg("PAUSE").arg(3_000).arg("ALL");
    let mut direct = Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    pause.query_async::<Value>(&mut direct).await.unwrap();
    for (path, body) in
        [("/", r#"["GET","k"]"#), ("/pipeline", r#"[["GET","k"]]"#), ("/multi-exec", r#"[["GET","k"]]"#)]
    {
        let late = rest.post(path, body).await;
        assert!(late.status == 504 || late.status == 503, "{late:?}");
    }
    eventually("it answers again", async || (rest.get("/ping").await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn a_request_of_too_many_commands_is_refused() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    for (body, says) in [
        (format!("[{}]", vec![r#"["A"]"#; 1_700_000].join(",")), "it has more than 10000 commands"),
        (format!("[{}]", vec!["[]"; 3_000_000].join(",")), "it has more than 10000 commands"),
        (format!("[[{}]]", vec!["0"; 5_000_000].join(",")), "it has more than 100000 words"),
    ] {
        let refused = rest.post("/pipeline", body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.json["error"].as_str().unwrap().contains(says), "{refused:?}");
    }
    let fits = format!("[{}]", vec![r#"["PING"]"#; 10_000].join(","));
    assert_eq!(rest.post("/pipeline", fits).await.json.as_array().unwrap().len(), 10_000);
}

#[tokio::test]
async fn a_browser_may_ask_from_the_origins_that_are_named() {
    let redis = RedisServer::start(&[]).await;
    let origin = "https://app.example.org";
    let preflight = async |rest: &RestEndpoint, from: &'static str| {
        let asked = rest.stranger(Method::OPTIONS, "/pipeline").header("Origin", from);
        let asked = asked.header("Access-Control-Request-Method", "POST");
        send(asked.header("Access-Control-Request-Headers", "authorization,upstash-encoding")).await
    };
    let closed = RestEndpoint::start(&redis).await;
    let refused = preflight(&closed, origin).await;
    assert!(!refused.headers.contains_key("access-control-allow-origin"), "{refused:?}");
    let named = RestEndpoint::with(&redis, &["--cors", origin, "--cors", "http://localhost:5173"]).await;
    let any = RestEndpoint::with(&redis, &["--cors", "*"]).await;
    for (rest, allowed) in [(&named, origin), (&any, "*")] {
        let allows = preflight(rest, origin).await;
        assert!(allows.status.is_success(), "{allows:?}");
        assert_eq!(allows.headers["access-control-allow-origin"], allowed);
        let methods = allows.headers["access-control-allow-methods"].to_str().unwrap();
        assert!(methods.contains("POST"), "{allows:?}");
        let headers = allows.headers["access-control-allow-headers"].to_str().unwrap();
        assert!(headers.contains("authorization") && headers.contains("upstash-encoding"), "{headers}");
        let asked = send(rest.request(Method::POST, "/").header("Origin", origin).body(r#"["PING"]"#)).await;
        assert_eq!(asked.json, json!({ "result": "PONG" }));
        assert_eq!(asked.headers["access-control-allow-origin"], allowed);
        let stranger = send(rest.stranger(Method::POST, "/").header("Origin", origin)).await;
        assert_eq!(stranger.status, 401, "a token is needed all the same");
    }
    let other = preflight(&named, "https://evil.example.org").await;
    assert!(!other.headers.contains_key("access-control-allow-origin"), "{other:?}");
}
