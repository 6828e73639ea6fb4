//! HTTP over TLS is as without it: what holds for connections in clear text holds for these.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::certificates::{Authority, Connect, Secure, Secured};
use crate::eventually;
use crate::program::clean;
use crate::raw::Raw;
use crate::service::text;

const TAKE: &str =
    "POST /v1/take?queue=q&wait=5m&lease=1h HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn a_life_of_a_job_over_one_connection() {
    let secured = Secured::with(&[]).await;
    let mut secure = secured.connect().await;
    assert_eq!(secure.ask("POST /v1/queues/q/jobs?id=a", "", "1").await.status, 201);
    let lease = text(&secure.ask("POST /v1/take?queue=q&wait=5s", "", "").await.json["jobs"][0]["lease"]);
    assert_eq!(secure.ask(&format!("POST /v1/leases/{lease}/ack"), "", "").await.status, 200);
    assert_eq!(secured.sizes("q").await, [0; 4]);
}

#[tokio::test]
async fn a_large_body_and_a_large_answer_go_through() {
    let secured = Secured::with(&["--max-payload", "4MiB"]).await;
    let mut secure = secured.connect().await;
    let payload = "x".repeat(4 << 20);
    assert_eq!(secure.ask("POST /v1/queues/q/jobs?id=a", "", &payload).await.status, 201);
    let came = secure.ask("POST /v1/take?queue=q", "", "").await;
    assert_eq!(came.json["jobs"][0]["payload"].as_str().map(str::len), Some(payload.len()));
}

#[tokio::test]
async fn curl_asks_by_either_version_of_tls_and_by_http_1_1() {
    let secured = Secured::with(&[]).await;
    let ca = crate::program::write(secured.folder.path(), "ca.pem", &secured.authority.pem());
    let port = secured.service.address().rsplit_once(':').unwrap().1;
    for version in ["1.2", "1.3"] {
        let mut curl = clean("curl");
        curl.args([
            "-sS",
            "--cacert",
            &ca,
            "--tls-max",
            version,
            "-w",
            " %{http_version} %{ssl_verify_result}",
        ]);
        let output = curl.arg(format!("https://localhost:{port}/healthz")).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "ok\n 1.1 0", "{version}: {output:?}");
    }
}

#[tokio::test]
async fn a_host_that_is_not_ours_and_a_page_of_another_site_are_refused_over_tls_too() {
    let secured = Secured::with(&[]).await;
    let address = secured.service.address();
    let mut secure = secured.connect().await;
    secure.write("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
    secure.answer().await.is_problem(421, "wrong_host");
    let mut secure = secured.connect().await;
    let came = secure.ask("POST /v1/queues/q/pause", "Origin: https://evil.example\r\n", "").await;
    came.is_problem(403, "cross_site");
    let mut secure = secured.connect().await;
    let own = format!("POST /v1/queues/q/jobs HTTP/1.1\r\nHost: {address}\r\nOrigin: https://{address}\r\n");
    secure.write(format!("{own}Content-Length: 1\r\n\r\n1")).await;
    assert_eq!(secure.answer().await.status, 201);
}

#[tokio::test]
async fn http_without_tls_is_told_so_and_what_is_neither_is_closed() {
    let secured = Secured::with(&[]).await;
    let mut raw = Raw::connect(&secured.service).await;
    let came = raw.ask("GET /healthz", "", "").await;
    came.is_problem(400, "tls_required");
    assert!(raw.is_closed().await);
    for nonsense in [&b"\0\0\0\0"[..], b"\x16\x03\x01\0\x05hello", b"\x80\x2e\x01\0\x02"] {
        let mut raw = Raw::connect(&secured.service).await;
        raw.write(nonsense).await;
        // It may be told by an alert of TLS, and then it is over.
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(20), raw.0.read_to_end(&mut rest))
            .await
            .expect("it stays open");
        assert!(rest.first().is_none_or(|first| *first == 21), "{rest:?}");
    }
    assert_eq!(secured.connect().await.ask("GET /healthz", "", "").await.status, 200);
}

/// A client's first message of TLS, as it is sent.
async fn client_hello() -> Vec<u8> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let connecting = tokio::spawn(async move { Authority::new().client(None).over(tcp).await.map(drop) });
    let mut hello = vec![0; 16 << 10];
    let length = listener.accept().await.unwrap().0.read(&mut hello).await.unwrap();
    assert!(connecting.await.unwrap().is_err());
    hello.truncate(length);
    hello
}

