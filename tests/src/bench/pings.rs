use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Connection;

const EVERY: Duration = Duration::from_millis(1);

/// A client that asks for nothing but an answer, again and again, on a thread of its own.
pub(super) struct Pings {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<f64>>,
}

impl Pings {
    /// Begins after a while.
    pub(super) fn begin(mut connection: Connection, after: Duration) -> Pings {
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let thread = thread::spawn(move || {
            thread::sleep(after);
            let mut ms = Vec::new();
            while !told.load(Ordering::Relaxed) {
                let asked = Instant::now();
                connection.ask(&["PING"]);
                ms.push(asked.elapsed().as_secs_f64() * 1e3);
                thread::sleep(EVERY);
            }
            ms
        });
        Pings { ends, thread }
    }

    /// How long each took, in ms, in their order of length.
    pub(super) fn end(self) -> Vec<f64> {
        self.ends.store(true, Ordering::Relaxed);
        let mut ms = self.thread.join().expect("no panic");
        ms.sort_by(f64::total_cmp);
        ms
    }
}
