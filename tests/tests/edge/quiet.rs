use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// A test's right to use the machine, for as long as it is held: tests run side by side, but for one that times what it
/// sees, beside which none runs and nothing is built.
pub(crate) struct Quiet {
    _beside: Option<RwLockReadGuard<'static, ()>>,
    _alone: Option<RwLockWriteGuard<'static, ()>>,
}

impl Quiet {
    /// Waits while a test is alone. A test that holds one must not ask for another.
    pub(crate) fn beside_others() -> Quiet {
        let held = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        Quiet { _beside: Some(held), _alone: None }
    }

    /// Waits until no test runs.
    pub(crate) fn alone() -> Quiet {
        let held = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        Quiet { _beside: None, _alone: Some(held) }
    }
}
