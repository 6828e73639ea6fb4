//! What a large body takes of the service's memory, in a process of its own: the most it ever had beside what it had before.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use delayline_tests::attack::Target;
use delayline_tests::{Http, measure, report};

use crate::quiet::quiet;

/// The largest body of JSON.
const BODY: usize = 16 << 20;
/// How often a body may be there at once, with all that is made of it.
const MOST: u64 = 3;
/// What is for connections and the like.
const SPARE_KIB: u64 = 2 << 10;

#[test]
fn a_large_body_takes_at_most_three_times_its_length() {
    let _quiet = quiet();
    let payload = "x".repeat(15 << 10);
    let batch = array(1_000, |n| format!("{{\"id\":\"job-{n}\",\"payload\":\"{payload}\"}}"));
    let lease = "MSBnb29kIDE3OTUzMjc2NzQ3NzU1OTYgOTcwIFA3MHJaU0RRc2JxS1JK";
    let reason = "x".repeat(15 << 10);
    let settle =
        array(1_000, |_| format!("{{\"lease\":\"{lease}\",\"verdict\":\"bury\",\"reason\":\"{reason}\"}}"));
    let ids = format!("{{\"ids\":{}}}", array(1_000, |n| format!("\"{n}{}\"", " ".repeat(15 << 10))));
    let zeros = format!("[0{}]", ",0".repeat((BODY - 3) / 2));
    let spaces = format!("[{}]", " ".repeat(BODY - 2));
    let kinds = [("full", None), ("zeros", Some(&zeros)), ("spaces", Some(&spaces))];
    for (kind, body) in kinds {
        for (path, full) in [
            ("/v1/queues/q/batch", &batch),
            ("/v1/leases/settle", &settle),
            ("/v1/queues/q/dead/purge", &ids),
        ] {
            measure("the memory of a body", || of(kind, path, body.unwrap_or(full)));
        }
    }
}

fn array(count: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..count).map(item).collect::<Vec<_>>().join(","))
}

fn of(kind: &str, path: &str, body: &str) -> Result<String, String> {
    let target = Target::start(&PathBuf::from(env!("CARGO_BIN_EXE_service")), 1_024);
    let http = Http::new(target.address());
    // What is made once is not of the body.
    for _ in 0..20 {
        http.ask("POST", path, "application/json", "[]");
        http.ask("POST", "/v1/queues/q/batch", "application/json", "[{\"payload\":1}]");
    }
    let before = target.state().kib;
    fs::write(format!("/proc/{}/clear_refs", target.id()), "5").expect("the mark is set back");
    let status = post(target.address(), path, body);
    let took = target.most_kib().saturating_sub(before);
    let found = format!("{path}, {kind}: {took} KiB for {} KiB, answered {status}", body.len() >> 10);
    report(&found);
    let most = MOST * (body.len() as u64 >> 10) + SPARE_KIB;
    if took <= most { Ok(found) } else { Err(found) }
}

/// Answers the status line; a body that is refused is not sent to its end.
fn post(to: SocketAddr, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("the head is sent");
    let _ = stream.write_all(body.as_bytes());
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned()
}
