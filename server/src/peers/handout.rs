use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use delayline_tokio::{Client, Lease};
use hyper::body::{Frame, SizeHint};

use super::Peer;

/// Leases that an answer hands out. Dropped, it gives them back, unspent.
pub(crate) struct Handout {
    client: Client,
    leases: Vec<Lease>,
}

/// What is in an answer that the system does not have whole yet.
#[derive(Default)]
pub(super) struct Unsent(Mutex<Vec<Handout>>);

/// The body of an answer that hands leases out: they are the client's once the system has all of it.
struct HandingOut {
    peer: Arc<Peer>,
    bytes: Bytes,
    handout: Option<Handout>,
}

impl Handout {
    pub(crate) fn new(client: Client, leases: Vec<Lease>) -> Handout {
        Handout { client, leases }
    }

    fn is_delivered(mut self) {
        self.leases.clear();
    }
}

impl Drop for Handout {
    fn drop(&mut self) {
        self.client.give_back(std::mem::take(&mut self.leases));
    }
}

impl Unsent {
    fn handouts(&self) -> MutexGuard<'_, Vec<Handout>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    /// A body whose leases are given back unless the client is still there when it is written, and it is written whole.
    pub(crate) fn body_of(self: &Arc<Peer>, bytes: Bytes, handout: Handout) -> Body {
        Body::new(HandingOut { peer: Arc::clone(self), bytes, handout: Some(handout) })
    }

    /// The system has all that was answered so far.
    pub(crate) fn has_all(&self) {
        self.unsent.handouts().drain(..).for_each(Handout::is_delivered);
    }

    /// Nothing more is answered.
    pub(super) fn takes_back(&self) {
        let unsent = std::mem::take(&mut *self.unsent.handouts());
        drop(unsent);
    }

    /// Whether the client has closed its side of the connection, asked of the system: the runtime hears of it later.
    #[cfg(target_os = "linux")]
    fn has_left(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let Some(stream) = &self.stream else { return false };
        let mut closed = [PollFd::new(&**stream, PollFlags::RDHUP)];
        poll(&mut closed, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }

    /// What the runtime has heard is all that is known.
    #[cfg(not(target_os = "linux"))]
    fn has_left(&self) -> bool {
        use futures_util::FutureExt;

        let Some(stream) = &self.stream else { return false };
        let ready = stream.ready(tokio::io::Interest::READABLE).now_or_never();
        matches!(ready, Some(Ok(ready)) if ready.is_read_closed())
    }
}

impl HttpBody for HandingOut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(handout) = self.handout.take() else { return Poll::Ready(None) };
        if self.peer.has_left() {
            let left = io::Error::new(io::ErrorKind::ConnectionAborted, "the client left before its answer");
            return Poll::Ready(Some(Err(left)));
        }
        match &self.peer.stream {
            Some(_) => self.peer.unsent.handouts().push(handout),
            None => handout.is_delivered(),
        }
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.handout.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
