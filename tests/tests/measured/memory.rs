//! What a process takes of memory when its publishers outrun Redis and its worker's slots are all busy.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use delayline_tests::{Flood, RedisServer, block_on, measure};
use delayline_tokio::Client;

use crate::quiet::quiet;

const SECONDS: u64 = 60;
const MOST_KIB: u64 = 200 << 10;
/// Redis answers a tenth of the time.
const AWAKE: Duration = Duration::from_millis(50);
const ASLEEP_MS: u64 = 450;

#[test]
fn callers_wait_and_nothing_is_lost_when_publishers_outrun_redis() {
    let _quiet = quiet();
    measure("publishers that outrun Redis", flooded);
}

fn flooded() -> Result<String, String> {
    let server = RedisServer::plain();
    let is_over = AtomicBool::new(false);
    let flood = thread::scope(|scope| {
        scope.spawn(|| slow_down(&server, &is_over));
        let mut command = Command::new(env!("CARGO_BIN_EXE_flood"));
        let command = command.args([server.url(), SECONDS.to_string()]).stderr(Stdio::inherit());
        let output = command.output().expect("the flood runs");
        is_over.store(true, Ordering::Relaxed);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).expect("text");
        said.parse::<Flood>().unwrap_or_else(|error| panic!("{error}"))
    });
    let waiting = block_on(async {
        let client = Client::connect(&server.url()).await.expect("a client");
        let stats = client.bytes("flooded").expect("a name").stats(0).await.expect("stats");
        assert_eq!((stats.counters.published, stats.leased, stats.dead), (stats.delayed, 0, 0));
        stats.delayed
    });
    let found = format!(
        "{} published by 10,000 callers in {SECONDS} s on a Redis that answers a tenth of the time, {} refused; the longest \
         wait {} ms; at most {} MiB",
        flood.published,
        flood.refused,
        flood.longest_ms,
        flood.peak_kib >> 10
    );
    assert_eq!((flood.published, flood.refused), (waiting, 0), "accepted, and kept");
    assert_eq!(flood.ran, 1_000, "each slot was busy once, for the whole time");
    assert!(flood.peak_kib < MOST_KIB, "{} KiB", flood.peak_kib);
    // Callers waited, for each other too.
    if flood.published > 10_000 && flood.longest_ms > 1_000 { Ok(found) } else { Err(found) }
}

fn slow_down(server: &RedisServer, is_over: &AtomicBool) {
    let mut connection = server.connect();
    while !is_over.load(Ordering::Relaxed) {
        connection.ask(&["CLIENT", "PAUSE", &ASLEEP_MS.to_string()]);
        thread::sleep(Duration::from_millis(ASLEEP_MS) + AWAKE);
    }
}
