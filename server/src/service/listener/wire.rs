use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::timer::Timer;
use crate::service::peers::Peer;
use crate::service::socket::Socket;

/// The bytes of a connection as they go over its socket, encrypted or not. It ends when the client reads nothing of what is
/// written.
pub(super) struct Wire {
    socket: Arc<Socket>,
    peer: Arc<Peer>,
    /// How long there may be no room to write, while nothing is read.
    patience: Duration,
    /// How often bytes have come.
    reads: u64,
    unread: Timer,
}

impl Wire {
    pub(super) fn new(socket: Arc<Socket>, peer: Arc<Peer>, patience: Duration) -> Wire {
        Wire { socket, peer, patience, reads: 0, unread: Timer::default() }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// How often bytes have come.
    pub(super) fn reads(&self) -> u64 {
        self.reads
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&Socket) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.socket.poll_write_ready(cx)?.is_pending() {
                self.unread.start(self.patience);
                return self.unread.expired(cx, "nothing of the answer is read").map(Err);
            }
            match write(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.unread.stop();
                    self.peer.is_active();
                    return Poll::Ready(written);
                }
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.socket.poll_read_ready(cx)?.is_pending() {
                return Poll::Pending;
            }
            match this.socket.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(_) => {
                    this.unread.stop();
                    this.peer.is_active();
                    this.reads += 1;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |socket| socket.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |socket| socket.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.shutdown_write())
    }
}
