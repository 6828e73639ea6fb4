//! SUBSCRIBE and PSUBSCRIBE over `delayline rest`, as server-sent events.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::time::{Duration, Instant};

use delayline_tokio::Client;
use futures_util::{Stream, StreamExt};
use reqwest::{Method, Response};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::eventually;
use crate::proxy::Proxy;
use crate::raw::Raw;
use crate::redis_server::RedisServer;
use crate::rest_endpoint::{RestEndpoint, TOKEN};
use crate::service::Answer;

const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// What is read of an event stream.
pub(crate) struct Events {
    chunks: Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    read: String,
}

impl Events {
    pub(crate) fn of(response: Response) -> Events {
        assert_eq!(response.status(), 200, "{response:?}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        Events { chunks: Box::pin(response.bytes_stream()), read: String::new() }
    }

    /// The next event as it is written, which must come within 20 s, whatever comments do; `None` once the stream has ended
    /// as it should.
    async fn next(&mut self) -> Option<String> {
        timeout(Duration::from_secs(20), self.read()).await.expect("no event")
    }

    async fn read(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.read = rest;
                if event != ":" {
                    return Some(event);
                }
                continue;
            }
            self.read += str::from_utf8(&self.chunks.next().await?.unwrap()).unwrap();
        }
    }

    #[track_caller]
    fn is(&mut self, event: &str) -> impl Future<Output = ()> {
        let at = std::panic::Location::caller();
        async move {
            let next = self.next().await;
            assert_eq!(next.as_deref(), Some(event), "at {at}");
        }
    }

    /// Checks that it ends with an event that says why.
    async fn ends(&mut self, name: &str, says: &str) {
        let last = self.next().await.expect("it ends without a word");
        assert!(last.starts_with(&format!("data: error,{name},ERR ")) && last.contains(says), "{last}");
        assert_eq!(self.next().await, None);
    }
}

/// The refusal of an event stream, which is read only if it is one: a stream has no end.
async fn refused(rest: &RestEndpoint, path: &str) -> Answer {
    let response = rest.listen(path).await;
    assert_ne!(response.status(), 200, "{path} is no refusal");
    let (status, headers) = (response.status(), response.headers().clone());
    Answer { status, headers, json: serde_json::from_slice(&response.bytes().await.unwrap()).unwrap() }
}

/// Until Redis has no connections but that for commands and the one that asks.
async fn nobody_is_left(redis: &RedisServer) {
    eventually("no connection is left", async || {
        let connections: String = redis.ask(&["CLIENT", "LIST"]).await;
        (connections.lines().count() == 2).then_some(())
    })
    .await;
}

/// How many connections of Redis listen.
async fn listeners(redis: &RedisServer) -> usize {
    redis.ask::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).await.lines().count()
}

async fn is_heard_by(redis: &RedisServer, channel: &str, subscribers: i64) {
    eventually(&format!("{channel} has {subscribers} subscribers"), async || {
        let (_, heard): (String, i64) = redis.ask(&["PUBSUB", "NUMSUB", channel]).await;
        (heard == subscribers).then_some(())
    })
    .await;
}

/// A request for an event stream, on a connection of the test's own.
fn head(path: &str) -> String {
    let accept = "Accept: text/event-stream\r\nContent-Length: 0";
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{accept}\r\n\r\n")
}

