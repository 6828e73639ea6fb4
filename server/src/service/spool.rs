use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use tokio::sync::Notify;

use crate::service::peers::Peer;

/// The most bytes of an answer that wait to be read.
const MOST: usize = 64 << 20;
const CHUNK: usize = 64 << 10;

/// An answer that is written while the request is still read. What its reader leaves is kept, up to a limit.
pub(crate) struct Spool {
    kept: Mutex<Kept>,
    more: Notify,
    peer: Arc<Peer>,
}

#[derive(Default)]
struct Kept {
    chunks: VecDeque<Bytes>,
    last: BytesMut,
    bytes: usize,
    is_ended: bool,
}

/// There is no room for more.
#[derive(Debug)]
pub(crate) struct Full;

impl Spool {
    /// One whose bytes count as those of the peer's bodies.
    pub(crate) fn new(peer: Arc<Peer>) -> Arc<Spool> {
        Arc::new(Spool { kept: Mutex::default(), more: Notify::new(), peer })
    }

    pub(crate) async fn put(&self, bytes: &[u8]) -> Result<(), Full> {
        if self.kept().bytes + bytes.len() > MOST {
            return Err(Full);
        }
        self.peer.holds(bytes.len()).await.map_err(|_| Full)?;
        self.append(bytes);
        Ok(())
    }

    /// Puts in the last, for which there is always room.
    pub(crate) fn end_with(&self, bytes: &[u8]) {
        self.append(bytes);
        self.end();
    }

    pub(crate) fn end(&self) {
        self.kept().is_ended = true;
        self.more.notify_one();
    }

    fn append(&self, bytes: &[u8]) {
        let mut kept = self.kept();
        kept.bytes += bytes.len();
        if !kept.last.is_empty() && kept.last.len() + bytes.len() > CHUNK {
            // A full chunk is followed by another: one that grew would take up to twice what it holds.
            let full = mem::replace(&mut kept.last, BytesMut::with_capacity(CHUNK)).freeze();
            kept.chunks.push_back(full);
        }
        kept.last.extend_from_slice(bytes);
        drop(kept);
        self.more.notify_one();
    }

    /// What is put in, in its order, until the end.
    pub(crate) fn read(self: Arc<Spool>) -> impl Stream<Item = Bytes> {
        stream::unfold(self, async |spool| {
            loop {
                if let Some(chunk) = spool.take() {
                    return Some((chunk, spool));
                }
                if spool.kept().is_ended {
                    return None;
                }
                spool.more.notified().await;
            }
        })
    }

    fn take(&self) -> Option<Bytes> {
        let mut kept = self.kept();
        let chunk = kept.chunks.pop_front().unwrap_or_else(|| kept.last.split().freeze());
        kept.bytes -= chunk.len();
        drop(kept);
        self.peer.lets_go(chunk.len());
        (!chunk.is_empty()).then_some(chunk)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
