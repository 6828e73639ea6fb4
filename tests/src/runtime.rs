use std::future::Future;

use tokio::runtime::Builder;

/// Does asynchronous work in a test on two threads.
///
/// # Panics
///
/// If there is no runtime to be had.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime").block_on(work)
}
