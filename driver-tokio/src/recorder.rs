use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use delayline_core::UnixMs;
use delayline_core::recording::{Recorded, Ring, Sink};

use crate::link::lock;

/// Keeps the latest of what the engine of a client or a worker was told, in bounded memory: to be saved when something
/// went wrong, and replayed at a desk by `delayline replay FILE`, or [`Replay`](crate::Replay).
///
/// Bodies and the values of headers are not kept; names, ids, times and the reasons of failures are. Clones share
/// everything. A recorder records one engine: the one it was given to last.
///
/// ```
/// # #[cfg(feature = "memory")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use delayline_tokio::{Client, FlightRecorder, Replay};
///
/// let recorder = FlightRecorder::new(16 << 20).save_on_panic("/var/tmp/orders.recording");
/// let client = Client::builder().flight_recorder(recorder.clone()).connect("memory://").await?;
/// client.queue::<u64>("orders")?.publish(&17).id("order:17").await?;
///
/// let recording = recorder.recording(); // or recorder.save("orders.recording")?
/// let replay = Replay::open(&recording).unwrap();
/// let lines = replay.flat_map(|step| step.unwrap().decided);
/// let story: Vec<String> = lines.filter(|line| line.about.id().is_some()).map(|line| line.to_string()).collect();
/// assert!(story[0].starts_with("orders/order:17: publishes it, due at once"), "{story:?}");
/// assert!(story[1].starts_with("orders/order:17: publish answered: accepted as order:17"), "{story:?}");
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct FlightRecorder {
    tape: Arc<Mutex<Tape>>,
    room: usize,
    on_panic: Option<PathBuf>,
}

/// What was recorded of the latest engine.
struct Tape {
    ring: Ring,
    origin: UnixMs,
    engines: u64,
}

/// An engine's end of it.
struct Writer {
    recorder: FlightRecorder,
    engine: u64,
}

impl FlightRecorder {
    /// A recorder that keeps so many bytes, at least 64 KiB.
    pub fn new(bytes: usize) -> FlightRecorder {
        let tape = Tape { ring: Ring::new(bytes), origin: UnixMs(0), engines: 0 };
        FlightRecorder { tape: Arc::new(Mutex::new(tape)), room: bytes, on_panic: None }
    }

    /// Saves into this file if the engine's thread panics; call it before the recorder is handed over.
    #[must_use]
    pub fn save_on_panic(mut self, path: impl Into<PathBuf>) -> FlightRecorder {
        self.on_panic = Some(path.into());
        self
    }

    /// What it holds now, as a file of its own. The engine waits while it is copied.
    pub fn recording(&self) -> Vec<u8> {
        let tape = lock(&self.tape);
        let mut recording = Recorded::header(tape.origin);
        tape.ring.segments().for_each(|segment| recording.extend_from_slice(segment));
        recording
    }

    /// Writes what it holds now into a file, which is whole or is not there.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut beside = path.as_os_str().to_owned();
        beside.push(".part");
        std::fs::write(&beside, self.recording())?;
        std::fs::rename(&beside, path)
    }

    /// A new engine begins, whose time 0 is `origin`.
    pub(crate) fn begin(&self, origin: UnixMs) -> Box<dyn Sink + Send> {
        let mut tape = lock(&self.tape);
        let engines = tape.engines + 1;
        *tape = Tape { ring: Ring::new(self.room), origin, engines };
        Box::new(Writer { recorder: self.clone(), engine: engines })
    }
}

impl Sink for Writer {
    fn put(&mut self, bytes: &[u8], is_fresh: bool) -> bool {
        let mut tape = lock(&self.recorder.tape);
        tape.engines == self.engine && tape.ring.put(bytes, is_fresh)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Some(path) = self.recorder.on_panic.as_ref().filter(|_| std::thread::panicking()) else { return };
        match self.recorder.save(path) {
            Ok(()) => {
                tracing::error!(path = %path.display(), "the engine panicked: what it was told is saved");
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "the engine panicked, and its recording is lost");
            }
        }
    }
}

impl fmt::Debug for FlightRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightRecorder").field("bytes", &self.room).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use delayline_core::recording::{Recorded, Replay};
    use delayline_core::{Config, Credit, Identity, Millis};

    use super::*;

    fn engine(recorder: &FlightRecorder, identity: u64) -> Recorded {
        let sink = recorder.begin(UnixMs(7));
        Recorded::new(Config::default(), Identity(identity), Millis(0), Some(sink)).unwrap()
    }

    #[test]
    fn the_latest_engine_is_recorded() {
        let recorder = FlightRecorder::new(1 << 16);
        let (mut first, mut second) = (engine(&recorder, 1), engine(&recorder, 2));
        for engine in [&mut first, &mut second] {
            engine.handle_timeout(Millis(5));
            assert!(engine.poll_transmit(Credit::UNLIMITED).is_none());
        }
        let recording = recorder.recording();
        let mut replay = Replay::open(&recording).unwrap();
        assert_eq!(replay.by_ref().count(), 2);
        assert_eq!((replay.identity(), replay.header().origin), (Some(Identity(2)), UnixMs(7)));
    }

    #[test]
    fn a_panic_saves_what_was_told() {
        let path = std::env::temp_dir().join(format!("delayline-{}.recording", std::process::id()));
        let recorder = FlightRecorder::new(1 << 16).save_on_panic(&path);
        let mut engine = engine(&recorder, 1);
        let thread = std::thread::spawn(move || {
            engine.handle_timeout(Millis(5));
            panic!("as a bug does");
        });
        assert!(thread.join().is_err());
        let saved = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(saved, recorder.recording());
        assert_eq!(Replay::open(&saved).unwrap().count(), 1);
    }
}