#[tokio::test]
async fn a_handshake_must_end_in_time_however_slowly_it_trickles() {
    let secured = Secured::with(&["--head-timeout", "500ms"]).await;
    let hello = client_hello().await;
    for sent in [0, 1, hello.len() / 2] {
        let mut raw = Raw::connect(&secured.service).await;
        let begun = Instant::now();
        raw.write(&hello[..sent]).await;
        assert!(raw.is_closed().await, "{sent} bytes");
        assert!(begun.elapsed() >= Duration::from_millis(500), "{sent} bytes");
    }
    let raw = Raw::connect(&secured.service).await;
    let (mut read, mut write) = raw.0.into_split();
    let trickle = tokio::spawn(async move {
        let mut hello = hello.into_iter();
        while write.write_all(&[hello.next().unwrap()]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut rest = Vec::new();
    let _ = read.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
    trickle.await.unwrap();
}

#[tokio::test]
async fn connections_that_stall_in_the_handshake_count_and_make_way() {
    let secured = Secured::with(&["--max-connections", "20"]).await;
    let hello = client_hello().await;
    let mut stalled = Vec::new();
    for n in 0..100 {
        let mut raw = Raw::connect(&secured.service).await;
        raw.write(&hello[..n % 2 * 10]).await;
        stalled.push(raw);
    }
    assert!(stalled[0].is_closed().await && stalled[51].is_closed().await);
    assert_eq!(secured.connect().await.ask("GET /healthz", "", "").await.status, 200);
}

#[tokio::test]
async fn a_connection_may_be_idle_as_long_as_without_tls_and_no_longer() {
    let secured = Secured::with(&["--idle-timeout", "2s", "--head-timeout", "200ms"]).await;
    let mut secure = secured.connect().await;
    let mut idle = secured.connect().await;
    // Longer than a head may take: none has begun.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(secure.ask("GET /healthz", "", "").await.status, 200);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(secure.ask("GET /healthz", "", "").await.status, 200);
    assert!(idle.is_closed().await && secure.is_closed().await);
}

#[tokio::test]
async fn a_head_that_trickles_is_given_up_within_its_time() {
    let secured = Secured::with(&["--head-timeout", "500ms"]).await;
    let mut secure = secured.connect().await;
    secure.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n").await;
    let (mut read, mut write) = tokio::io::split(secure.0);
    let trickle = tokio::spawn(async move {
        while write.write_all(b"x: y\r\n").await.is_ok() && write.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut rest = Vec::new();
    let _ = read.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
    trickle.await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_costs_its_job_nothing() {
    let secured = Secured::with(&[]).await;
    for (n, how) in ["says so", "says nothing", "has asked for more"].into_iter().cycle().take(9).enumerate()
    {
        let mut secure = secured.connect().await;
        secure.write(TAKE).await;
        if how == "has asked for more" {
            secure.write(TAKE).await;
        }
        assert_eq!(secured.connect().await.ask("GET /healthz", "", "").await.status, 200);
        if how == "says nothing" {
            // No alert: the connection alone is closed.
            secure.0.get_mut().0.shutdown().await.unwrap();
        } else {
            secure.0.shutdown().await.unwrap();
        }
        assert_eq!(secured.connect().await.ask("GET /healthz", "", "").await.status, 200);
        secured.publish("q", &format!("job-{n}")).await;
        assert_eq!(secured.take("q").await, (format!("job-{n}"), 1), "{how}");
    }
}

/// Until there is something for a client to read.
async fn is_answered(secure: &Secure) {
    secure.0.get_ref().0.readable().await.unwrap();
}

#[tokio::test]
async fn an_answer_that_a_client_broke_off_before_reading_it_gives_its_job_back() {
    let secured = Secured::with(&[]).await;
    for n in 0..6 {
        let mut secure = secured.connect().await;
        // What came with the handshake is read, so that only the answer is to be read.
        assert_eq!(secure.ask("GET /healthz", "", "").await.status, 200);
        let id = format!("job-{n}");
        secured.publish("q", &id).await;
        secure.write(TAKE.repeat(2)).await;
        is_answered(&secure).await;
        assert_eq!(secured.sizes("q").await[2], n + 1);
        // With the answer unread, the system resets the connection; half of them have said before that they leave.
        if n % 2 == 0 {
            secure.0.get_mut().1.send_close_notify();
            secure.0.flush().await.unwrap();
        }
        drop(secure);
        assert_eq!(secured.take("q").await, (id, 1));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_written_whole_gives_its_jobs_back() {
    let secured = Secured::with(&["--max-payload", "4MiB"]).await;
    let payload = "x".repeat(4 << 20);
    for n in 0..8 {
        let came =
            secured.connect().await.ask(&format!("POST /v1/queues/q/jobs?id=job-{n}"), "", &payload).await;
        assert_eq!(came.status, 201);
    }
    let raw = Raw::connect_with_little_room(&secured.service).await;
    let mut secure = secured.authority.client(None).over(raw.0).await.unwrap();
    let take = TAKE.replace("wait=5m", "count=8");
    secure.write(take).await;
    eventually("the jobs are taken", async || (secured.sizes("q").await[2] == 8).then_some(())).await;
    drop(secure);
    eventually("they are given back", async || (secured.sizes("q").await == [8, 0, 0, 0]).then_some(()))
        .await;
    assert_eq!(secured.take("q").await, ("job-0".to_owned(), 1));
}

#[tokio::test]
async fn an_answer_that_is_not_read_is_given_up() {
    let secured = Secured::with(&["--body-timeout", "300ms", "--max-payload", "4MiB"]).await;
    let payload = "x".repeat(4 << 20);
    for _ in 0..8 {
        assert_eq!(secured.connect().await.ask("POST /v1/queues/q/jobs", "", &payload).await.status, 201);
    }
    let raw = Raw::connect_with_little_room(&secured.service).await;
    let mut secure = secured.authority.client(None).over(raw.0).await.unwrap();
    secure.write(TAKE.replace("wait=5m", "count=8")).await;
    // Once it is given up, what was not written goes to others.
    eventually("the answer is given up", async || (secured.sizes("q").await == [8, 0, 0, 0]).then_some(()))
        .await;
}

#[tokio::test]
async fn a_stop_lets_requests_end_and_waits_for_no_handshake() {
    let secured = Secured::with(&[]).await;
    let stalled = Raw::connect(&secured.service).await;
    let (mut idle, mut waits) = (secured.connect().await, secured.connect().await);
    assert_eq!(idle.ask("GET /healthz", "", "").await.status, 200);
    waits.write(TAKE).await;
    assert_eq!(secured.connect().await.ask("GET /healthz", "", "").await.status, 200);
    let begun = Instant::now();
    secured.service.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(waits.answer().await.status, 204);
    assert!(waits.is_closed().await && idle.is_closed().await);
    drop(stalled);
}

#[tokio::test]
async fn only_clients_with_a_certificate_of_the_authority_are_let_in() {
    let (folder, clients, others) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let ca = crate::program::write(folder.path(), "ca.pem", &clients.pem());
    // Whoever has to show a certificate may reach it from elsewhere.
    let listen = ["--listen", "0.0.0.0:0", "--client-ca", &ca];
    let secured = Secured::with(&listen).await;
    let port = secured.service.address().rsplit_once(':').unwrap().1.parse().unwrap();
    let ask = async |identity: Option<_>| -> std::io::Result<u16> {
        let tcp = TcpStream::connect(("127.0.0.1", port)).await?;
        let mut secure = secured.authority.client(identity).over(tcp).await?;
        secure.try_write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let mut answer = [0; 12];
        secure.0.read_exact(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer[9..]).parse().unwrap())
    };
    let (right, foreign) = (clients.issue(), others.issue());
    assert_eq!(ask(Some(&right)).await.unwrap(), 200);
    for wrong in [None, Some(&foreign)] {
        let refused = ask(wrong).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(ask(Some(&right)).await.unwrap(), 200);
}

#[tokio::test]
async fn without_a_certificate_of_clients_tls_alone_lets_nobody_in_from_elsewhere() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let [certificate, key] = authority.issue().write(folder.path());
    let arguments = ["--listen", "0.0.0.0:0", "--tls-cert", &certificate, "--tls-key", &key];
    let refused = crate::service::bind(&arguments).await.err().unwrap();
    assert!(refused.to_string().contains("--insecure"), "{refused}");
}
