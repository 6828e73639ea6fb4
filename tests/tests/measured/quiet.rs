use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whoever holds it measures alone.
pub(crate) fn quiet() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
