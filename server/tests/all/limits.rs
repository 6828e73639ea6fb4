use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;

use crate::eventually;
use crate::raw::Raw;
use crate::service::{Service, send, text};

const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Each route that reads a body: with a head of its own, and the most bytes of its body.
const READERS: [(&str, &str, u64); 8] = [
    ("POST /v1/queues/q/jobs", "", 1 << 20),
    ("POST /v1/queues/q/batch", "", 16 << 20),
    ("POST /v1/leases/settle", "", 16 << 20),
    ("PATCH /v1/queues/q/jobs/a", "", 16 << 20),
    ("PUT /v1/queues/q/config", "", 64 << 10),
    ("POST /v1/queues/q/dead/requeue", "", 16 << 20),
    ("POST /v1/queues/q/dead/purge", "", 16 << 20),
    ("POST /v1/take?queue=q", "", 0),
];

fn head(route: &str, headers: &str, length: u64) -> String {
    format!("{route} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n")
}

async fn take(service: &Service, from: IpAddr, wait: &str) -> Raw {
    let mut raw = Raw::connect_from(from, service).await;
    raw.write(head(&format!("POST /v1/take?queue=q&wait={wait}"), "", 0)).await;
    raw
}

/// Until so many takes wait, as far as can be seen: a further one of that client is refused.
async fn is_full(service: &Service, from: IpAddr) {
    eventually("as many takes wait as may", async || {
        let came = take(service, from, "1ms").await.answer().await;
        (came.status == 429).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_head_must_come_whole_in_time_however_slowly_it_trickles() {
    let service = Service::with(&["--head-timeout", "500ms"]).await;
    let mut raw = Raw::connect(&service).await;
    let begun = Instant::now();
    raw.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n").await;
    let (mut read, mut write) = raw.0.into_split();
    let trickle = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        while write.write_all(b"x: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut rest = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut rest).await;
    assert!(begun.elapsed() >= Duration::from_millis(500) && rest.is_empty(), "{rest:?}");
    trickle.await.unwrap();
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_and_one_with_a_take_is_not() {
    let service =
        Service::with(&["--idle-timeout", "300ms", "--head-timeout", "300ms", "--body-timeout", "300ms"])
            .await;
    let (mut new, mut used) = (Raw::connect(&service).await, Raw::connect(&service).await);
    used.write(head("GET /healthz", "", 0)).await;
    assert_eq!(used.answer().await.status, 200);
    let mut waits = take(&service, OTHER, "5m").await;
    assert!(new.is_closed().await && used.is_closed().await);
    service.publish("q", "a").await;
    assert_eq!(waits.answer().await.json["jobs"][0]["id"], "a");
    assert!(waits.is_closed().await);
}

#[tokio::test]
async fn a_body_that_stops_is_given_up_on_every_route() {
    let service = Service::with(&["--body-timeout", "300ms"]).await;
    for (route, headers, length) in READERS.into_iter().filter(|(_, _, length)| *length > 0) {
        let mut raw = Raw::connect(&service).await;
        raw.write(head(route, headers, length)).await;
        raw.write("[").await;
        raw.answer().await.is_problem(408, "body_timeout");
        assert!(raw.is_closed().await, "{route}");
    }
    let mut raw = Raw::connect(&service).await;
    raw.write(head("POST /v1/queues/q/batch", NDJSON, 1 << 20)).await;
    raw.write("{\"payload\":1}\n{\"pay").await;
    let said = raw.rest().await;
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with('{')).collect();
    assert!(lines.len() == 2 && lines[0].contains("created") && lines[1].contains("body_timeout"), "{said}");
}

#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_refused_before_it_comes() {
    let service = Service::start().await;
    for (route, headers, most) in READERS {
        let (status, code) = match most {
            0 => (400, "unexpected_body"),
            0x10_0000 => (413, "payload_too_large"),
            _ => (413, "body_too_large"),
        };
        for expect in ["", "Expect: 100-continue\r\n"] {
            let mut raw = Raw::connect(&service).await;
            raw.write(head(route, &format!("{headers}{expect}"), most + 1)).await;
            raw.answer().await.is_problem(status, code);
        }
        if most > 0 {
            let mut raw = Raw::connect(&service).await;
            raw.write(head(route, "Expect: 100-continue\r\n", 2)).await;
            assert_eq!(raw.answer().await.status, 100, "{route}");
        }
    }
}

#[tokio::test]
async fn bodies_that_are_silent_make_way_for_those_that_come() {
    let service = Service::with(&["--max-body-memory", "4MiB"]).await;
    let mut silent = Vec::new();
    for _ in 0..12 {
        let mut raw = Raw::connect(&service).await;
        raw.write(head("POST /v1/queues/q/batch", "", 2 << 20)).await;
        let _ = tokio::time::timeout(Duration::from_secs(2), raw.try_write(&vec![b' '; (2 << 20) - 1])).await;
        silent.push(raw);
    }
    for n in 0..5 {
        let answer = service.post(&format!("/v1/queues/q/jobs?id=small-{n}"), "1").await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let batch = format!("[{{\"payload\":\"{}\"}}]", "x".repeat(900_000));
        eventually("a large body finds room", async || {
            let answer = service.post("/v1/queues/q/batch", batch.clone()).await;
            assert!([200, 503].contains(&answer.status.as_u16()), "{answer:?}");
            (answer.status == 200).then_some(())
        })
        .await;
    }
    let mut closed = 0;
    for mut raw in silent {
        closed += u32::from(raw.is_closed().await);
    }
    assert!(closed > 0, "they found room all by themselves");
}

#[tokio::test]
async fn a_body_that_finds_no_room_is_told_to_come_again() {
    let service = Service::with(&["--max-body-memory", "1MiB"]).await;
    let answer = service.post("/v1/queues/q/batch", vec![b' '; 2 << 20]).await;
    answer.is_problem(503, "busy", "--max-body-memory");
    assert!(answer.headers.contains_key("retry-after"));
    let answer = service.post("/v1/queues/q/batch", vec![b' '; 900 << 10]).await;
    answer.is_problem(400, "bad_json", "EOF");
}

#[tokio::test]
async fn when_connections_run_out_the_longest_silent_one_makes_way() {
    let service = Service::with(&["--max-connections", "20"]).await;
    let first = Raw::connect(&service).await;
    let mut waits = take(&service, OTHER, "5m").await;
    let mut others = vec![first];
    for n in 0..100 {
        others.push(Raw::connect(&service).await);
        if n % 10 == 0 {
            service.get("/healthz").await.is(200, serde_json::json!("ok\n"));
        }
    }
    assert!(others[0].is_closed().await && others[50].is_closed().await);
    let mut last = others.pop().unwrap();
    last.write(head("GET /healthz", "", 0)).await;
    assert_eq!(last.answer().await.status, 200);
    service.publish("q", "a").await;
    assert_eq!(waits.answer().await.status, 200);
}

#[tokio::test]
async fn when_connections_run_out_those_of_others_make_way_for_none_of_who_has_most() {
    let service = Service::with(&["--max-connections", "20"]).await;
    let mut own = Raw::connect(&service).await;
    own.write(head("GET /healthz", "", 0)).await;
    assert_eq!(own.answer().await.status, 200);
    let mut others = Vec::new();
    for _ in 0..100 {
        others.push(Raw::connect_from(OTHER, &service).await);
    }
    assert!(others[0].is_closed().await && others[50].is_closed().await);
    own.write(head("GET /healthz", "", 0)).await;
    assert_eq!(own.answer().await.status, 200);
}

#[tokio::test]
async fn when_all_connections_wait_for_the_service_the_next_is_told_so() {
    let service = Service::with(&["--max-connections", "3"]).await;
    let mut waiting = Vec::new();
    let came = eventually("it is refused", async || {
        // One whose request has not come yet makes way: they are made one at a time, until all stay.
        if waiting.len() % 2 == 0 {
            // Of one client so many would not wait.
            let from = Ipv4Addr::new(127, 0, 1, u8::try_from(waiting.len() % 6).unwrap());
            waiting.push(Some(take(&service, from.into(), "5m").await));
            return None;
        }
        waiting.push(None);
        let mut raw = Raw::connect(&service).await;
        raw.write(head("GET /healthz", "", 0)).await;
        Some(raw.answer().await).filter(|came| came.status == 503)
    })
    .await;
    came.is_problem(503, "too_many_connections");
    assert!(came.head.contains("x-request-id: "), "{came:?}");
    assert!(came.head.contains("retry-after: "), "{came:?}");
    drop(waiting);
    eventually("there is room", async || {
        let mut raw = Raw::connect(&service).await;
        raw.write(head("GET /healthz", "", 0)).await;
        (raw.answer().await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_client_has_so_many_takes_waiting_and_others_do_not_notice() {
    let service = Service::with(&["--max-takes-per-client", "5"]).await;
    let mut waiting = join_all((0..5).map(|_| take(&service, OTHER, "5m"))).await;
    is_full(&service, OTHER).await;
    let refused = take(&service, OTHER, "5m").await.answer().await;
    refused.is_problem(429, "too_many_takes");
    assert!(refused.head.contains("retry-after: "), "{refused:?}");
    assert_eq!(take(&service, OTHER, "0s").await.answer().await.status, 204);
    let own = Ipv4Addr::LOCALHOST.into();
    // Long enough for the store to be asked, however busy the machine is.
    assert_eq!(take(&service, own, "2s").await.answer().await.status, 204);
    drop(waiting.pop());
    eventually("there is room again", async || {
        (take(&service, OTHER, "1ms").await.answer().await.status == 204).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_take_whose_client_sent_more_and_left_costs_a_job_nothing() {
    let service = Service::with(&["--max-takes-per-client", "1"]).await;
    for n in 0..3 {
        let mut raw = take(&service, OTHER, "5m").await;
        raw.write(head("GET /healthz", "", 0)).await;
        is_full(&service, OTHER).await;
        drop(raw);
        eventually("the take has ended", async || {
            (take(&service, OTHER, "1ms").await.answer().await.status == 204).then_some(())
        })
        .await;
        service.publish("q", &format!("job-{n}")).await;
        let job = service.take("q").await;
        assert_eq!((text(&job["id"]), &job["attempt"]), (format!("job-{n}"), &1.into()));
    }
}

#[tokio::test]
async fn who_writes_a_batch_of_lines_first_and_reads_its_answer_then_is_served() {
    let service = Service::start().await;
    let (lines, count) = ("{\"payload\":\"0123456789\"}\n".repeat(1_000), 60);
    let mut raw = Raw::connect(&service).await;
    raw.write(head(
        "POST /v1/queues/q/batch",
        &format!("{NDJSON}Connection: close\r\n"),
        (lines.len() * count) as u64,
    ))
    .await;
    for _ in 0..count {
        let written = tokio::time::timeout(Duration::from_secs(60), raw.try_write(lines.as_bytes())).await;
        assert!(matches!(written, Ok(Ok(()))), "it is not read on: {written:?}");
    }
    let said = raw.rest().await;
    assert_eq!(said.matches("\"status\":\"created\"").count(), 1_000 * count);
}

#[tokio::test]
async fn outcomes_that_nobody_reads_end_with_a_line_that_says_so() {
    let service = Service::with(&["--max-body-memory", "1MiB"]).await;
    let other = format!("{}\n", "x".repeat(99));
    let (jobs, others) = ("{\"payload\":0}\n".repeat(1_000), other.repeat(200_000));
    let lines = format!("{jobs}{others}{jobs}");
    unread(&service, &lines).await;
}

/// However much memory there is for bodies.
#[tokio::test]
async fn the_outcomes_of_a_request_that_nobody_reads_take_64_mib() {
    let service = Service::start().await;
    let (jobs, others) = ("{\"payload\":0}\n".repeat(1_000), "x\n".repeat(1_500_000));
    let lines = format!("{jobs}{others}{jobs}");
    let said = unread(&service, &lines).await;
    // What the sockets hold comes to it, and what frames the chunks.
    let length = said.len() >> 20;
    assert!((64..80).contains(&length), "{length} MiB");
}

/// What is said of lines, of which the first thousand are jobs, to a client that reads only when it has written: that the
/// last are not published.
async fn unread(service: &Service, lines: &str) -> String {
    let mut raw = Raw::connect_with_little_room(service).await;
    let headers = format!("{NDJSON}Connection: close\r\n");
    raw.write(head("POST /v1/queues/q/batch", &headers, lines.len() as u64)).await;
    raw.write(lines).await;
    let said = raw.rest().await;
    assert!(said.contains("\"code\":\"outcomes_unread\""), "{}", &said[said.len().saturating_sub(300)..]);
    assert_eq!(said.matches("\"status\":\"created\"").count(), 1_000);
    assert_eq!(service.sizes("q").await, [1_000, 0, 0, 0]);
    said
}

#[tokio::test]
async fn an_answer_that_is_not_read_is_given_up() {
    let service = Service::with(&["--body-timeout", "300ms", "--max-payload", "4MiB"]).await;
    for _ in 0..8 {
        assert_eq!(service.post("/v1/queues/q/jobs", vec![b'x'; 4 << 20]).await.status, 201);
    }
    let mut raw = Raw::connect(&service).await;
    raw.write(head("POST /v1/take?queue=q&count=8&lease=1s", "", 0)).await;
    eventually("the jobs are taken", async || (service.sizes("q").await[2] == 8).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let read = raw.rest().await.len();
    assert!(read < 32 << 20, "all {read} bytes of the answer were kept for it");
}

#[tokio::test]
async fn nobody_is_let_in_by_settings_that_cannot_be() {
    for (arguments, says) in [
        (["--head-timeout", "1ms"], "--head-timeout must be 100ms to 1d"),
        (["--body-timeout", "0s"], "--body-timeout must be"),
        (["--idle-timeout", "2d"], "--idle-timeout must be"),
        (["--max-body-memory", "1KiB"], "--max-body-memory must be 1MiB at least"),
        (["--max-memory", "1KiB"], "--max-memory must be 1MiB at least"),
        (["--max-connections", "0"], "--max-connections must be 1 at least"),
    ] {
        let refused = crate::service::bind(&arguments).await.err().unwrap();
        assert!(refused.to_string().contains(says), "{refused}");
        assert_eq!(refused.exit_code(), 2);
    }
}

#[tokio::test]
async fn bodies_of_every_kind_are_read_up_to_their_limits() {
    let service = Service::start().await;
    let answer = service.put("/v1/queues/q/config", "x".repeat((64 << 10) + 1)).await;
    answer.is_problem(413, "body_too_large", "over 64 KiB");
    let request = service.request(Method::POST, "/v1/queues/q/jobs").header("transfer-encoding", "chunked");
    let large = futures_util::stream::iter((0..2_000).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 1_000])));
    let answer = send(request.body(reqwest::Body::wrap_stream(large))).await;
    answer.is_problem(413, "payload_too_large", "over 1048576");
}

#[tokio::test]
async fn a_full_memory_takes_no_more_jobs_and_drains() {
    let service = Service::with(&["--max-memory", "1MiB", "--timeout", "1s"]).await;
    let mut state = 1_u64;
    let random: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    })
    .take(300 << 10)
    .collect();
    let full = eventually("it is full", async || {
        let answer = service.post("/v1/queues/q/jobs", random.clone()).await;
        (answer.status != 201).then_some(answer)
    })
    .await;
    assert_eq!(full.status, 503, "{full:?}");
    assert!(text(&full.json["detail"]).contains("out of memory: raise"), "{full:?}");
    let [ready, ..] = service.sizes("q").await;
    assert!((1..=3).contains(&ready), "{ready}");
    assert_eq!(service.put("/v1/queues/another/config", "{}").await.status, 200);
    for _ in 0..ready {
        let lease = service.lease("q").await;
        assert_eq!(service.post(&format!("/v1/leases/{lease}/ack"), "").await.status, 200);
    }
    assert_eq!(service.post("/v1/queues/q/jobs", random).await.status, 201);
}
