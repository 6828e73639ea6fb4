use std::process::Stdio;
use std::time::Duration;

use reqwest::Client;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::program::{delayline, signal};
use crate::redis_server::RedisServer;

/// Starts it, and reads on stderr where it listens.
async fn started(mut command: Command) -> (Child, String) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let address = async {
        loop {
            let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("it ended: {said}"));
            if let Some((_, rest)) = line.split_once("listening on http://") {
                return rest.split_once(", commands go to ").unwrap().0.to_string();
            }
            said.push_str(&line);
        }
    };
    let address = timeout(Duration::from_secs(30), address).await.expect("it does not listen");
    (child, address)
}

async fn pong(address: &str) {
    let answer = Client::new().get(format!("http://{address}/ping")).bearer_auth("from-env").send().await;
    assert_eq!(answer.unwrap().text().await.unwrap(), r#"{"result":"PONG"}"#);
}

#[tokio::test]
async fn it_says_where_it_listens_and_stops_when_told() {
    let redis = RedisServer::start(&[]).await;
    let mut rest = delayline(Some(&redis), &["rest"]);
    rest.env("DELAYLINE_REST_TOKEN", "from-env").env("DELAYLINE_REST_LISTEN", "127.0.0.1:0");
    let (mut child, address) = started(rest).await;
    assert!(!address.ends_with(":0"), "{address}");
    pong(&address).await;
    signal("-TERM", &child).await;
    assert!(child.wait().await.unwrap().success());
}

/// The most memory that a process has had, in bytes.
#[cfg(target_os = "linux")]
fn peak(process: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id().unwrap())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_request_takes_at_most_three_times_its_size() {
    const SIZE: usize = 10_000_000;
    const BESIDE: usize = 6 << 20;
    let redis = RedisServer::start(&[]).await;
    let repeated = |one: &str| vec![one; SIZE / (one.len() + 1)].join(",");
    let words = |many: usize| vec![format!("\"{}\"", "x".repeat(95)); many].join(",");
    let long = "x".repeat(SIZE / 9_000);
    for (what, path, body) in [
        ("a value in a body", "/set/k", "x".repeat(SIZE)),
        ("a value in JSON", "/", format!("[\"SET\",\"k\",\"{}\"]", "x".repeat(SIZE))),
        ("many commands", "/pipeline", format!("[{}]", repeated(r#"["A"]"#))),
        ("empty commands", "/pipeline", format!("[{}]", repeated("[]"))),
        ("many words", "/", format!("[{}]", repeated("1"))),
        ("as many words as may be", "/", format!("[\"ECHO\",{}]", words(99_999))),
        (
            "the same behind another command",
            "/pipeline",
            format!("[[\"PING\"],[\"ECHO\",{}]]", words(99_998)),
        ),
        (
            "a transaction of long values",
            "/multi-exec",
            format!("[{}]", vec![format!("[\"SET\",\"k\",\"{long}\"]"); 8_000].join(",")),
        ),
        ("no end", "/pipeline", "[".repeat(SIZE)),
    ] {
        let mut rest = delayline(Some(&redis), &["rest", "--listen", "127.0.0.1:0"]);
        rest.env("DELAYLINE_REST_TOKEN", "from-env");
        let (child, address) = started(rest).await;
        pong(&address).await;
        let before = peak(&child);
        let http = Client::new();
        let size = body.len();
        let asked = http.post(format!("http://{address}{path}")).bearer_auth("from-env").body(body).send();
        // The answer is of Redis's making.
        drop(asked.await.unwrap());
        let grown = peak(&child) - before;
        println!("{what}: {size} bytes, {grown} more at most");
        assert!(grown <= 3 * size + BESIDE, "{what}: {size} bytes, {grown} more at most");
    }
}

#[tokio::test]
async fn it_needs_a_token() {
    let redis = RedisServer::start(&[]).await;
    for words in [&["rest"][..], &["rest", "--token", ""], &["rest", "--token", "a b"]] {
        let mut command = delayline(Some(&redis), words);
        let output = command.env("DELAYLINE_REST_TOKEN", "").output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--token <TOKEN>"), "{output:?}");
    }
    let help = delayline(None, &["rest", "--help"]).env("DELAYLINE_REST_TOKEN", "hidden-one").output().await;
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    assert!(help.contains("--token") && !help.contains("hidden-one") && !help.contains("faults"), "{help}");
}

#[tokio::test]
async fn it_speaks_tls_with_redis() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (key, cert) = (file("key.pem"), file("cert.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &key, "-out", &cert])
        .output()
        .await
        .unwrap_or_else(|error| panic!("this test needs openssl ({error}): apt-get install openssl"));
    assert!(made.status.success(), "{made:?}");
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port().to_string();
    // The system may have given the same port of another address away.
    let place = ["--bind", "127.0.0.1", "--tls-port", &port];
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let _redis = RedisServer::start(&[&place[..], &files].concat()).await;
    let url = format!("rediss://localhost:{port}/");
    let words = ["rest", "--redis", &url, "--listen", "127.0.0.1:0", "--token", "from-env"];
    let mut rest = delayline(None, &words);
    rest.env("SSL_CERT_FILE", &cert);
    let (_child, address) = started(rest).await;
    pong(&address).await;
    let stranger =
        delayline(None, &[&words[..], &["--connect-timeout", "0s"]].concat()).output().await.unwrap();
    assert_eq!(stranger.status.code(), Some(3), "{stranger:?}");
}
