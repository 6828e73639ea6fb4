//! More connections than a process of its own is used to.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::select_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr};
use tokio::time::timeout;

use crate::eventually;
use crate::program::{DELAYLINE, clean};
use crate::raw::{Came, Raw};

const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// `delayline serve` in memory, in a process of its own.
struct Crowded {
    address: String,
    child: Child,
    _says: BufReader<ChildStderr>,
}

impl Crowded {
    /// With so many descriptors at most.
    async fn start(descriptors: u64, options: &str) -> Crowded {
        Crowded::limited(&format!("ulimit -n {descriptors}"), options).await
    }

    async fn limited(limits: &str, options: &str) -> Crowded {
        let mut command = clean("sh");
        let serve = format!("exec {DELAYLINE} serve --listen 127.0.0.1:0 --redis memory:// {options}");
        command.args(["-c", &format!("{limits} && {serve}")]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut says = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            let read = timeout(Duration::from_secs(60), says.read_line(&mut line)).await;
            assert!(read.is_ok_and(|read| read.unwrap() > 0), "it does not listen");
        }
        let address = line.split_once("http://").unwrap().1.split([',', '\u{1b}']).next().unwrap().to_owned();
        Crowded { address, child, _says: says }
    }

    async fn connect(&self, from: IpAddr) -> std::io::Result<Raw> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        socket.connect(self.address.parse().unwrap()).await.map(Raw)
    }

    async fn ask(&self, route: &str, body: &str) -> Option<(u16, Value)> {
        let mut raw = Raw(TcpStream::connect(&self.address).await.ok()?);
        let length = body.len();
        let request = format!(
            "{route} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        raw.try_write(request.as_bytes()).await.ok()?;
        let came = raw.rest().await;
        let (head, body) = came.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or_default()))
    }

    /// How much memory it has, in MiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        kib.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() >> 10
    }

    /// How long it has had a CPU, in hundredths of a second.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id().unwrap())).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

/// How many descriptors this process may have, which is raised to what the system allows.
fn descriptors() -> u64 {
    let before = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[tokio::test]
async fn it_takes_all_the_descriptors_that_the_system_lets_it_have() {
    let service = Crowded::limited("ulimit -n 512 && ulimit -S -n 128", "").await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.child.id().unwrap())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let [soft, hard] = [0, 1].map(|place| files.split_whitespace().nth(place).unwrap());
    assert_eq!((soft, hard), ("512", "512"));
}

#[tokio::test]
async fn who_meets_more_sockets_than_it_has_descriptors_goes_on_serving() {
    descriptors();
    // It is told that there may be more connections than the system lets it have.
    let mut service = Crowded::start(1_024, "--max-connections 20000").await;
    let mut sockets = Vec::new();
    for _ in 0..2_500 {
        sockets.push(service.connect(OTHER).await.unwrap());
    }
    for _ in 0..5 {
        eventually("it serves", async || (service.ask("GET /healthz", "").await?.0 == 200).then_some(()))
            .await;
    }
    let (before, length) = (service.ticks(), Duration::from_secs(2));
    // Nothing is to happen for a while, and is waited for here by nothing but time.
    assert!(timeout(length, service.child.wait()).await.is_err(), "it ended");
    let used = service.ticks() - before;
    assert!(used < 100, "{used} hundredths of a second of CPU in {length:?}, with nothing to do");
}

#[tokio::test]
async fn ten_thousand_takes_of_one_client_wait_those_of_others_are_served_and_the_memory_is_given_back() {
    const TAKES: u64 = 10_000;
    const AT_ONCE: u64 = 100;
    let most = descriptors();
    // The system has the last word; most let a process have a million.
    let takes = TAKES.min(most.saturating_sub(1_000) / 2);
    let service =
        Crowded::start(most, &format!("--max-connections {} --max-takes-per-client {takes}", 2 * takes))
            .await;
    let before = service.memory();
    let mut waiting = Vec::new();
    for n in 0..=takes {
        if n.is_multiple_of(AT_ONCE) {
            // Who connects is accepted in order: nobody waits for the system to ask the service again.
            assert_eq!(service.ask("GET /healthz", "").await.unwrap().0, 200);
        }
        let mut raw = service.connect(OTHER).await.unwrap();
        raw.write("POST /v1/take?queue=q&wait=5m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            .await;
        waiting.push(raw);
    }
    // There is one more than may wait.
    assert_eq!(first_answer(&mut waiting).await.status, 429);
    for n in 0..20 {
        let (status, _) =
            service.ask(&format!("POST /v1/queues/another/jobs?id=job-{n}"), "{}").await.unwrap();
        assert_eq!(status, 201);
        let (status, jobs) = service.ask("POST /v1/take?queue=another&wait=20s", "").await.unwrap();
        assert_eq!((status, &jobs["jobs"][0]["id"]), (200, &json!(format!("job-{n}"))));
    }
    let (status, _) = service.ask("POST /v1/queues/q/jobs?id=one", "{}").await.unwrap();
    assert_eq!(status, 201);
    assert_eq!(first_answer(&mut waiting).await.json["jobs"][0]["id"], "one");
    let crowded = service.memory();
    drop(waiting);
    let left = eventually("the memory is given back", async || {
        Some(service.memory()).filter(|memory| *memory < before + 64)
    });
    println!("{before} MiB before, {crowded} with {takes} takes, {} after", left.await);
}

/// What the first of them is told that is told anything; which one is served first was decided by the service's threads.
async fn first_answer(waiting: &mut Vec<Raw>) -> Came {
    let answers = select_all(waiting.iter().map(|raw| Box::pin(raw.0.readable())));
    let (_, first, _) = timeout(Duration::from_secs(60), answers).await.expect("one is answered");
    waiting.swap_remove(first).answer().await
}
