use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::eventually;
use crate::raw::Raw;
use crate::service::{Service, text};

#[tokio::test]
async fn none_came_is_no_content() {
    let service = Service::start().await;
    let answer = service.post("/v1/take?queue=q", "").await;
    assert_eq!((answer.status.as_u16(), answer.json.as_str()), (204, Some("")));
    let begun = Instant::now();
    assert_eq!(service.post("/v1/take?queue=q&wait=50ms", "").await.status, 204);
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_long_poll_ends_with_the_first_job() {
    let service = Service::start().await;
    let waits = service.post("/v1/take?queue=a&queue=b&count=10&wait=5m&lease=10m", "");
    let (answer, ()) = tokio::join!(waits, service.publish("b", "x"));
    assert_eq!(answer.status, 200);
    let jobs = answer.json["jobs"].as_array().unwrap();
    assert_eq!((jobs.len(), &jobs[0]["queue"]), (1, &json!("b")));
}

#[tokio::test]
async fn queues_are_asked_in_the_order_given() {
    let service = Service::start().await;
    for (queue, id) in [("a", "1"), ("b", "2"), ("b", "3")] {
        service.publish(queue, id).await;
    }
    let answer = service.post("/v1/take?queue=b&queue=a&count=10", "").await;
    let ids: Vec<_> = answer.json["jobs"].as_array().unwrap().iter().map(|job| text(&job["id"])).collect();
    assert_eq!(ids, ["2", "3"]);
    let answer = service.post("/v1/take?queue=b&queue=a&count=10", "").await;
    assert_eq!(answer.json["jobs"][0]["id"], "1");
}

#[tokio::test]
async fn a_lease_that_ends_gives_the_job_to_the_next() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let first = service.post("/v1/take?queue=q&lease=1s", "").await.json["jobs"][0].clone();
    let second = service.take("q").await;
    assert_eq!((&second["id"], &second["attempt"]), (&json!("a"), &json!(2)));
    let stale = service.post(&format!("/v1/leases/{}/ack", text(&first["lease"])), "").await;
    stale.is_problem(409, "stale", "this lease has ended");
}

#[tokio::test]
async fn who_hangs_up_costs_a_job_nothing() {
    let service = Service::start().await;
    let address = service.base.strip_prefix("http://").unwrap().to_string();
    for n in 0..20 {
        let mut polls = Vec::new();
        for _ in 0..5 {
            let mut poll = TcpStream::connect(&address).await.unwrap();
            let request = "POST /v1/take?queue=q&wait=5m&lease=1h HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
            poll.write_all(request.as_bytes()).await.unwrap();
            polls.push(poll);
        }
        service.get("/healthz").await;
        for mut poll in polls {
            // A process that another test is just starting has a copy of the socket: to drop this one would not end it yet.
            poll.shutdown().await.unwrap();
        }
        service.get("/healthz").await;
        service.publish("q", &format!("job-{n}")).await;
        let job = service.take("q").await;
        assert_eq!((&job["id"], &job["attempt"]), (&json!(format!("job-{n}")), &json!(1)));
        service
            .post(&format!("/v1/leases/{}/ack", text(&job["lease"])), "")
            .await
            .is(200, json!({ "status": "ok" }));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_written_whole_gives_its_jobs_back() {
    let service = Service::with(&["--max-payload", "4MiB"]).await;
    for n in 0..8 {
        let published = service.post(&format!("/v1/queues/q/jobs?id=job-{n}"), vec![b'x'; 4 << 20]).await;
        assert_eq!(published.status, 201);
    }
    let mut raw = Raw::connect_with_little_room(&service).await;
    raw.write(
        "POST /v1/take?queue=q&count=8&lease=1h HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    eventually("the jobs are taken", async || (service.sizes("q").await[2] == 8).then_some(())).await;
    drop(raw);
    eventually("the jobs are given back", async || (service.sizes("q").await == [8, 0, 0, 0]).then_some(()))
        .await;
    let job = service.take("q").await;
    assert_eq!((&job["id"], &job["attempt"]), (&json!("job-0"), &json!(1)));
}

#[tokio::test]
async fn the_jobs_of_answers_that_were_written_stay_with_who_closes_the_connection() {
    let service = Service::start().await;
    for n in 0..20 {
        service.publish("q", &format!("job-{n}")).await;
        let mut raw = Raw::connect(&service).await;
        raw.write("POST /v1/take?queue=q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").await;
        let lease = text(&raw.answer().await.json["jobs"][0]["lease"]);
        drop(raw);
        service.get("/healthz").await;
        let acked = service.post(&format!("/v1/leases/{lease}/ack"), "").await;
        acked.is(200, json!({ "status": "ok" }));
    }
}

#[tokio::test]
async fn a_poll_with_a_body_is_refused_since_its_end_could_not_be_heard() {
    let service = Service::start().await;
    let answer = service.post("/v1/take?queue=q&wait=5m", "{}").await;
    answer.is_problem(400, "unexpected_body", "pass options in the query");
}

#[tokio::test]
async fn answers_may_be_read_from_the_bare_connection() {
    let service = Service::start().await;
    service.publish("q", "a").await;
    let mut connection = TcpStream::connect(service.base.strip_prefix("http://").unwrap()).await.unwrap();
    let request = "POST /v1/take?queue=q HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\"lease\":\""), "{answer}");
}