/// Reads until the text is there.
async fn read_until(raw: &mut Raw, text: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(text) {
            assert!(raw.0.read_buf(&mut read).await.unwrap() > 0, "{}", String::from_utf8_lossy(&read));
        }
    };
    timeout(Duration::from_secs(20), reading).await.expect("it does not come");
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn messages_come_as_events_in_their_order() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let mut chat = rest.events("/subscribe/chat").await;
    chat.is("data: subscribe,chat,1").await;
    assert_eq!(rest.post("/publish/chat/hello", "").await.json["result"], 1);
    for text in ["a, b", "", "日本 🎉", "last"] {
        rest.post("/", serde_json::json!(["PUBLISH", "chat", text]).to_string()).await;
    }
    for text in ["hello", "a, b", "", "日本 🎉", "last"] {
        chat.is(&format!("data: message,chat,{text}")).await;
    }
    // As the client of Upstash asks: by POST, with a body that means nothing.
    let asked = rest.request(Method::POST, "/psubscribe/ch*/other:%3F").header("Accept", "text/event-stream");
    let asked = asked.header("Upstash-Encoding", "base64").header("upstash-sync-token", "").body("[]");
    let answered = asked.send().await.unwrap();
    assert!(answered.headers().contains_key("upstash-sync-token"));
    let mut alike = Events::of(answered);
    alike.is("data: psubscribe,ch*,1").await;
    alike.is("data: psubscribe,other:?,2").await;
    rest.post("/publish/chat", "two\nlines").await;
    rest.post("/publish/other:1", "x").await;
    rest.post("/publish/other:12", "not alike").await;
    rest.post("/publish/chat", "end").await;
    alike.is("data: pmessage,ch*,chat,two\ndata: lines").await;
    alike.is("data: pmessage,other:?,other:1,x").await;
    alike.is("data: pmessage,ch*,chat,end").await;
    chat.is("data: message,chat,two\ndata: lines").await;
    chat.is("data: message,chat,end").await;
    // A browser's EventSource sends no header but Accept.
    let of_browser = rest.stranger(Method::GET, &format!("/subscribe/a/b/a?_token={TOKEN}"));
    let mut several = Events::of(of_browser.header("Accept", "text/event-stream").send().await.unwrap());
    several.is("data: subscribe,a,1").await;
    several.is("data: subscribe,b,2").await;
    rest.post("/publish/b/x", "").await;
    several.is("data: message,b,x").await;
}

#[tokio::test]
async fn what_is_no_subscription_is_refused() {
    let redis = RedisServer::start(&[]).await;
    redis.ask::<String>(&["ACL", "SETUSER", "deaf", "on", ">x", "~*", "+@all", "resetchannels"]).await;
    let rest = RestEndpoint::start(&redis).await;
    for (path, status, says) in [
        ("/subscribe", 400, "ERR wrong number of arguments"),
        ("/monitor", 400, "ERR Command is not available: 'MONITOR'"),
        (&*format!("/subscribe{}", "/a".repeat(30)), 200, ""),
        (
            &*format!("/subscribe/{}", (0..101).map(|n| n.to_string()).collect::<Vec<_>>().join("/")),
            400,
            "ERR more than 100",
        ),
    ] {
        let answered = rest.listen(path).await;
        assert_eq!(answered.status(), status, "{path}");
        if status != 200 {
            let said = answered.text().await.unwrap();
            assert!(said.contains(says), "{path}: {said}");
        }
    }
    assert_eq!(rest.get("/subscribe/chat").await.status, 400);
    assert_eq!(rest.listen("/subscribe/chat?_token=x").await.status(), 200);
    let stranger = rest.stranger(Method::GET, "/subscribe/chat").header("Accept", "text/event-stream");
    assert_eq!(stranger.send().await.unwrap().status(), 401);
    let put = rest.request(Method::PUT, "/subscribe/chat").header("Accept", "text/event-stream");
    assert_eq!(put.send().await.unwrap().status(), 405);
    let deaf = RestEndpoint::at(&redis.url().replace(".sock", ".sock?user=deaf&pass=x"), &[]).await;
    let denied = deaf.listen("/subscribe/chat").await;
    assert_eq!(denied.status(), 400);
    assert!(denied.text().await.unwrap().contains("NOPERM"));
}

#[tokio::test]
async fn those_that_leave_leave_nothing_behind_in_redis() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--max-subscriptions", "60"]).await;
    nobody_is_left(&redis).await;
    let mut all = Vec::new();
    for number in 0..30 {
        let mut events = rest.events(&format!("/subscribe/shared/own:{number}")).await;
        events.is("data: subscribe,shared,1").await;
        all.push(events);
    }
    assert_eq!(listeners(&redis).await, 1, "one connection serves all");
    is_heard_by(&redis, "own:29", 1).await;
    drop(all.split_off(15));
    is_heard_by(&redis, "own:29", 0).await;
    is_heard_by(&redis, "shared", 1).await;
    is_heard_by(&redis, "own:14", 1).await;
    drop(all);
    nobody_is_left(&redis).await;
    // All places are free again.
    let mut again = Vec::new();
    for _ in 0..60 {
        again.push(rest.events("/subscribe/chat").await);
    }
    assert_eq!(rest.listen("/subscribe/chat").await.status(), 503);
}

