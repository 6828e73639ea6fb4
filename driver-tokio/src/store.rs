#[cfg(feature = "memory")]
use std::sync::Arc;

/// Where jobs are kept, for all engines of a client.
#[derive(Clone)]
pub(crate) enum Store {
    Redis(redis::Client),
    #[cfg(feature = "memory")]
    Memory(Arc<crate::memory::Memory>),
}

impl Store {
    pub(crate) fn is_memory(&self) -> bool {
        !matches!(self, Store::Redis(_))
    }
}
