use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    /// The deployments whose layout this isolate has checked.
    static OPENED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

pub(super) fn is_known(deployment: &str) -> bool {
    OPENED.with_borrow(|opened| opened.contains(deployment))
}

pub(super) fn remember(deployment: String) {
    OPENED.with_borrow_mut(|opened| opened.insert(deployment));
}
