//! A process whose publishers outrun Redis while all its worker's slots are busy; it prints what that took.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use delayline_tests::Flood;
use delayline_tokio::{Client, Error, Worker};
use tokio::sync::watch;

const SLOTS: u16 = 1_000;
const CALLERS: usize = 10_000;
const BODY: usize = 2_048;

#[derive(Default)]
struct Counts {
    published: AtomicU64,
    refused: AtomicU64,
    busy: AtomicU64,
    longest_ms: AtomicU64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, seconds] = &args[..] else {
        eprintln!("usage: flood URL SECONDS");
        return ExitCode::from(2);
    };
    let seconds = seconds.parse().expect("a number of seconds");
    match flood(url, Duration::from_secs(seconds)).await {
        Ok(flood) => {
            println!("{flood}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("flood: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn flood(url: &str, length: Duration) -> Result<Flood, Error> {
    let client = Client::builder().timeout(length * 2).connect(url).await?;
    let (held, flooded) = (client.bytes("held")?, client.bytes("flooded")?);
    let counts = Arc::new(Counts::default());
    let (stop, stopped) = watch::channel(false);

    let (busy, release) = (counts.clone(), stopped.clone());
    let worker =
        Worker::new(&client).concurrency(SLOTS).grace(Duration::from_secs(60)).queue(&held, move || {
            busy.busy.fetch_add(1, Ordering::Relaxed);
            let mut release = release.clone();
            async move { drop(release.wait_for(|stop| *stop).await) }
        });
    let mut ending = stopped.clone();
    let working = tokio::spawn(worker.run_until(async move { drop(ending.wait_for(|stop| *stop).await) }));
    let body = Bytes::from(vec![b'x'; BODY]);
    for published in held.publish_all((0..SLOTS).map(|_| held.publish(&body))).await {
        published?;
    }
    while counts.busy.load(Ordering::Relaxed) < SLOTS.into() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let begun = Instant::now();
    let callers = (0..CALLERS).map(|_| {
        let (queue, body, counts) = (flooded.clone(), body.clone(), counts.clone());
        tokio::spawn(async move {
            while begun.elapsed() < length {
                let called = Instant::now();
                let outcome = queue.publish(&body).delay(Duration::from_secs(86_400)).await;
                let counter = if outcome.is_ok() { &counts.published } else { &counts.refused };
                counter.fetch_add(1, Ordering::Relaxed);
                let ms = u64::try_from(called.elapsed().as_millis()).unwrap_or(u64::MAX);
                counts.longest_ms.fetch_max(ms, Ordering::Relaxed);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
    stop.send_replace(true);
    working.await.expect("no panic")?;
    client.close().await;
    Ok(Flood {
        published: counts.published.load(Ordering::Relaxed),
        refused: counts.refused.load(Ordering::Relaxed),
        ran: counts.busy.load(Ordering::Relaxed),
        longest_ms: counts.longest_ms.load(Ordering::Relaxed),
        peak_kib: peak_kib(),
    })
}

/// The most memory the process has had, as Linux counts it; 0 elsewhere.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
