use std::process::Stdio;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use crate::program::{delayline, ended, lines_of, signal};
use crate::redis_server::RedisServer;
use crate::rest_endpoint::RestEndpoint;
use crate::service::{Answer, Service, send};

const X_REQUEST_ID: &str = "x-request-id";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn id(answer: &Answer) -> &str {
    let mut ids = answer.headers.get_all(X_REQUEST_ID).iter();
    let (Some(id), None) = (ids.next(), ids.next()) else { panic!("not one id: {answer:?}") };
    id.to_str().unwrap()
}

/// Whatever is asked is answered with the id that the request brings, or with a new one.
async fn echoes(asked: impl Fn() -> RequestBuilder, status: u16) {
    let given = send(asked().header(X_REQUEST_ID, "Rq-1:/~")).await;
    assert_eq!((given.status.as_u16(), id(&given)), (status, "Rq-1:/~"), "{given:?}");
    let [one, other] = [send(asked()).await, send(asked()).await];
    assert_eq!((one.status.as_u16(), other.status.as_u16()), (status, status), "{one:?} {other:?}");
    assert!(id(&one).len() == 13 && id(&one) != id(&other), "{one:?} {other:?}");
    let too_long = "a".repeat(129);
    for bad in ["a b", too_long.as_str()] {
        let answer = send(asked().header(X_REQUEST_ID, bad)).await;
        assert_eq!(id(&answer).len(), 13, "{answer:?}");
    }
}

#[tokio::test]
async fn every_answer_of_the_service_has_one() {
    let service = Service::start().await;
    echoes(|| service.request(Method::POST, "/v1/queues/q/jobs").body("1"), 201).await;
    echoes(|| service.request(Method::GET, "/healthz"), 200).await;
    echoes(|| service.request(Method::GET, "/metrics"), 200).await;
    echoes(|| service.request(Method::POST, "/v1/take?queue=none"), 204).await;
    echoes(|| service.request(Method::GET, "/v1/queues/q/jobs/none"), 404).await;
    echoes(|| service.request(Method::GET, "/nowhere"), 404).await;
    echoes(|| service.request(Method::PATCH, "/v1/queues"), 405).await;
    echoes(|| service.request(Method::GET, "/healthz").header("Host", "elsewhere.example"), 421).await;
    echoes(|| service.request(Method::POST, "/v1/queues/q/pause").header("Origin", "http://x.example"), 403)
        .await;
    let lines = || {
        let batch = service.request(Method::POST, "/v1/queues/q/batch");
        batch.header("Content-Type", "application/x-ndjson").body("{\"payload\":1}\n")
    };
    echoes(lines, 200).await;
}

#[tokio::test]
async fn every_answer_of_the_rest_endpoint_has_one() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    echoes(|| rest.request(Method::GET, "/ping"), 200).await;
    echoes(|| rest.request(Method::GET, "/nonsense"), 400).await;
    echoes(|| rest.stranger(Method::GET, "/ping"), 401).await;
}

/// What a service logs, at the lowest level of all that it is made of, while it is asked by `ask`.
async fn logged(words: &[&str], environment: &[(&str, &str)], ask: impl AsyncFnOnce(String)) -> Vec<Value> {
    let words = [&["serve", "--listen", "127.0.0.1:0", "--redis", "memory://", "--json"], words].concat();
    let mut command = delayline(None, &words);
    command.envs(environment.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = Vec::new();
    let begun = async {
        let place = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).await.unwrap() > 0, "it ended: {said:?}");
            said.push(line.clone());
            if let Some((_, place)) = line.split_once("listening on http://") {
                break place.split_once(',').unwrap().0.to_owned();
            }
        };
        // Its lines are read while it is asked, else it would lose some.
        let asking = ask(format!("http://{place}"));
        let reading = async {
            while stderr.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty()) {
                let mut line = String::new();
                stderr.read_line(&mut line).await.unwrap();
                said.push(line);
            }
        };
        let asked = async {
            asking.await;
            signal("-TERM", &child).await;
        };
        tokio::join!(asked, reading);
    };
    timeout(Duration::from_secs(60), begun).await.expect("it goes on");
    ended(child).await;
    lines_of(said.concat().as_bytes())
}

fn fields<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["fields"]["message"] == message).map(|line| &line["fields"]).collect()
}

