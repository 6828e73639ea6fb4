use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many bytes of bodies jobs in hand take. Nothing is taken while there are too many; what a take brings is counted
/// then, so that there may be more by that of one take for each queue.
#[derive(Clone)]
pub(super) struct Load(Arc<Inner>);

struct Inner {
    bytes: AtomicUsize,
    most: usize,
    freed: Notify,
}

/// Bytes that are in hand until this is dropped.
pub(super) struct Loaded {
    bytes: usize,
    load: Load,
}

impl Load {
    pub(super) fn new(most: usize) -> Load {
        Load(Arc::new(Inner { bytes: AtomicUsize::new(0), most, freed: Notify::new() }))
    }

    pub(super) fn add(&self, bytes: usize) -> Loaded {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        Loaded { bytes, load: self.clone() }
    }

    /// Ends when there is room for more.
    pub(super) async fn has_room(&self) {
        loop {
            let freed = self.0.freed.notified();
            if self.0.bytes.load(Ordering::Relaxed) < self.0.most {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let before = self.load.0.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if before >= self.load.0.most {
            self.load.0.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn there_is_room_again_once_enough_is_gone() {
        let load = Load::new(10);
        let (first, second) = (load.add(6), load.add(6));
        let full = timeout(Duration::from_millis(20), load.has_room()).await;
        assert!(full.is_err());
        let waiting = tokio::spawn({
            let load = load.clone();
            async move { load.has_room().await }
        });
        tokio::task::yield_now().await;
        drop(first);
        waiting.await.unwrap();
        drop(second);
        load.has_room().await;
    }
}
