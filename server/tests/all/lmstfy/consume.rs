use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Lmstfy, TOKEN};
use crate::eventually;

const NO_JOB: &str = r#"{"msg":"no job available"}"#;

#[tokio::test]
async fn one_job_is_an_object_and_more_are_an_array() {
    let lmstfy = Lmstfy::start().await;
    let one = lmstfy.publish("/api/ns/q1?tries=3&ttl=7200", "hello").await;
    lmstfy.ask("GET", "/api/ns/q1?ttr=30", "").await.is_job(&format!(
        r#"{{"attributes":null,"data":"aGVsbG8=","elapsed_ms":ELAPSED,"job_id":"{one}","msg":"new job","namespace":"ns","queue":"q1","remain_tries":2,"ttl":7200}}"#
    ));
    let two = lmstfy.publish("/api/ns/q1?ttl=0", "x").await;
    let reply = lmstfy.ask("GET", "/api/ns/q1?count=2", "").await;
    let elapsed = reply.json()[0]["elapsed_ms"].as_u64().unwrap();
    reply.is_json(200, &format!(
        r#"[{{"attributes":null,"data":"eA==","elapsed_ms":{elapsed},"job_id":"{two}","msg":"new job","namespace":"ns","queue":"q1","remain_tries":0,"ttl":0}}]"#
    ));
    lmstfy.ask("GET", "/api/ns/q1", "").await.is_json(404, NO_JOB);
    lmstfy.ask("GET", "/api/ns/q1?count=5", "").await.is_json(404, NO_JOB);
    lmstfy.ask("GET", "/api/ns/q1?timeout=1&count=5", "").await.is_json(404, NO_JOB);
}

#[tokio::test]
async fn what_cannot_be_consumed_is_refused_in_lmstfys_order() {
    let lmstfy = Lmstfy::start().await;
    let long = "q".repeat(256);
    for (path, error) in [
        ("/api/ns/q?ttr=x&timeout=x&count=x", "invalid ttr"),
        ("/api/ns/q?timeout=x&count=x", "invalid timeout"),
        ("/api/ns/,?count=0", "invalid count"),
        ("/api/ns/q?count=101", "invalid count"),
        ("/api/ns/q?count=-1", "invalid count"),
        ("/api/ns/,", "invalid queue name(s)"),
        (&*format!("/api/ns/{long}"), "invalid queue name(s)"),
        (&*format!("/api/{long}/q"), "namespace or queue name too long"),
        ("/api/n.s/a.b", "namespace name contains forbidden characters"),
        ("/api/ns/a.b", "queue name contains forbidden characters"),
        ("/api/ns/a%2Fb", "queue name contains forbidden characters"),
    ] {
        lmstfy.ask("GET", path, "").await.is_error(400, error);
    }
    // These are read, and mean what they can.
    for path in ["/api/ns/_q", "/api/ns/q?freeze_tries=true", "/api/ns/q?ttr=0", "/api/ns/a,,b,a"] {
        lmstfy.ask("GET", path, "").await.is_json(404, NO_JOB);
    }
}

