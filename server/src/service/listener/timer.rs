use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// How long something may still take, once it has begun.
#[derive(Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Begins to run, unless it runs.
    pub(super) fn start(&mut self, length: Duration) {
        self.0.get_or_insert_with(|| Box::pin(sleep(length)));
    }

    pub(super) fn stop(&mut self) {
        self.0 = None;
    }

    /// Ready once it has run out.
    pub(super) fn expired(&mut self, cx: &mut Context<'_>, why: &'static str) -> Poll<io::Error> {
        let Some(sleep) = &mut self.0 else { return Poll::Pending };
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why))
    }
}
