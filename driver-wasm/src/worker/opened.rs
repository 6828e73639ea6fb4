use std::cell::RefCell;

use delayline_core::Millis;

use crate::timer;

/// A dataset that was emptied lost its config, and another client may have fixed it otherwise: so it is checked again.
const KNOWN_MS: u64 = 600_000;

thread_local! {
    /// The deployments whose layout this isolate has checked, and when.
    static OPENED: RefCell<Vec<(String, Millis)>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn is_known(deployment: &str) -> bool {
    let now = timer::now();
    OPENED.with_borrow(|opened| {
        opened.iter().any(|(known, at)| known == deployment && now.since(*at) < KNOWN_MS)
    })
}

pub(super) fn remember(deployment: String) {
    if !is_known(&deployment) {
        forget(&deployment);
        OPENED.with_borrow_mut(|opened| opened.push((deployment, timer::now())));
    }
}

pub(super) fn forget(deployment: &str) {
    OPENED.with_borrow_mut(|opened| opened.retain(|(known, _)| known != deployment));
}