#[tokio::test]
async fn a_request_has_a_line_with_its_fields_if_asked() {
    let ask = async |base: String| {
        let http = reqwest::Client::new();
        let publish = http.post(format!("{base}/v1/queues/q/jobs?id=a")).header(X_REQUEST_ID, "first");
        assert_eq!(send(publish.body("1")).await.status, 201);
        let take = send(http.post(format!("{base}/v1/take?queue=q"))).await;
        let lease = take.json["jobs"][0]["lease"].as_str().unwrap();
        let ack = http.post(format!("{base}/v1/leases/{lease}/ack")).header(X_REQUEST_ID, "second");
        assert_eq!(send(ack).await.status, 200);
        assert_eq!(send(http.get(format!("{base}/nowhere"))).await.status, 404);
    };
    let lines = logged(&["--access-log"], &[], ask).await;
    let answered = fields(&lines, "a request was answered");
    let [publish, take, ack, nowhere] = answered[..] else { panic!("{lines:?}") };
    for (name, value) in [
        ("request_id", "first"),
        ("method", "POST"),
        ("route", "/v1/queues/{queue}/jobs"),
        ("path", "/v1/queues/q/jobs"),
        ("client", "127.0.0.1"),
    ] {
        assert_eq!(publish[name], value, "{publish}");
    }
    assert_eq!((publish["status"].as_u64(), publish["ms"].is_u64()), (Some(201), true), "{publish}");
    assert!(publish["bytes"].as_u64().is_some_and(|bytes| bytes > 20), "{publish}");
    assert_eq!((&take["path"], &take["token"]), (&"/v1/take".into(), &Value::Null), "{take}");
    assert_eq!((&ack["route"], &ack["path"]), (&"/v1/leases/{lease}/ack".into(), &Value::Null), "{ack}");
    assert_eq!((&nowhere["route"], &nowhere["path"]), (&"unmatched".into(), &Value::Null), "{nowhere}");
    let silent = logged(&[], &[], async |base| {
        assert_eq!(send(reqwest::Client::new().get(format!("{base}/healthz"))).await.status, 200);
    })
    .await;
    assert!(fields(&silent, "a request was answered").is_empty(), "{silent:?}");
}

#[tokio::test]
async fn what_is_logged_within_a_request_is_inside_of_its_span() {
    let token = "bootstrap-s3cret-0123456789abcdef";
    let ask = async |base: String| {
        let create = reqwest::Client::new().post(format!("{base}/v1/tokens")).bearer_auth(token);
        let create = create.header(X_REQUEST_ID, "within");
        let create = create.header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"));
        let made = send(create.body(r#"{"scopes":["publish"]}"#)).await;
        assert_eq!(made.status, 201, "{made:?}");
    };
    let lines = logged(&["--log-level", "debug"], &[("DELAYLINE_TOKEN", token)], ask).await;
    let audit = lines
        .iter()
        .find(|line| line["target"] == "delayline::audit" || line.to_string().contains("audit {"));
    let span = &audit.unwrap_or_else(|| panic!("no audit: {lines:?}"))["span"];
    for (name, value) in [
        ("name", "request"),
        ("method", "POST"),
        ("route", "/v1/tokens"),
        ("request_id", "within"),
        ("trace_id", TRACE),
    ] {
        assert_eq!(span[name], value, "{span}");
    }
}

/// Neither what lets people in nor what they say may be read in a log, however much is logged.
#[tokio::test]
async fn no_token_no_lease_and_no_body_is_ever_logged() {
    const BOOTSTRAP: &str = "bootstrap-s3cret-0123456789abcdef";
    let markers = ["s3cret", "m4rker"];
    let mut leases = Vec::new();
    let ask = async |base: String| {
        let http = reqwest::Client::new();
        let post = |path: &str, body: &str| {
            let post = http.post(format!("{base}{path}")).bearer_auth(BOOTSTRAP);
            send(post.body(body.to_owned()))
        };
        for body in ["m4rker", r#"{"m4rker":"m4rker"}"#, r#"{"payload":"m4rker","delay":"m4rker"}"#] {
            assert!(post("/v1/queues/q/jobs?attempts=3", body).await.status.is_success());
            post("/v1/queues/q/jobs", body).await;
            post("/v1/queues/q/batch", &format!("[{body}]")).await;
            post("/v1/queues/q/batch", body).await;
            post("/v1/leases/settle", body).await;
            post("/v1/tokens", body).await;
            http.put(format!("{base}/v1/queues/q/config")).body(body).send().await.unwrap();
        }
        let made = post("/v1/tokens", r#"{"scopes":["publish"],"description":"x"}"#).await;
        let text = made.json["token"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
        for shown in
            [format!("Bearer {text}"), format!("Basic {text}"), text.clone(), format!("{text}s3cret")]
        {
            for path in ["/v1/queues/q/jobs", "/v1/take?queue=q", "/v1/queues/q/jobs?token=s3cret", "/s3cret"]
            {
                let asked = http.post(format!("{base}{path}")).header("Authorization", &shown);
                send(asked.header("X-Token", "s3cret").header("Cookie", "a=s3cret").body("m4rker")).await;
            }
        }
        let taken = post("/v1/take?queue=q&count=3&lease=1m", "").await;
        for job in taken.json["jobs"].as_array().unwrap() {
            let lease = job["lease"].as_str().unwrap().to_owned();
            post(&format!("/v1/leases/{lease}/nack?reason=m4rker"), "").await;
            post(&format!("/v1/leases/{lease}/ack?token=s3cret"), "").await;
            leases.push(lease);
        }
        leases.push(text);
    };
    let environment = [("DELAYLINE_TOKEN", BOOTSTRAP), ("RUST_LOG", "trace")];
    let lines = logged(&["--access-log"], &environment, ask).await;
    assert!(fields(&lines, "a request was answered").len() > 30, "{}", lines.len());
    assert!(lines.iter().any(|line| line["span"]["name"] == "request"), "nothing was logged at that level");
    assert!(leases.len() > 1, "{leases:?}");
    for line in &lines {
        let line = line.to_string();
        for secret in markers.into_iter().chain(leases.iter().map(String::as_str)) {
            assert!(!line.contains(secret), "{secret:?} is in {line}");
        }
    }
}
