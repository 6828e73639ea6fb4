use std::sync::Arc;

use crate::held::HeldTime;

/// Where jobs are kept, for all engines of a client.
#[derive(Clone)]
pub(crate) enum Store {
    Redis(redis::Client),
    #[cfg(feature = "memory")]
    Memory(Arc<crate::memory::Memory>),
}

impl Store {
    /// The time that a test holds, if this is a test's store.
    pub(crate) fn held(&self) -> Option<Arc<HeldTime>> {
        match self {
            Store::Redis(_) => None,
            #[cfg(feature = "memory")]
            Store::Memory(memory) => memory.held(),
        }
    }

    /// Whether both are surely the same.
    pub(crate) fn is(&self, other: &Store) -> bool {
        match (self, other) {
            (Store::Redis(one), Store::Redis(other)) => {
                let (one, other) = (one.get_connection_info(), other.get_connection_info());
                one.addr() == other.addr() && one.redis_settings().db() == other.redis_settings().db()
            }
            #[cfg(feature = "memory")]
            (Store::Memory(one), Store::Memory(other)) => Arc::ptr_eq(one, other),
            #[cfg(feature = "memory")]
            _ => false,
        }
    }

    pub(crate) fn is_memory(&self) -> bool {
        !matches!(self, Store::Redis(_))
    }
}
