use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::limits::Patience;
use crate::peers::Peer;

/// A connection that ends when its client keeps it waiting: hyper bounds how long there may be no request at all, this the
/// rest of a request's head, and what the client does not read.
pub(crate) struct Stream {
    tcp: Arc<TcpStream>,
    peer: Arc<Peer>,
    patience: Patience,
    /// How many requests had come when a read was last looked at.
    requests: u32,
    /// Runs from the first byte of a head.
    head: Timer,
    /// Runs while nothing can be written, and nothing is read.
    unread: Timer,
}

#[derive(Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Stream {
    pub(super) fn new(tcp: Arc<TcpStream>, peer: Arc<Peer>, patience: Patience) -> Stream {
        Stream { tcp, peer, patience, requests: 0, head: Timer::default(), unread: Timer::default() }
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.tcp.poll_write_ready(cx)?.is_pending() {
                self.unread.start(self.patience.body);
                return self.unread.expired(cx, "nothing of the answer is read").map(Err);
            }
            match write(&self.tcp) {
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

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.requests != this.peer.requests() {
            this.requests = this.peer.requests();
            this.head.stop();
        }
        loop {
            if this.tcp.poll_read_ready(cx)?.is_pending() {
                return this.head.expired(cx, "the head of the request does not come").map(Err);
            }
            match this.tcp.try_read(buf.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(read) => {
                    buf.advance(read);
                    this.unread.stop();
                    this.peer.is_active();
                    if read > 0 {
                        this.peer.goes_on();
                    }
                    if !this.peer.has_request() {
                        this.head.start(this.patience.header);
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |tcp| tcp.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |tcp| tcp.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper asks for this once all that it has was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.peer.has_all();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.tcp).shutdown(std::net::Shutdown::Write))
    }
}

impl Timer {
    /// Begins to run, unless it runs.
    fn start(&mut self, length: Duration) {
        self.0.get_or_insert_with(|| Box::pin(sleep(length)));
    }

    fn stop(&mut self) {
        self.0 = None;
    }

    /// Ready once it has run out.
    fn expired(&mut self, cx: &mut Context<'_>, why: &'static str) -> Poll<io::Error> {
        let Some(sleep) = &mut self.0 else { return Poll::Pending };
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why))
    }
}