#[tokio::test]
async fn one_that_has_sent_more_than_was_asked_for_leaves_too() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    for last_words in ["", "GET / HTTP/1.1\r\n"] {
        let mut raw = Raw::connect_to(rest.address()).await;
        raw.write(head("/subscribe/chat")).await;
        read_until(&mut raw, "data: subscribe,chat,1\n\n").await;
        raw.write(last_words).await;
        assert_eq!(listeners(&redis).await, 1);
        let begun = Instant::now();
        drop(raw);
        eventually("nobody listens", async || (listeners(&redis).await == 0).then_some(())).await;
        // Before a write fails: there is one every 15 s, and the system takes the first.
        assert!(begun.elapsed() < Duration::from_secs(14), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn there_are_so_many_subscriptions_of_a_client_and_of_all() {
    let redis = RedisServer::start(&[]).await;
    let limits = ["--max-subscriptions", "3", "--max-subscriptions-per-client", "2"];
    let rest = RestEndpoint::with(&redis, &limits).await;
    let (first, _second) = (rest.events("/subscribe/a").await, rest.events("/subscribe/b").await);
    let own = refused(&rest, "/subscribe/c").await;
    assert_eq!((own.status.as_u16(), own.headers["retry-after"].as_bytes()), (429, &b"1"[..]), "{own:?}");
    assert!(own.json["error"].as_str().unwrap().contains("--max-subscriptions-per-client"), "{own:?}");
    let mut other = Raw::connect_from_to(OTHER, rest.address()).await;
    other.write(head("/subscribe/c")).await;
    read_until(&mut other, "data: subscribe,c,1\n\n").await;
    let mut full = Raw::connect_from_to(OTHER, rest.address()).await;
    full.write(head("/subscribe/d")).await;
    let full = full.answer().await;
    assert_eq!(full.status, 503, "{full:?}");
    assert!(full.json["error"].as_str().unwrap().contains("--max-subscriptions"), "{full:?}");
    assert_eq!(rest.get("/ping").await.status, 200, "requests are answered all the same");
    drop(first);
    eventually("there is room again", async || {
        (rest.listen("/subscribe/c").await.status() == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_subscriber_that_hears_nothing_makes_way_for_no_other_connection() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--max-connections", "4"]).await;
    let mut subscribers = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::connect_to(rest.address()).await;
        raw.write(head("/subscribe/chat")).await;
        read_until(&mut raw, "data: subscribe,chat,1\n\n").await;
        subscribers.push(raw);
    }
    let mut others = Vec::new();
    for _ in 0..8 {
        let mut raw = Raw::connect_to(rest.address()).await;
        raw.write(head("/ping")).await;
        assert_eq!(raw.answer().await.status, 200);
        others.push(raw);
    }
    redis.ask::<i64>(&["PUBLISH", "chat", "x"]).await;
    for mut raw in subscribers {
        read_until(&mut raw, "data: message,chat,x\n\n").await;
    }
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_ended_and_holds_up_nobody() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::with(&redis, &["--body-timeout", "1h"]).await;
    let mut slow = Raw::connect_with_little_room_to(rest.address()).await;
    slow.write(head("/subscribe/chat")).await;
    read_until(&mut slow, "data: subscribe,chat,1\n\n").await;
    let mut quick = rest.events("/psubscribe/ch*").await;
    quick.is("data: psubscribe,ch*,1").await;
    let text = "x".repeat(100_000);
    let event = format!("data: pmessage,ch*,chat,{text}");
    let mut sent = 0;
    // As much as the system holds for it comes first.
    while redis.ask::<(String, i64)>(&["PUBSUB", "NUMSUB", "chat"]).await.1 == 1 {
        redis.ask::<i64>(&["PUBLISH", "chat", &text]).await;
        quick.is(&event).await;
        sent += 1;
        assert!(sent < 1_000, "it is not ended");
    }
    let read = read_until(&mut slow, "data: error,chat,ERR messages came faster than they were read").await;
    let came = read.matches("data: message,chat,").count();
    assert!((1..sent).contains(&came), "{came} of {sent}");
    redis.ask::<i64>(&["PUBLISH", "chat", "on"]).await;
    quick.is("data: pmessage,ch*,chat,on").await;
}

#[tokio::test]
async fn a_redis_that_ends_ends_subscriptions_with_a_word_and_new_ones_work() {
    let mut redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let mut channel = rest.events("/subscribe/chat").await;
    let mut pattern = rest.events("/psubscribe/c*").await;
    channel.is("data: subscribe,chat,1").await;
    pattern.is("data: psubscribe,c*,1").await;
    redis.kill();
    channel.ends("chat", "messages may be lost: subscribe again").await;
    pattern.ends("c*", "messages may be lost: subscribe again").await;
    let away = refused(&rest, "/subscribe/chat").await;
    assert_eq!(away.status, 503, "{away:?}");
    assert!(away.json["error"].as_str().unwrap().contains("cannot be reached"), "{away:?}");
    redis.replace().await;
    let mut again = rest.events("/subscribe/chat").await;
    again.is("data: subscribe,chat,1").await;
    redis.ask::<i64>(&["PUBLISH", "chat", "x"]).await;
    again.is("data: message,chat,x").await;
}

#[tokio::test]
async fn a_silent_redis_ends_subscriptions_within_the_time() {
    let redis = RedisServer::start(&[]).await;
    let proxy = Proxy::before(&redis).await;
    let rest = RestEndpoint::at(&proxy.url(), &["--timeout", "500ms"]).await;
    let mut chat = rest.events("/subscribe/chat").await;
    chat.is("data: subscribe,chat,1").await;
    proxy.silence();
    let begun = Instant::now();
    let late = rest.listen("/subscribe/other").await;
    assert_eq!(late.status(), 504);
    chat.ends("chat", "no answer within 500ms").await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let mut again = rest.events("/subscribe/chat").await;
    again.is("data: subscribe,chat,1").await;
    redis.ask::<i64>(&["PUBLISH", "chat", "x"]).await;
    again.is("data: message,chat,x").await;
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_left_by_subscribers_too() {
    let (first, second) = (RedisServer::start(&[]).await, RedisServer::start(&[]).await);
    let proxy = Proxy::before(&first).await;
    let rest = RestEndpoint::at(&proxy.url(), &[]).await;
    let mut chat = rest.events("/subscribe/chat").await;
    chat.is("data: subscribe,chat,1").await;
    first.ask::<String>(&["REPLICAOF", "127.0.0.1", "1"]).await;
    proxy.lead_to(&second);
    let refused = rest.get("/set/k/v").await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.json["error"].as_str().unwrap().starts_with("READONLY"), "{refused:?}");
    assert_eq!(rest.get("/set/k/v").await.status, 200);
    assert_eq!(second.ask::<String>(&["GET", "k"]).await, "v");
    chat.ends("chat", "Redis has become a replica").await;
    let mut again = rest.events("/subscribe/chat").await;
    again.is("data: subscribe,chat,1").await;
    second.ask::<i64>(&["PUBLISH", "chat", "x"]).await;
    again.is("data: message,chat,x").await;
}

#[tokio::test]
async fn subscribers_keep_it_from_stopping_as_little_as_others() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let mut chat = rest.events("/subscribe/chat").await;
    chat.is("data: subscribe,chat,1").await;
    let begun = Instant::now();
    rest.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    chat.ends("chat", "the endpoint stops").await;
    eventually("nobody listens", async || (listeners(&redis).await == 0).then_some(())).await;
}

#[tokio::test]
async fn an_engine_without_tcp_hears_its_wake_ups() {
    let redis = RedisServer::start(&[]).await;
    let rest = RestEndpoint::start(&redis).await;
    let (publisher, taker) =
        (Client::connect(&redis.url()).await.unwrap(), Client::connect(&redis.url()).await.unwrap());
    let waiting = tokio::spawn(async move {
        taker.bytes("orders").unwrap().take().wait(Duration::from_secs(60)).await.unwrap().len()
    });
    eventually("an engine waits for jobs", async || {
        let keys: Vec<String> = redis.ask(&["KEYS", "*waiting*"]).await;
        (!keys.is_empty()).then_some(())
    })
    .await;
    // The channels, one a shard, by which Redis is to wake that engine.
    let channels: Vec<String> = redis.ask(&["PUBSUB", "CHANNELS", "*wake:*"]).await;
    let encoded = channels.iter().map(|name| form_urlencoded::byte_serialize(name.as_bytes()).collect());
    let mut edge = rest.events(&format!("/subscribe/{}", encoded.collect::<Vec<String>>().join("/"))).await;
    for (index, channel) in channels.iter().enumerate() {
        edge.is(&format!("data: subscribe,{channel},{}", index + 1)).await;
    }
    publisher.bytes("orders").unwrap().publish(&"1".into()).await.unwrap();
    let woken = edge.next().await.unwrap();
    let is_wake_up = |channel: &String| woken == format!("data: message,{channel},orders");
    assert!(channels.iter().any(is_wake_up), "{woken}");
    assert_eq!(waiting.await.unwrap(), 1);
}
