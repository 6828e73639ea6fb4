//! How fast jobs are pushed to a target that takes its time, how late, and what that takes of memory and CPU.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use delayline_tests::{Process, RedisServer, block_on, measure, until};
use delayline_tokio::{Client, QueueConfig};
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::quiet::quiet;

const JOBS: usize = 10_000;
const CONCURRENCY: u16 = 200;
const ANSWERS_AFTER: Duration = Duration::from_millis(50);
/// The target would take 4,000 a second. A pusher has far less than a CPU beside what else the machine does, so that few have
/// to be reached, and what counts is the CPU that each takes.
const LEAST: f64 = 500.0;
const MOST_CPU_US: u128 = 600;
/// Those of which lateness is measured come at this interval.
const EACH: Duration = Duration::from_millis(2);
const TIMED: usize = 2_000;
const MOST_KIB: u64 = 150 << 10;
const LONGEST: Duration = Duration::from_secs(120);

/// What a target has seen.
#[derive(Default)]
struct Seen {
    count: AtomicUsize,
    late_ms: Mutex<Vec<i64>>,
}

#[test]
fn jobs_are_pushed_as_fast_as_their_target_answers() {
    let _quiet = quiet();
    measure("10,000 pushes to a target that answers in 50 ms, 200 at once", pushed);
}

fn pushed() -> Result<String, String> {
    let server = RedisServer::plain();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let seen = Arc::new(Seen::default());
    let address = runtime.block_on(target(&seen));
    block_on(prepare(&server, address));
    let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
    command.args(["push", "--push-allow", "127.0.0.0/8", "--log-level", "warn", "--redis", &server.url()]);
    let pusher = Process::start(&mut command);
    until("the first job is pushed", LONGEST, || (seen.count.load(Ordering::Relaxed) > 0).then_some(()));
    let (begun, cpu) = (Instant::now(), pusher.cpu());
    until("all are pushed", LONGEST, || (seen.count.load(Ordering::Relaxed) == JOBS).then_some(()));
    let (took, cpu) = (begun.elapsed(), pusher.cpu().checked_sub(cpu).unwrap());
    let a_second = f64::from(u32::try_from(JOBS).expect("few")) / took.as_secs_f64();
    seen.late_ms.lock().expect("no panic").clear();
    block_on(publish_timed(&server));
    until("those that are timed are pushed", LONGEST, || {
        (seen.count.load(Ordering::Relaxed) == JOBS + TIMED).then_some(())
    });
    let mut late = seen.late_ms.lock().expect("no panic").clone();
    late.sort_unstable();
    let at = |percent: usize| late[(late.len() - 1) * percent / 100];
    let peak_kib = peak_kib(pusher.id());
    pusher.signal("TERM");
    block_on(audit(&server));
    let cpu_us = cpu.as_micros() / u128::try_from(JOBS).expect("few");
    let found = format!(
        "{a_second:.0} jobs/s, {cpu_us} µs of CPU a job in the pusher; at 500 jobs/s the target has them {} ms late at the median, \
         {} ms at the 99th percentile, {} ms at most; at most {} MiB",
        at(50),
        at(99),
        at(100),
        peak_kib >> 10
    );
    assert!(late[0] >= 0, "{} ms early", -late[0]);
    if a_second >= LEAST && cpu_us <= MOST_CPU_US && peak_kib < MOST_KIB { Ok(found) } else { Err(found) }
}

/// A server that answers each request after a while; it ends with its runtime.
async fn target(seen: &Arc<Seen>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move { answer(stream, &seen).await });
        }
    });
    address
}

async fn answer(stream: TcpStream, seen: &Seen) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        let (mut length, mut due) = (0, None);
        loop {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap_or(0),
                Some(("delayline-due", value)) => due = value.parse::<Timestamp>().ok(),
                None if line == "\r\n" => break,
                _ => {}
            }
        }
        stream.read_exact(&mut vec![0; length]).await?;
        if let Some(due) = due {
            let late = Timestamp::now().as_millisecond() - due.as_millisecond();
            seen.late_ms.lock().expect("no panic").push(late);
        }
        sleep(ANSWERS_AFTER).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
        seen.count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn prepare(server: &RedisServer, address: SocketAddr) {
    let client = Client::connect(&server.url()).await.expect("a client");
    let queue = client.bytes("pushed").expect("a name");
    let jobs = (0..JOBS).map(|n| queue.publish_bytes(format!("{{\"order\":{n}}}")));
    assert!(queue.publish_all(jobs).await.iter().all(Result::is_ok), "the jobs to be pushed");
    let push = format!("{{\"url\":\"http://{address}/jobs\",\"concurrency\":{CONCURRENCY}}}");
    queue
        .configure(QueueConfig { push: Some(push), ..QueueConfig::default() }, None)
        .await
        .expect("a config");
    client.close().await;
}

async fn publish_timed(server: &RedisServer) {
    let client = Client::connect(&server.url()).await.expect("a client");
    let queue = client.bytes("pushed").expect("a name");
    let first = SystemTime::now() + Duration::from_secs(3);
    let jobs =
        (0..TIMED).map(|n| queue.publish_bytes("{}").at(first + EACH * u32::try_from(n).expect("few")));
    assert!(queue.publish_all(jobs).await.iter().all(Result::is_ok), "the jobs to be timed");
    client.close().await;
}

/// Every job was pushed once, and is done.
async fn audit(server: &RedisServer) {
    let client = Client::connect(&server.url()).await.expect("a client");
    let queue = client.bytes("pushed").expect("a name");
    let begun = Instant::now();
    loop {
        let stats = queue.stats(0).await.expect("stats");
        if stats.counters.acked == (JOBS + TIMED) as u64 {
            assert_eq!((stats.ready, stats.delayed, stats.leased, stats.dead), (0, 0, 0, 0));
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{stats:?}");
        sleep(Duration::from_millis(10)).await;
    }
    client.close().await;
}

fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.split_whitespace().next());
    peak.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
