//! Tests that count or time what they see, one after the other.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Builder;

/// Whoever holds it measures alone.
pub(crate) fn quiet() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime").block_on(work)
}
