use std::future::Future;

use delayline_core::{Job, Verdict};
use futures_util::future::LocalBoxFuture;

use super::deliver::{Courier, Target};
use super::verdict::IntoVerdict;

/// Delivers to a function of this worker.
pub(super) struct Handler<H>(pub(super) H);

impl<H, F> Target for Handler<H>
where
    H: Fn(Job) -> F,
    F: Future<Output: IntoVerdict> + 'static,
{
    fn deliver<'a>(&'a self, courier: &'a Courier<'_>, job: Job) -> LocalBoxFuture<'a, Verdict> {
        Box::pin(courier.in_time((self.0)(job)))
    }
}
