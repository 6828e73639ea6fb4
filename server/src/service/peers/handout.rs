use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use delayline_tokio::{Client, Lease};
use hyper::body::{Frame, SizeHint};
use tokio::time::timeout;

use super::Peer;

/// How long after a client has said that it leaves it is heard of that it has read nothing more.
const BROKEN_WITHIN: Duration = Duration::from_secs(1);

/// Leases that an answer hands out. Dropped, it gives them back, unspent.
pub(crate) struct Handout {
    client: Client,
    leases: Vec<Lease>,
}

/// The handouts of a connection's answers that may not have been read.
#[derive(Default)]
pub(super) struct Handouts(Mutex<Unread>);

#[derive(Default)]
struct Unread {
    /// The system does not have the whole answer yet.
    unsent: Vec<Handout>,
    /// The system has it, and the client has sent nothing since.
    sent: Vec<Handout>,
    /// The client had asked for more before it could read them.
    is_pipelined: bool,
}

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

    /// Hands out these too.
    pub(crate) fn also(&mut self, leases: Vec<Lease>) {
        self.leases.extend(leases);
    }

    fn deliver(mut self) {
        self.leases.clear();
    }
}

impl Drop for Handout {
    fn drop(&mut self) {
        self.client.give_back(std::mem::take(&mut self.leases));
    }
}

impl Handouts {
    fn unread(&self) -> MutexGuard<'_, Unread> {
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
        let Unread { unsent, sent, .. } = &mut *self.handouts.unread();
        sent.append(unsent);
    }

    /// The client sends something: it has read what was sent.
    pub(crate) fn goes_on(&self) {
        let mut unread = self.handouts.unread();
        unread.sent.drain(..).for_each(Handout::deliver);
        unread.is_pipelined = false;
    }

    /// Another request begins.
    pub(super) fn asks_more(&self) {
        let mut unread = self.handouts.unread();
        unread.is_pipelined |= !unread.sent.is_empty();
    }

    /// Whether a client that has answers to read, and had asked for more, turns out to have broken the connection. With TLS it
    /// may have said before that it leaves, as one does that has read all.
    pub(crate) async fn broke_off_unread(&self) -> bool {
        let may_be_unread = {
            let unread = self.handouts.unread();
            unread.is_pipelined && !unread.sent.is_empty()
        };
        let Some(socket) = self.socket.as_ref().filter(|_| may_be_unread) else { return false };
        timeout(BROKEN_WITHIN, socket.is_reset()).await.unwrap_or(false)
    }

    /// Nothing more is answered. A client that had asked for more and broke the connection did not read what it was sent;
    /// who closes it otherwise may have.
    pub(crate) fn is_over(&self, is_broken: bool) {
        let Unread { unsent, sent, is_pipelined } = std::mem::take(&mut *self.handouts.unread());
        if !(is_broken && is_pipelined) {
            sent.into_iter().for_each(Handout::deliver);
        }
        drop(unsent);
    }

    /// Whether the client has closed its side of the connection, asked of the system: the runtime hears of it later.
    fn has_left(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.is_read_closed())
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
        match &self.peer.socket {
            Some(_) => self.peer.handouts.unread().unsent.push(handout),
            None => handout.deliver(),
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
