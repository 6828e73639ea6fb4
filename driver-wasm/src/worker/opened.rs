use std::cell::RefCell;

thread_local! {
    /// The deployments whose layout this isolate has checked.
    static OPENED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn is_known(deployment: &str) -> bool {
    OPENED.with_borrow(|opened| opened.iter().any(|known| known == deployment))
}

pub(super) fn remember(deployment: String) {
    if !is_known(&deployment) {
        OPENED.with_borrow_mut(|opened| opened.push(deployment));
    }
}
