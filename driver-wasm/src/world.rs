use std::future::Future;

use delayline_core::{Job, Millis, Transmit, Verdict};

use crate::rest::Landed;

/// What is around an engine: a clock, a Redis, whoever gets the jobs. Whatever it promises may be dropped at any await.
pub trait World {
    /// The time on a clock that never goes back. It may stand still between awaits, as it does in a worker.
    fn now(&self) -> Millis;

    /// Encodes a round trip at once, sends it when polled, and gives it up by itself when it hangs.
    fn send<'a>(&'a self, transmit: Transmit<'_>) -> impl Future<Output = Landed> + use<'a, Self>;

    /// Delivers a job, in bounded time.
    fn deliver(&self, job: Job) -> impl Future<Output = Verdict>;

    /// Ends when so long has passed.
    fn sleep(&self, ms: u64) -> impl Future<Output = ()>;
}
