use std::time::{Duration, Instant};

use delayline_tokio::redis::{Client, Value, cmd};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
        let mut raw = Raw::connect_to(rest.address()).await;
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
    assert_eq!(refused.status, 401, "without the option nothing is answered but to those with the token");
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
        let exposed = asked.headers["access-control-expose-headers"].to_str().unwrap();
        assert!(exposed.contains("upstash-sync-token") && exposed.contains("retry-after"), "{exposed}");
        for answer in [&allows, &asked] {
            assert!(!answer.headers.contains_key("access-control-allow-credentials"), "{answer:?}");
            assert!(answer.headers["vary"].to_str().unwrap().contains("origin"), "{answer:?}");
        }
        let stranger = send(rest.stranger(Method::POST, "/").header("Origin", origin)).await;
        assert_eq!(stranger.status, 401, "a token is needed all the same");
    }
    let other = preflight(&named, "https://evil.example.org").await;
    assert!(!other.headers.contains_key("access-control-allow-origin"), "{other:?}");
}

fn head(path: &str, headers: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n")
}

#[tokio::test]
async fn each_limit_on_a_request_can_be_set() {
    let redis = RedisServer::start(&[]).await;
    let limits = ["--max-commands", "3", "--max-words", "8", "--max-request", "64KiB"];
    let rest = RestEndpoint::with(&redis, &limits).await;
    let long = format!(r#"["SET","k","{}"]"#, "x".repeat(65_000));
    assert_eq!(rest.post("/", long.clone()).await.status, 200);
    for (path, body, says) in [
        (
            "/pipeline",
            json!([["PING"], ["PING"], ["PING"], ["INCR", "n"]]).to_string(),
            "more than 3 commands",
        ),
        (
            "/multi-exec",
            json!([["PING"], ["PING"], ["PING"], ["INCR", "n"]]).to_string(),
            "more than 3 commands",
        ),
        ("/", json!(["MSET", "a", 1, "b", 2, "c", 3, "n", 4]).to_string(), "more than 8 words"),
        (
            "/pipeline",
            json!([["MSET", "a", 1, "b", 2], ["MSET", "n", 3, "d", 4]]).to_string(),
            "more than 8 words",
        ),
        ("/", format!("{long}{}", " ".repeat(600)), "max request size exceeded. Limit: 65536 bytes"),
    ] {
        let refused = rest.post(path, body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.json["error"].as_str().unwrap().contains(says), "{says}: {refused:?}");
    }
    assert_eq!(rest.get("/exists/n").await.json, json!({ "result": 0 }), "nothing of it was executed");
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_refused_before_it_comes() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--max-request", "64KiB"]).await;
    let mut raw = Raw::connect_to(rest.address()).await;
    raw.write(head("/", "Expect: 100-continue\r\nContent-Length: 65537\r\n")).await;
    let refused = raw.answer().await;
    assert_eq!(refused.status, 400, "it is not told to go on: {refused:?}");
    let says = "ERR max request size exceeded. Limit: 65536 bytes, Actual: 65537 bytes";
    assert_eq!(refused.json["error"], says);
    // One that does not say so is refused once it is: what comes then is no more read for ever than it is kept.
    let mut raw = Raw::connect_to(rest.address()).await;
    raw.write(head("/", "Transfer-Encoding: chunked\r\n")).await;
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    let (mut read, mut write) = raw.0.into_split();
    let endless = tokio::spawn(async move { while write.write_all(chunk.as_bytes()).await.is_ok() {} });
    let mut came = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(20), read.read_to_end(&mut came)).await;
    assert!(closed.is_ok(), "it is read on for ever");
    let came = String::from_utf8_lossy(&came);
    assert!(came.starts_with("HTTP/1.1 400") && came.contains("max request size exceeded"), "{came}");
    endless.await.unwrap();
}

