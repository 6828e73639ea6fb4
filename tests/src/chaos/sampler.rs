use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use delayline_core::wire::Value;

use super::history::now;
use crate::Connection;

const EVERY: Duration = Duration::from_millis(5);

/// Reads again and again how far a primary's stream of writes has come, so that it can be said since when a replica lacks
/// some of them.
#[derive(Debug)]
pub(super) struct Sampler(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    port: AtomicU16,
    /// Offsets, and times by which they were reached.
    samples: Mutex<Vec<(u64, u64)>>,
}

impl Sampler {
    /// Reads from the server on `port` until this is dropped.
    pub(super) fn start(port: u16) -> Sampler {
        let shared = Arc::new(Shared { port: port.into(), samples: Mutex::default() });
        let weak = Arc::downgrade(&shared);
        thread::spawn(move || sample(&weak));
        Sampler(shared)
    }

    /// The last time at which the stream had not come further than `offset`, if any was seen.
    pub(super) fn last_within(&self, offset: u64) -> Option<u64> {
        let samples = self.0.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().rev().find(|(_, reached)| *reached <= offset).map(|(at, _)| *at)
    }

    /// Reads from another server from now on.
    pub(super) fn follow(&self, port: u16) {
        let mut samples = self.0.samples.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.port.store(port, Ordering::SeqCst);
        samples.clear();
    }
}

fn sample(shared: &Weak<Shared>) {
    let mut connection: Option<(u16, Connection)> = None;
    while let Some(shared) = shared.upgrade() {
        let port = shared.port.load(Ordering::SeqCst);
        if connection.as_ref().is_none_or(|(of, _)| *of != port) {
            connection = Connection::open(port).ok().map(|connection| (port, connection));
        }
        // Whatever was answered before the question is within the answer.
        let at = now();
        let offset = connection.as_mut().and_then(|(_, connection)| offset(connection));
        let mut samples = shared.samples.lock().unwrap_or_else(PoisonError::into_inner);
        match offset {
            Some(offset) if shared.port.load(Ordering::SeqCst) == port => samples.push((at, offset)),
            Some(_) => {}
            None => connection = None,
        }
        drop(samples);
        drop(shared);
        thread::sleep(EVERY);
    }
}

fn offset(connection: &mut Connection) -> Option<u64> {
    let Ok(Value::Bytes(text)) = connection.call(&["INFO", "replication"]) else { return None };
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().find_map(|line| line.strip_prefix("master_repl_offset:")?.trim().parse().ok())
}
