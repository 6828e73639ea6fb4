use std::borrow::Borrow;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::redis_server::RedisServer;
use crate::rest_endpoint::{RestEndpoint, TOKEN, bind};
use crate::service::{Answer, send};

const UNICODE: &str = "héllo 日本 🎉";
const UNICODE_BASE64: &str = "aMOpbGxvIOaXpeacrCDwn46J";

impl Answer {
    /// Checks that this is an error of Redis, or one that looks so.
    #[track_caller]
    fn is_error(&self, status: u16, says: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/json", "{self:?}");
        let members = self.json.as_object().unwrap();
        assert_eq!(members.len(), 1, "{self:?}");
        assert!(members["error"].as_str().unwrap().starts_with(says), "{says:?} is not what {self:?} says");
    }

    #[track_caller]
    fn is_result(&self, result: impl Borrow<Value>) {
        self.is(200, json!({ "result": result.borrow() }));
    }
}

#[tokio::test]
async fn strings_come_as_they_are_or_in_base64() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    rest.ask(json!(["SET", "k", UNICODE])).await.is_result(json!("OK"));
    rest.ask(json!(["GET", "k"])).await.is_result(json!(UNICODE));
    rest.ask_base64(json!(["SET", "k", UNICODE])).await.is_result(json!("OK"));
    rest.ask_base64(json!(["GET", "k"])).await.is_result(json!(UNICODE_BASE64));
    rest.ask_base64(json!(["MGET", "k", "none"])).await.is_result(json!([UNICODE_BASE64, null]));
    rest.ask(json!(["SET", "json", r#"{"a":[1,"b"]}"#])).await.is_result(json!("OK"));
    rest.ask(json!(["GET", "json"])).await.is_result(json!(r#"{"a":[1,"b"]}"#));
    rest.ask(json!(["SET", "ok", "OK"])).await.is_result(json!("OK"));
    rest.ask(json!(["GET", "ok"])).await.is_result(json!("OK"));
    rest.ask_base64(json!(["GET", "ok"])).await.is_result(json!("T0s="));
    rest.ask_base64(json!(["PING"])).await.is_result(json!("UE9ORw=="));
}

#[tokio::test]
async fn numbers_nil_and_arrays_are_those_of_json() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    rest.ask(json!(["GET", "none"])).await.is_result(json!(null));
    rest.ask(json!(["PING"])).await.is_result(json!("PONG"));
    rest.ask(json!(["INCRBY", "n", 41])).await.is_result(json!(41));
    rest.ask(json!(["SET", "flag", true])).await.is_result(json!("OK"));
    rest.ask(json!(["MGET", "n", "flag", "none"])).await.is_result(json!(["41", "true", null]));
    rest.ask(json!(["INCRBY", "n", "9007199254740952"])).await.is_result(json!("9007199254740993"));
    rest.ask_base64(json!(["INCRBY", "n", 0])).await.is_result(json!("OTAwNzE5OTI1NDc0MDk5Mw=="));
    rest.ask(json!(["ZADD", "z", 1.5, "a", -2, "b"])).await.is_result(json!(2));
    rest.ask(json!(["ZSCORE", "z", "a"])).await.is_result(json!("1.5"));
    rest.ask(json!(["ZRANGE", "z", 0, -1, "WITHSCORES"])).await.is_result(json!(["b", "-2", "a", "1.5"]));
    rest.ask(json!(["HSET", "h", "f", 1])).await.is_result(json!(1));
    rest.ask(json!(["HGETALL", "h"])).await.is_result(json!(["f", "1"]));
}

#[tokio::test]
async fn scripts_run_and_are_told_when_they_are_unknown() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let script =
        "return {1, 'a', {2, false, redis.status_reply('FINE')}, 3.9, redis.call('SET', KEYS[1], ARGV[1])}";
    let eval = rest.ask(json!(["EVAL", script, 1, "k", "v"])).await;
    eval.is_result(json!([1, "a", [2, null, "FINE"], 3, "OK"]));
    let time = rest.ask(json!(["EVAL", "return redis.call('TIME')", 0])).await;
    assert!(time.json["result"][0].as_str().unwrap().parse::<u64>().unwrap() > 1_700_000_000, "{time:?}");
    let sha = "f".repeat(40);
    rest.ask(json!(["EVALSHA", sha, 0])).await.is_error(400, "NOSCRIPT No matching script");
    rest.ask_base64(json!(["EVALSHA", sha, 0])).await.is_error(400, "NOSCRIPT No matching script");
    let loaded = rest.ask(json!(["SCRIPT", "LOAD", "return ARGV[1]"])).await;
    let sha = loaded.json["result"].as_str().unwrap();
    rest.ask(json!(["EVALSHA", sha, 0, "x"])).await.is_result(json!("x"));
    let failing = "return redis.error_reply('MINE went wrong')";
    rest.ask(json!(["EVAL", failing, 0])).await.is_error(400, "MINE went wrong");
}

#[tokio::test]
async fn a_pipeline_fails_item_by_item() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let commands = json!([
        ["SET", "k", "a"],
        ["INCR", "k"],
        ["BLPOP", "list", 0],
        [],
        ["NOSUCH"],
        ["GET", "k"],
        ["GET", "none"],
    ]);
    let answer = rest.post_base64("/pipeline", commands.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let items = answer.json.as_array().unwrap();
    assert_eq!(items.len(), 7, "{items:?}");
    assert_eq!(items[0], json!({"result": "OK"}));
    for (item, says) in [
        (1, "ERR value is not an integer or out of range"),
        (2, "ERR Command is not available: 'BLPOP'"),
        (3, "ERR empty command"),
        (4, "ERR Command is not available: 'NOSUCH'"),
    ] {
        assert!(items[item]["error"].as_str().unwrap().starts_with(says), "{items:?}");
    }
    assert_eq!(items[5..], [json!({"result": "YQ=="}), json!({"result": null})]);
    let refused = rest.post("/pipeline", r#"[["WATCH","k"]]"#).await;
    assert_eq!(refused.status, 200, "{refused:?}");
    rest.post("/pipeline", "[]").await.is_error(400, "ERR empty pipeline");
    rest.post("/pipeline", r#"["PING"]"#).await.is_error(400, "ERR the body cannot be read as commands");
}

#[tokio::test]
async fn a_transaction_runs_as_a_whole_or_not_at_all() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let transact = async |commands: Value| rest.post("/multi-exec", commands.to_string()).await;
    let answer =
        transact(json!([["SET", "k", "a"], ["INCR", "k"], ["GET", "k"], ["MGET", "k", "none"]])).await;
    let error = "ERR value is not an integer or out of range";
    answer.is(200, json!([{"result": "OK"}, {"error": error}, {"result": "a"}, {"result": ["a", null]}]));
    transact(json!([["SET", "k", "b"], ["GET"]]))
        .await
        .is_error(400, "ERR wrong number of arguments for 'get' command");
    transact(json!([["SET", "k", "b"], ["WATCH", "k"]]))
        .await
        .is_error(400, "ERR Command is not available: 'WATCH'");
    transact(json!([["SET", "k", "b"], []])).await.is_error(400, "ERR empty command");
    rest.post("/multi-exec", r#"[["SET","k","b"]"#).await.is_error(400, "ERR the body cannot be read");
    rest.ask(json!(["GET", "k"])).await.is_result(json!("a"));
}

#[tokio::test]
async fn transactions_of_many_do_not_mix() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let one = json!([["INCR", "n"], ["INCR", "n"], ["INCR", "n"]]).to_string();
    let all = (0..50).map(|_| rest.post("/multi-exec", one.clone()));
    for answer in futures_util::future::join_all(all).await {
        let first = answer.json[0]["result"].as_u64().unwrap();
        assert_eq!(first % 3, 1, "{answer:?}");
        answer.is(200, json!([{"result": first}, {"result": first + 1}, {"result": first + 2}]));
    }
    rest.ask(json!(["GET", "n"])).await.is_result(json!("150"));
}

#[tokio::test]
async fn a_path_is_a_command() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    rest.get("/set/foo/bar").await.is_result(json!("OK"));
    send(rest.stranger(Method::GET, &format!("/get/foo?_token={TOKEN}"))).await.is_result(json!("bar"));
    rest.post("/set/foo?EX=100", "body").await.is_result(json!("OK"));
    rest.get("/get/foo").await.is_result(json!("body"));
    let ttl = rest.get("/ttl/foo").await.json["result"].as_i64().unwrap();
    assert!((90..=100).contains(&ttl), "{ttl}");
    let put = send(rest.request(Method::PUT, "/set/a%2Fb").body("c d")).await;
    put.is_result(json!("OK"));
    rest.get("/mget/a%2Fb/none").await.is_result(json!(["c d", null]));
    let head = send(rest.request(Method::HEAD, "/set/headed/1")).await;
    assert_eq!((head.status.as_u16(), head.json.as_str()), (200, Some("")), "{head:?}");
    rest.get("/get/headed").await.is_result(json!("1"));
    rest.post("/publish/chat/hello", "").await.is_result(json!(0));
    rest.get("/get").await.is_error(400, "ERR wrong number of arguments");
}

#[tokio::test]
async fn bytes_go_in_by_the_body_of_a_path_and_come_out_in_base64() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let bytes: Vec<u8> = (0..=255).collect();
    rest.post("/set/bytes", bytes.clone()).await.is_result(json!("OK"));
    let echoed = rest.post_base64("/eval/return%20ARGV%5B1%5D/0", bytes).await;
    let read = rest.post_base64("/", r#"["GET","bytes"]"#).await;
    assert_eq!(read.json, echoed.json);
    assert!(read.json["result"].as_str().unwrap().starts_with("AAECAwQFBgcICQ"), "{read:?}");
    rest.ask(json!(["STRLEN", "bytes"])).await.is_result(json!(256));
    rest.post("/set/bytes", b"a\xffb".to_vec()).await.is_result(json!("OK"));
    rest.get("/get/bytes").await.is_result(json!("a\u{fffd}b"));
}

#[tokio::test]
async fn nobody_is_let_in_without_the_token() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    for path in ["/", "/pipeline", "/multi-exec", "/get/foo", "/get/foo?_token=wrong", "/_faults"] {
        let stranger = send(rest.stranger(Method::POST, path).body(r#"["SET","k","v"]"#)).await;
        stranger.is_error(401, "WRONGPASS invalid or missing auth token");
        let liar = send(rest.stranger(Method::DELETE, path).bearer_auth("s3cretX")).await;
        liar.is_error(401, "WRONGPASS");
    }
    rest.get("/exists/k").await.is_result(json!(0));
}

#[tokio::test]
async fn what_cannot_be_carried_out_is_told() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    for method in [Method::DELETE, Method::PATCH, Method::OPTIONS] {
        send(rest.request(method, "/get/foo")).await.is_error(405, "ERR this method is not allowed");
    }
    rest.post("/", "{}").await.is_error(400, "ERR the body cannot be read as a command");
    rest.post("/", "").await.is_error(400, "ERR empty command");
    rest.get("/").await.is_error(400, "ERR empty command");
    rest.ask(json!(["NOSUCH", "a"])).await.is_error(400, "ERR Command is not available: 'NOSUCH'");
    let admin = RestEndpoint::with(&redis, &["--allow-admin"]).await;
    admin.ask(json!(["NOSUCH", "a"])).await.is_error(400, "ERR unknown command");
    rest.ask(json!(["GET"])).await.is_error(400, "ERR wrong number of arguments for 'get' command");
    for path in ["/subscribe/chat", "/psubscribe/c*", "/monitor", "/select/1", "/multi", "/client/reply/off"]
    {
        rest.get(path).await.is_error(400, "ERR Command is not available");
    }
    let resp3 = rest.request(Method::GET, "/get/k").header("Upstash-Response-Format", "resp3");
    send(resp3).await.is_error(400, "ERR Upstash-Response-Format resp3 is not served here");
    rest.get("/_faults").await.is_error(400, "ERR Command is not available: '_FAULTS'");
    for bytes in [(10 << 20) + 1, 40 << 20] {
        let says = format!("ERR max request size exceeded. Limit: 10485760 bytes, Actual: {bytes} bytes");
        rest.post("/set/k", vec![b'x'; bytes]).await.is_error(400, &says);
    }
    let fits = vec![b'x'; 10 << 20];
    rest.post("/set/k", fits).await.is_result(json!("OK"));
}

/// The status of an answer in RESP2, and its bytes.
async fn resp2(rest: &RestEndpoint, path: &str, body: &str) -> (u16, String) {
    let asked = rest.request(Method::POST, path).header("Upstash-Response-Format", "resp2");
    let answer = asked.body(body.to_owned()).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/octet-stream", "{answer:?}");
    (answer.status().as_u16(), String::from_utf8(answer.bytes().await.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn answers_come_as_redis_writes_them_if_that_is_asked_for() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    for (path, body, status, bytes) in [
        ("/set/foo/bar", "", 200, "+OK\r\n"),
        ("/", r#"["GET","foo"]"#, 200, "$3\r\nbar\r\n"),
        ("/get/none", "", 200, "$-1\r\n"),
        ("/incr/n", "", 200, ":1\r\n"),
        ("/mget/foo/none", "", 200, "*2\r\n$3\r\nbar\r\n$-1\r\n"),
        ("/incr/foo", "", 400, "-ERR value is not an integer or out of range\r\n"),
        (
            "/pipeline",
            r#"[["GET","foo"],["INCR","foo"],["A\r\n+OK"],["INCR","n"]]"#,
            200,
            "$3\r\nbar\r\n-ERR value is not an integer or out of range\r\n-ERR Command is not available: 'A  +OK'. \
             It is none for data: `delayline rest --allow-admin` lets it pass\r\n:2\r\n",
        ),
    ] {
        assert_eq!(resp2(&rest, path, body).await, (status, bytes.to_owned()), "{path} {body}");
    }
    // Transactions have no other form than JSON, and base64 goes with JSON alone.
    let asked = rest.request(Method::POST, "/multi-exec").header("Upstash-Response-Format", "resp2");
    send(asked.body(r#"[["GET","foo"]]"#)).await.is(200, json!([{ "result": "bar" }]));
    let both = rest.request(Method::GET, "/incr/n").header("Upstash-Response-Format", "resp2");
    send(both.header("Upstash-Encoding", "base64")).await.is_error(400, "ERR Upstash-Encoding goes with no");
    rest.get("/get/n").await.is_result(json!("2"));
}

#[tokio::test]
async fn who_reads_own_writes_gets_tokens_that_grow_also_across_a_restart() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let token = async |rest: &RestEndpoint, sent: String| {
        let answer = send(rest.request(Method::GET, "/ping").header("upstash-sync-token", sent)).await;
        answer.headers["upstash-sync-token"].to_str().unwrap().parse::<u64>().unwrap()
    };
    let first = token(&rest, String::new()).await;
    let second = token(&rest, first.to_string()).await;
    assert!(second > first);
    assert!(!rest.get("/ping").await.headers.contains_key("upstash-sync-token"));
    rest.stop().await;
    let rest = RestEndpoint::start(&redis).await;
    assert!(token(&rest, String::new()).await > second);
}

#[tokio::test]
async fn it_needs_a_redis_that_is_there() {
    let memory = bind("memory://", &[]).await.err().unwrap();
    assert!(memory.to_string().contains("which runs no Redis commands"), "{memory}");
    assert_eq!(memory.exit_code(), 2);
    let wrong = bind("http://x", &[]).await.err().unwrap();
    assert!(wrong.to_string().contains("no address of a queue"), "{wrong}");
    assert_eq!(wrong.exit_code(), 2);
    let redis = RedisServer::start(&["--requirepass", "hunter2"]).await;
    let denied = bind(&redis.url().replace(".sock", ".sock?pass=wrong"), &[]).await.err().unwrap();
    assert!(denied.to_string().contains("does not let this user in"), "{denied}");
    let at_once = ["--connect-timeout", "0s"];
    let away = bind("redis://127.0.0.1:1/", &at_once).await.err().unwrap();
    assert!(away.to_string().contains("127.0.0.1:1 cannot be reached: "), "{away}");
    assert_eq!(away.exit_code(), 3);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = bind(&format!("redis://{}/", silent.local_addr().unwrap()), &at_once).await.err().unwrap();
    assert!(silent.to_string().contains("cannot be reached: it does not answer. "), "{silent}");
}