#[tokio::test]
async fn so_many_commands_a_second_pass_and_the_others_are_told_when_to_ask_again() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--max-command-rate", "10/s"]).await;
    let many = format!("[{}]", vec![r#"["INCR","n"]"#; 100].join(","));
    assert_eq!(rest.post("/pipeline", many.clone()).await.status, 200);
    for (path, body) in [("/pipeline", many.as_str()), ("/multi-exec", &many), ("/", r#"["INCR","n"]"#)] {
        let refused = rest.post(path, body.to_owned()).await;
        assert_eq!(refused.status, 429, "{refused:?}");
        let seconds: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=20).contains(&seconds), "{seconds}");
        assert!(refused.json["error"].as_str().unwrap().contains("Nothing was executed"), "{refused:?}");
    }
    let listens = rest.listen("/subscribe/chat").await;
    assert_eq!(listens.status(), 429);
    assert_eq!(redis.ask::<u64>(&["GET", "n"]).await, 100);
    eventually("it passes again", async || (rest.get("/get/n").await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn an_answer_is_so_large_at_most() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--max-answer", "64KiB"]).await;
    assert_eq!(rest.post("/set/k", "x".repeat(65_000)).await.status, 200);
    assert_eq!(rest.get("/get/k").await.status, 200);
    assert_eq!(rest.get("/append/k/123456789").await.status, 200);
    rest.post("/append/k", "x".repeat(600)).await;
    let two = r#"[["INCR","n"],["GET","k"]]"#;
    for (path, body) in [("/get/k", ""), ("/pipeline", two), ("/multi-exec", two), ("/mget/k/k", "")] {
        let refused = rest.post(path, body).await;
        assert_eq!(refused.status, 502, "{path}: {refused:?}");
        let says = "ERR max response size exceeded. Limit: 65536 bytes. It was executed";
        assert!(refused.json["error"].as_str().unwrap().starts_with(says), "{refused:?}");
    }
    assert_eq!(redis.ask::<u64>(&["GET", "n"]).await, 2);
}

#[tokio::test]
async fn answers_that_nobody_reads_take_so_much_memory_at_most() {
    const SIZE: usize = 12 << 20;
    let redis = RedisServer::start(&[]).await;
    let limits = ["--max-body-memory", "20MiB", "--max-answer", "20MiB", "--max-request", "20MiB"];
    let rest = RestEndpoint::with(&redis, &[&limits[..], &["--body-timeout", "60s"]].concat()).await;
    assert_eq!(rest.post("/set/k", "x".repeat(SIZE)).await.status, 200);
    let mut unread = Raw::connect_with_little_room_to(rest.address()).await;
    unread.write(head("/get/k", "Content-Length: 0\r\n")).await;
    let refused = eventually("there is no room for another one", async || {
        let answer = rest.get("/get/k").await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert!(refused.json["error"].as_str().unwrap().contains("It was executed"), "{refused:?}");
    assert_eq!(rest.get("/ping").await.status, 200, "small ones are answered");
    drop(unread);
    eventually("there is room", async || (rest.get("/get/k").await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn who_finds_no_connection_is_told_as_upstash_would() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--max-connections", "4", "--faults"]).await;
    rest.plan(json!([{ "fault": "hang", "times": 4 }])).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut raw = Raw::connect_to(rest.address()).await;
        raw.write(head("/ping", "Content-Length: 0\r\n")).await;
        waiting.push(raw);
    }
    let refused = eventually("all connections are in use", async || {
        let mut raw = Raw::connect_to(rest.address()).await;
        let _ = raw.try_write(head("/ping", "Content-Length: 0\r\n").as_bytes()).await;
        let answer = raw.answer().await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    assert!(refused.json["error"].as_str().unwrap().contains("--max-connections"), "{refused:?}");
}

#[tokio::test]
async fn heads_bodies_and_silence_have_their_time() {
    let redis = RedisServer::start(&[]).await;
    let times = ["--head-timeout", "300ms", "--body-timeout", "400ms", "--idle-timeout", "500ms"];
    let rest = RestEndpoint::with(&redis, &times).await;
    let mut slow_head = Raw::connect_to(rest.address()).await;
    slow_head.write("GET /ping HTTP/1.1\r\n").await;
    assert_eq!(slow_head.rest().await, "");
    let mut slow_body = Raw::connect_to(rest.address()).await;
    slow_body.write(head("/", "Content-Length: 100\r\n")).await;
    let told = slow_body.answer().await;
    assert_eq!(told.status, 408, "{told:?}");
    assert!(told.json["error"].as_str().unwrap().contains("no byte of the body came"), "{told:?}");
    let mut idle = Raw::connect_to(rest.address()).await;
    assert_eq!(idle.rest().await, "");
    // An event stream is silent for longer.
    let mut listening = Raw::connect_to(rest.address()).await;
    listening.write(head("/subscribe/chat", "Accept: text/event-stream\r\nContent-Length: 0\r\n")).await;
    let mut byte = [0];
    let closed = async { while listening.0.read(&mut byte).await.is_ok_and(|read| read > 0) {} };
    assert!(tokio::time::timeout(Duration::from_millis(1_500), closed).await.is_err(), "it is closed");
}
