//! Workers that run beside a test, and what their handlers tell it.

use std::fmt::{self, Display};
use std::future::{Ready, ready};
use std::time::Duration;

use delayline_tokio::{Client, Error, Place, Queue, Worker};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::eventually;

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) type Running = JoinHandle<Result<(), Error>>;

pub(crate) fn run<S: Send + 'static>(worker: Worker<S>) -> Running {
    tokio::spawn(worker.run())
}

pub(crate) async fn end(client: Client, running: Running) {
    client.close().await;
    running.await.unwrap().unwrap();
}

/// Something that handlers tell, and what they told.
pub(crate) fn tell<T: Send + 'static>() -> (Teller<T>, UnboundedReceiver<T>) {
    let (tell, told) = unbounded_channel();
    (Teller(tell), told)
}

pub(crate) struct Teller<T>(UnboundedSender<T>);

impl<T> Clone for Teller<T> {
    fn clone(&self) -> Teller<T> {
        Teller(self.0.clone())
    }
}

impl<T> Teller<T> {
    pub(crate) fn tell(&self, what: T) {
        drop(self.0.send(what));
    }

    /// Tells it, and is done.
    pub(crate) fn then(&self, what: T) -> Ready<()> {
        self.tell(what);
        ready(())
    }
}

pub(crate) fn text(text: impl Display) -> String {
    text.to_string()
}

pub(crate) async fn reason(queue: &Queue<String>, id: &str) -> String {
    let found = queue.inspect(id).await.unwrap().unwrap();
    found.last_reason().unwrap_or_default().to_owned()
}

pub(crate) async fn is_in(queue: &Queue<String>, id: &str, place: Place) {
    eventually("the job is there", async || {
        queue.inspect(id).await.unwrap().is_some_and(|job| job.place == place && job.attempt() > 0)
    })
    .await;
}

/// An error with a cause.
#[derive(Debug)]
pub(crate) struct NotSent(pub(crate) std::io::Error);

impl Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mail was not sent")
    }
}

impl std::error::Error for NotSent {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