#[tokio::test]
async fn the_queues_of_a_consume_have_the_priority_of_their_order() {
    let lmstfy = Lmstfy::start().await;
    for queue in ["b", "a", "b", "c", "a"] {
        lmstfy.publish(&format!("/api/ns/{queue}"), "x").await;
    }
    for queue in ["a", "a", "b"] {
        assert_eq!(lmstfy.consume("a,b,c", "").await["queue"], queue);
    }
    lmstfy.publish("/api/ns/a", "x").await;
    let reply = lmstfy.ask("GET", "/api/ns/a,none,b,c?count=10", "").await.json();
    let queues: Vec<&str> =
        reply.as_array().unwrap().iter().map(|job| job["queue"].as_str().unwrap()).collect();
    assert_eq!(queues, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_job_has_its_tries_and_is_dead_then() {
    let lmstfy = Lmstfy::start().await;
    let id = lmstfy.publish("/api/ns/q?tries=2", "x").await;
    for left in [1, 0] {
        let begun = Instant::now();
        let job = lmstfy.consume("q", "ttr=1").await;
        assert_eq!((&job["job_id"], &job["remain_tries"]), (&json!(id), &json!(left)));
        if left == 0 {
            assert!(
                begun.elapsed() >= Duration::from_millis(900),
                "it came back before its ttr: {:?}",
                begun.elapsed()
            );
        }
    }
    let size = r#"{"namespace":"ns","queue":"q","size":1}"#;
    eventually("it is dead", async || {
        (lmstfy.ask("GET", "/api/ns/q/deadletter/size", "").await.body == size).then_some(())
    })
    .await;
}

#[tokio::test]
async fn with_one_try_and_a_ttr_of_a_second_a_job_is_dead_within_two() {
    let lmstfy = Lmstfy::start().await;
    for ttr in [1, 0] {
        let id = lmstfy.publish(&format!("/api/ns/q{ttr}?tries=1"), "x").await;
        let begun = Instant::now();
        lmstfy.consume(&format!("q{ttr}"), &format!("ttr={ttr}")).await;
        let path = format!("/api/ns/q{ttr}/deadletter");
        let dead =
            format!(r#"{{"deadletter_head":"{id}","deadletter_size":1,"namespace":"ns","queue":"q{ttr}"}}"#);
        eventually("it is dead", async || (lmstfy.ask("GET", &path, "").await.body == dead).then_some(()))
            .await;
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn no_job_comes_before_its_delay_is_over() {
    let lmstfy = Lmstfy::start().await;
    for n in 0..4 {
        let begun = Instant::now();
        let id = lmstfy.publish("/api/ns/q?delay=1", &n.to_string()).await;
        let job = lmstfy.consume("q", "").await;
        assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
        assert_eq!(job["job_id"], id);
    }
}

#[tokio::test]
async fn a_ttl_that_ends_takes_the_job_away_and_a_ttl_is_rounded() {
    let lmstfy = Lmstfy::start().await;
    lmstfy.publish("/api/ns/q?ttl=1", "x").await;
    eventually("it expires", async || (lmstfy.sizes("q").await == [0; 4]).then_some(())).await;
    lmstfy.publish("/api/ns/q?ttl=100", "x").await;
    let ttl = lmstfy.consume("q", "").await["ttl"].as_u64().unwrap();
    assert!((90..=100).contains(&ttl), "{ttl}");
}

/// A job of the service's own API shows what lmstfy's objects can.
#[tokio::test]
async fn jobs_of_the_other_api_are_consumed_too() {
    let lmstfy = Lmstfy::start().await;
    let url = format!("{}/v1/queues/ns~q/jobs?id=order:17&ttl=1h&attempts=4", lmstfy.native);
    let published =
        lmstfy.http.post(url).header("content-type", "text/plain").body("hi").send().await.unwrap();
    assert_eq!(published.status(), 201);
    lmstfy.ask("GET", "/api/ns/q", "").await.is_job(
        r#"{"attributes":null,"data":"aGk=","elapsed_ms":ELAPSED,"job_id":"order:17","msg":"new job","namespace":"ns","queue":"q","remain_tries":3,"ttl":3600}"#,
    );
    lmstfy.ask("DELETE", "/api/ns/q/job/order:17", "").await.is_empty(204);
    assert_eq!(lmstfy.sizes("q").await, [0; 4]);
}

#[tokio::test]
async fn a_poll_ends_when_a_job_comes_or_its_time_is_over() {
    let lmstfy = Lmstfy::start().await;
    let begun = Instant::now();
    lmstfy.ask("GET", "/api/ns/q,r?timeout=1", "").await.is_json(404, NO_JOB);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let path = "/api/ns/q,r?timeout=4294967295";
    let (job, _) = tokio::join!(lmstfy.ask("GET", path, ""), lmstfy.publish("/api/ns/r", "x"));
    assert_eq!((job.status, &job.json()["queue"]), (200, &json!("r")));
}

async fn begin_poll(lmstfy: &Lmstfy, path: &str) -> TcpStream {
    let mut poll = TcpStream::connect(lmstfy.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Token: {TOKEN}\r\n\r\n");
    poll.write_all(request.as_bytes()).await.unwrap();
    poll
}

#[tokio::test]
async fn a_client_that_leaves_its_poll_costs_no_job_a_try() {
    let lmstfy = Lmstfy::start().await;
    for n in 0..10 {
        let mut polls = Vec::new();
        for _ in 0..4 {
            polls.push(begin_poll(&lmstfy, "/api/ns/q?timeout=600&ttr=3600").await);
        }
        lmstfy.ask("GET", "/api/ns/q/size", "").await;
        for mut poll in polls {
            poll.shutdown().await.unwrap();
        }
        lmstfy.ask("GET", "/api/ns/q/size", "").await;
        let id = lmstfy.publish("/api/ns/q?tries=1", &n.to_string()).await;
        let job = lmstfy.consume("q", "").await;
        assert_eq!((&job["job_id"], &job["remain_tries"]), (&json!(id), &json!(0)));
        lmstfy.ask("DELETE", &format!("/api/ns/q/job/{id}"), "").await.is_empty(204);
        assert_eq!(lmstfy.sizes("q").await, [0; 4]);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_read_gives_its_jobs_back() {
    let lmstfy = Lmstfy::start().await;
    for n in 0..12 {
        lmstfy.publish(&format!("/api/ns/q{}", n % 2), &"x".repeat(1 << 20)).await;
    }
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut poll = socket.connect(lmstfy.address().parse().unwrap()).await.unwrap();
    let request = format!(
        "GET /api/ns/q0,q1?count=12&ttr=3600 HTTP/1.1\r\nHost: localhost\r\nX-Token: {TOKEN}\r\n\r\n"
    );
    poll.write_all(request.as_bytes()).await.unwrap();
    let leased = async || lmstfy.sizes("q0").await[2] == 6 && lmstfy.sizes("q1").await[2] == 6;
    eventually("the jobs are taken", async || leased().await.then_some(())).await;
    drop(poll);
    let ready = async || lmstfy.sizes("q0").await == [6, 0, 0, 0] && lmstfy.sizes("q1").await == [6, 0, 0, 0];
    eventually("the jobs are given back", async || ready().await.then_some(())).await;
    assert_eq!(lmstfy.consume("q0", "").await["remain_tries"], 0);
}

#[tokio::test]
async fn polls_end_when_the_service_stops() {
    let lmstfy = Lmstfy::start().await;
    let mut poll = begin_poll(&lmstfy, "/api/ns/q?timeout=600").await;
    lmstfy.ask("GET", "/api/ns/q/size", "").await;
    lmstfy.stop().await;
    let mut answer = String::new();
    poll.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n") && answer.ends_with(NO_JOB), "{answer}");
}

#[tokio::test]
async fn polls_of_one_address_are_limited() {
    let lmstfy = Lmstfy::with(&["--max-takes-per-client", "1"]).await;
    let _poll = begin_poll(&lmstfy, "/api/ns/q?timeout=600").await;
    eventually("there is one poll too many", async || {
        let reply = lmstfy.ask("GET", "/api/ns/q?timeout=1", "").await;
        if reply.status == 404 {
            return None;
        }
        reply.is_json(429, r#"{"msg":"1 consumers of this address wait already, please retry later"}"#);
        Some(())
    })
    .await;
    lmstfy.ask("GET", "/api/ns/q", "").await.is_json(404, NO_JOB);
}
