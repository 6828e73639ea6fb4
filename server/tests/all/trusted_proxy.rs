//! For whom a proxy asks.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::program::delayline;
use crate::raw::Raw;
use crate::service::Service;

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// How often one is answered before it is refused, of ten times.
async fn answered(service: &Service, from: IpAddr, headers: &str) -> usize {
    let mut answered = 0;
    for _ in 0..10 {
        let came = Raw::connect_from(from, service).await.ask("GET /v1/queues", headers, "").await;
        match came.status {
            200 => answered += 1,
            _ => came.is_problem(429, "too_many_requests"),
        }
    }
    answered
}

fn forwarded_for(client: &str) -> String {
    format!("X-Forwarded-For: 192.0.2.66, {client}\r\n")
}

#[tokio::test]
async fn each_client_of_a_proxy_has_limits_of_its_own() {
    let limits = ["--trusted-proxy", "127.0.0.2", "--client-requests", "1/s burst 3"];
    let service = Service::with(&limits).await;
    for client in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
        let count = answered(&service, PROXY, &forwarded_for(client)).await;
        assert!((3..10).contains(&count), "{client}: {count}");
    }
    // Of one network of IPv6.
    assert!(answered(&service, PROXY, &forwarded_for("2001:db8::2")).await < 3);
}

#[tokio::test]
async fn what_others_say_of_whom_they_ask_for_is_ignored() {
    let limits = ["--trusted-proxy", "127.0.0.2", "--client-requests", "1/s burst 3"];
    let service = Service::with(&limits).await;
    let stranger = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
    let mut all = 0;
    for n in 0..20 {
        let forged = format!("{}Forwarded: for=192.0.2.{n}\r\n", forwarded_for(&format!("192.0.2.{n}")));
        all += answered(&service, stranger, &forged).await;
    }
    assert!((3..30).contains(&all), "{all}");
    // A client of a proxy that sets one header may send the other.
    let mut all = 0;
    for n in 0..20 {
        let forged = format!("{}Forwarded: for=192.0.2.{n}\r\n", forwarded_for("192.0.2.77"));
        all += answered(&service, PROXY, &forged).await;
    }
    assert!((3..30).contains(&all), "{all}");
}

#[tokio::test]
async fn takes_of_each_client_of_a_proxy_wait_beside_each_other() {
    let limits =
        ["--trusted-proxy", "127.0.0.0/8", "--max-takes-per-client", "1", "--proxy-header", "forwarded"];
    let service = Service::with(&limits).await;
    let mut waiting = Vec::new();
    for n in 0..5 {
        let mut raw = Raw::connect_from(PROXY, &service).await;
        let headers = format!("Host: localhost\r\nForwarded: for=192.0.2.{n}\r\n");
        raw.write(format!("POST /v1/take?queue=q&wait=5m HTTP/1.1\r\n{headers}Content-Length: 0\r\n\r\n"))
            .await;
        waiting.push(raw);
    }
    crate::eventually("a second one of the first client is refused", async || {
        let mut raw = Raw::connect_from(PROXY, &service).await;
        let came = raw.ask("POST /v1/take?queue=q&wait=1ms", "Forwarded: for=192.0.2.0\r\n", "").await;
        (came.status == 429).then_some(())
    })
    .await;
    for n in 0..5 {
        service.publish("q", &format!("job-{n}")).await;
    }
    for raw in &mut waiting {
        assert_eq!(raw.answer().await.status, 200);
    }
}

#[tokio::test]
async fn the_access_log_tells_for_whom_a_request_is_made() {
    let words = ["serve", "--listen", "127.0.0.1:0", "--access-log", "--trusted-proxy", "127.0.0.1"];
    let mut child = delayline(None, &words);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut line_with = async |text: &str| loop {
        let line = lines.next_line().await.unwrap().expect("it ended");
        if line.contains(text) {
            break line;
        }
    };
    let line = line_with("listening on http://").await;
    let address = line.split_once("http://").unwrap().1.split_once(',').unwrap().0.to_owned();
    for (headers, client) in
        [(forwarded_for("192.0.2.1"), "client=192.0.2.1"), (String::new(), "client=127.0.0.1")]
    {
        let mut raw = Raw(tokio::net::TcpStream::connect(&address).await.unwrap());
        assert_eq!(raw.ask("GET /healthz", &headers, "").await.status, 200);
        let line = line_with("a request was answered").await;
        assert!(line.contains(client), "{line}");
    }
}
