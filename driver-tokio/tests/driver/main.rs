//! The driver against the embedded store and against a real Redis that each test spawns.

mod connecting;
mod outages;
mod scenarios;
mod server;

use std::time::{Duration, Instant};

/// Asks until the answer is yes, for 20 s at most.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(20), "still not so after 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}
