use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Peer;

/// So much of each body is not counted: small ones find room whatever the large ones do. Connections are counted.
const UNCOUNTED: usize = 16 << 10;
const KIB: usize = 1 << 10;
/// A body that has made no progress for so long makes way for one that does.
const SILENT_MS: u64 = 500;
/// How long a body waits for room, all its waits together: a second. If each wait were for so long, many bodies would take
/// turns, none would have room for its end, and those whose clients have left would be heard of last.
const LOOKS: u32 = 20;
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// The memory that bodies may take, together.
pub(super) struct Bodies {
    kib: Arc<Semaphore>,
}

/// What the body of a request has of it.
#[derive(Default)]
pub(super) struct Held(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    bytes: usize,
    /// How often it looked for room since it last let go of some.
    looks: u32,
    permit: Option<OwnedSemaphorePermit>,
}

/// Bodies take all the memory that they may.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl Bodies {
    pub(super) fn new(bytes: usize) -> Bodies {
        Bodies { kib: Arc::new(Semaphore::new((bytes / KIB).min(Semaphore::MAX_PERMITS))) }
    }
}

impl Held {
    fn counted<T>(&self, change: impl FnOnce(&mut Counted) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counted {
    fn may_look(&mut self) -> bool {
        self.looks += 1;
        self.looks <= LOOKS
    }
}

impl Peer {
    /// So many more bytes of a body are in memory. If there is no room, the connections make it that have a body there and
    /// are silent, the longest first; if there are none, it is waited for a while.
    pub(crate) async fn holds(self: &Arc<Peer>, bytes: usize) -> Result<(), NoRoom> {
        let wanted = self.held.counted(|counted| {
            counted.bytes += bytes;
            let kib = counted.bytes.saturating_sub(UNCOUNTED).div_ceil(KIB);
            kib - counted.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
        });
        let Ok(wanted) = u32::try_from(wanted) else { return Err(NoRoom) };
        if wanted == 0 {
            return Ok(());
        }
        let permit = self.room(wanted).await?;
        self.held.counted(|counted| match &mut counted.permit {
            Some(held) => held.merge(permit),
            held => *held = Some(permit),
        });
        Ok(())
    }

    async fn room(self: &Arc<Peer>, kib: u32) -> Result<OwnedSemaphorePermit, NoRoom> {
        let room = &self.peers.bodies.kib;
        if let Ok(permit) = Arc::clone(room).try_acquire_many_owned(kib) {
            return Ok(permit);
        }
        let holds_in_silence = |peer: &Peer| {
            peer.silent_ms() >= SILENT_MS && peer.held.counted(|counted| counted.permit.is_some())
        };
        let _waited_for = self.also_serves();
        let mut acquiring = pin!(Arc::clone(room).acquire_many_owned(kib));
        while self.held.counted(Counted::may_look) {
            self.peers.close_most_silent(holds_in_silence);
            if let Ok(acquired) = timeout(LOOKS_EVERY, acquiring.as_mut()).await {
                self.is_active();
                return acquired.map_err(|_| NoRoom);
            }
        }
        Err(NoRoom)
    }

    /// So many bytes of it are in memory no more.
    pub(crate) fn lets_go(&self, bytes: usize) {
        self.held.counted(|counted| {
            counted.bytes = counted.bytes.saturating_sub(bytes);
            counted.looks = 0;
            let kib = counted.bytes.saturating_sub(UNCOUNTED).div_ceil(KIB);
            if let Some(permit) = &mut counted.permit {
                drop(permit.split(permit.num_permits().saturating_sub(kib)));
            }
        });
    }

    /// The body is in memory no more.
    pub(crate) fn releases(&self) {
        self.held.counted(|counted| *counted = Counted::default());
    }
}
