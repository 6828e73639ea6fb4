//! The driver against the embedded store and against a real Redis that each test spawns.

#[cfg(feature = "memory")]
macro_rules! on_both_stores {
    ($($scenario:ident)*) => {
        mod memory {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    super::$scenario(delayline_tokio::Client::connect("memory://").await.unwrap()).await;
                }
            )*
        }

        mod redis {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let server = crate::server::Server::spawn();
                    super::$scenario(delayline_tokio::Client::connect(&server.url()).await.unwrap()).await;
                }
            )*
        }
    };
}

mod connecting;
mod deployment;
#[cfg(feature = "memory")]
mod durations;
#[cfg(feature = "memory")]
mod examples;
#[cfg(feature = "memory")]
mod handlers;
#[cfg(feature = "memory")]
mod kit;
#[cfg(feature = "memory")]
mod layers;
#[cfg(feature = "memory")]
mod leases;
mod outages;
#[cfg(feature = "memory")]
mod panics;
#[cfg(feature = "memory")]
mod recorder;
#[cfg(feature = "memory")]
mod running;
#[cfg(feature = "memory")]
mod scenarios;
mod server;
#[cfg(all(feature = "memory", target_os = "linux"))]
mod sockets;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "memory")]
mod typed;

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Asks until the answer is yes, for a minute at most: a busy machine takes its time.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(60), "still not so after a minute: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[cfg(feature = "memory")]
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

static SAID: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Hearing;

impl Write for Hearing {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        SAID.lock().unwrap().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins to hear the log lines of this process, once, and answers what was said so far.
fn said() -> impl Fn() -> String {
    static HEARS: OnceLock<()> = OnceLock::new();
    HEARS.get_or_init(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| Hearing).init());
    || String::from_utf8(SAID.lock().unwrap().clone()).unwrap()
}
