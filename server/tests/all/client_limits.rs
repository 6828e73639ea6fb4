//! What one client may ask, and that others do not notice.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use crate::eventually;
use crate::raw::{Came, Raw};
use crate::service::Service;

const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const CHUNKED: &str =
    "POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";

fn retry_after(came: &Came) -> u64 {
    let seconds = came.head.lines().find_map(|line| line.strip_prefix("retry-after: "));
    seconds.unwrap_or_else(|| panic!("{came:?}")).parse().unwrap()
}

#[tokio::test]
async fn requests_beyond_the_rate_are_refused_until_it_is_time() {
    let service = Service::with(&["--client-requests", "1/s burst 5"]).await;
    let mut raw = Raw::connect_from(OTHER, &service).await;
    let mut answered = 0;
    let refused = loop {
        let came = raw.ask("POST /v1/queues/q/jobs", "", "1").await;
        match came.status {
            201 => answered += 1,
            _ => break came,
        }
    };
    assert!((5..15).contains(&answered), "{answered}");
    refused.is_problem(429, "too_many_requests");
    assert_eq!(retry_after(&refused), 1);
    assert!(refused.json["detail"].as_str().unwrap().contains("--client-requests"), "{refused:?}");
    // Whoever watches over the service, and others.
    assert_eq!(raw.ask("GET /healthz", "", "").await.status, 200);
    assert_eq!(raw.ask("GET /readyz", "", "").await.status, 200);
    assert_eq!(Raw::connect(&service).await.ask("GET /v1/queues", "", "").await.status, 200);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(raw.ask("GET /v1/queues", "", "").await.status, 200);
}

#[tokio::test]
async fn bytes_beyond_the_rate_are_refused_before_they_are_read() {
    let service = Service::with(&["--client-body-bytes", "1KiB/s burst 64KiB"]).await;
    let mut raw = Raw::connect_from(OTHER, &service).await;
    // More than the burst at once: it passes, and is paid for.
    assert_eq!(raw.ask("POST /v1/queues/q/jobs", "", &"x".repeat(100 << 10)).await.status, 201);
    let mut refused = Raw::connect_from(OTHER, &service).await;
    refused
        .write("POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
        .await;
    let came = refused.answer().await;
    came.is_problem(429, "too_many_bytes");
    assert!(retry_after(&came) >= 30, "{came:?}");
    let mut reader = Raw::connect_from(OTHER, &service).await;
    // Even one without a body waits until it is paid for.
    reader.ask("GET /v1/queues", "", "").await.is_problem(429, "too_many_bytes");
    let mut own = Raw::connect(&service).await;
    assert_eq!(own.ask("POST /v1/queues/q/jobs", "", "1").await.status, 201);
}

#[tokio::test]
async fn bytes_whose_number_is_not_said_count_as_they_come() {
    let service = Service::with(&["--client-body-bytes", "1KiB/s burst 64KiB"]).await;
    let mut raw = Raw::connect_from(OTHER, &service).await;
    raw.write(format!("{CHUNKED}20000\r\n{}\r\n0\r\n\r\n", "x".repeat(0x20000))).await;
    assert_eq!(raw.answer().await.status, 201);
    raw.write(format!("{CHUNKED}1\r\nx\r\n0\r\n\r\n")).await;
    raw.answer().await.is_problem(429, "too_many_bytes");
}

#[tokio::test]
async fn a_large_body_that_is_refused_does_not_hide_why() {
    let service = Service::with(&["--client-requests", "1/s burst 1"]).await;
    let mut raw = Raw::connect_from(OTHER, &service).await;
    assert_eq!(raw.ask("GET /v1/queues", "", "").await.status, 200);
    // Written whole before the answer is read.
    let body = vec![b'x'; 1 << 20];
    let mut refused = Raw::connect_from(OTHER, &service).await;
    refused
        .write(format!(
            "POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    refused.write(&body).await;
    refused.answer().await.is_problem(429, "too_many_requests");
}

#[tokio::test]
async fn connections_beyond_a_clients_share_are_told_so_and_others_are_served() {
    let service = Service::with(&["--max-connections-per-client", "3"]).await;
    let mut own = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::connect_from(OTHER, &service).await;
        assert_eq!(raw.ask("GET /healthz", "", "").await.status, 200);
        own.push(raw);
    }
    for _ in 0..5 {
        let mut refused = Raw::connect_from(OTHER, &service).await;
        let came = refused.ask("GET /healthz", "", "").await;
        came.is_problem(503, "too_many_connections_of_client");
        assert_eq!(retry_after(&came), 1);
        assert!(refused.is_closed().await);
    }
    assert_eq!(Raw::connect(&service).await.ask("GET /healthz", "", "").await.status, 200);
    for raw in &mut own {
        assert_eq!(raw.ask("GET /healthz", "", "").await.status, 200);
    }
    drop(own.pop());
    eventually("there is room again", async || {
        let came = Raw::connect_from(OTHER, &service).await.ask("GET /healthz", "", "").await;
        (came.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_trusted_proxy_has_as_many_connections_as_it_needs() {
    let limits = ["--max-connections-per-client", "1", "--trusted-proxy", "127.0.0.2/32"];
    let service = Service::with(&limits).await;
    let mut proxy = Vec::new();
    for _ in 0..5 {
        let mut raw = Raw::connect_from(OTHER, &service).await;
        assert_eq!(raw.ask("GET /healthz", "", "").await.status, 200);
        proxy.push(raw);
    }
}

#[tokio::test]
async fn a_body_that_drips_is_given_up_though_it_never_stops_for_long() {
    let service = Service::with(&["--body-timeout", "1s", "--min-body-rate", "1KiB/s"]).await;
    let mut raw = Raw::connect(&service).await;
    raw.write("POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n").await;
    let (mut read, mut write) = raw.0.into_split();
    let begun = Instant::now();
    let drip = tokio::spawn(async move {
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut answer = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer).await;
    let said = String::from_utf8_lossy(&answer);
    assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("\"code\":\"body_timeout\""), "{said}");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    drip.await.unwrap();
}

#[tokio::test]
async fn rates_that_cannot_be_are_refused() {
    for (option, wrong) in [
        ("--client-requests", "100"),
        ("--client-requests", "0/s"),
        ("--client-body-bytes", "1MiB"),
        ("--min-body-rate", "1KiB"),
        ("--trusted-proxy", "proxy.example"),
        ("--proxy-header", "x-real-ip"),
    ] {
        let output = crate::program::delayline(None, &["serve", option, wrong]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{option} {wrong}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(wrong), "{output:?}");
    }
}
