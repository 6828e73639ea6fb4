use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::timer::Timer;
use super::wire::Wire;
use crate::service::peers::Peer;

/// A connection as HTTP sees it, in clear text. It ends when its client keeps it waiting: hyper bounds how long there may be
/// no request at all, this the rest of a request's head, its [`Wire`] what the client does not read.
pub(super) struct Stream {
    transport: Transport,
    peer: Arc<Peer>,
    /// How long the rest of a head may take.
    patience: Duration,
    /// How many requests had come when a read was last looked at.
    requests: u32,
    /// Runs from the first byte of a head.
    head: Timer,
}

pub(super) enum Transport {
    Clear(Wire),
    Tls(Box<TlsStream<Wire>>),
}

impl Stream {
    pub(super) fn new(transport: Transport, peer: Arc<Peer>, patience: Duration) -> Stream {
        Stream { transport, peer, patience, requests: 0, head: Timer::default() }
    }
}

impl Transport {
    /// How often bytes have come, whatever they were.
    fn reads(&self) -> u64 {
        match self {
            Transport::Clear(wire) => wire.reads(),
            Transport::Tls(tls) => tls.get_ref().0.reads(),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Clear(wire) => Pin::new(wire).poll_read(cx, buf),
            Transport::Tls(tls) => match Pin::new(tls).poll_read(cx, buf) {
                // Many clients leave without saying so in TLS. A request that is cut off by it is noticed by its length.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Poll::Ready(Ok(()))
                }
                read => read,
            },
        }
    }

    /// Where bytes are written to.
    fn sink(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Transport::Clear(wire) => Pin::new(wire),
            Transport::Tls(tls) => Pin::new(&mut **tls),
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
        let (reads, filled) = (this.transport.reads(), buf.filled().len());
        let read = this.transport.poll_read(cx, buf);
        let has_text = buf.filled().len() > filled;
        if has_text {
            this.peer.goes_on();
        }
        // The handshake may have brought the beginning of a head with it; a part of a TLS record is no text yet.
        if (has_text || this.transport.reads() > reads) && !this.peer.has_request() {
            this.head.start(this.patience);
        }
        match read {
            Poll::Pending => this.head.expired(cx, "the head of the request does not come").map(Err),
            Poll::Ready(read) => Poll::Ready(read),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.transport.sink().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.transport.sink().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper asks for this once all that it has was written; with TLS that may still have to be sent.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.transport.sink().poll_flush(cx))?;
        self.peer.has_all();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.sink().poll_shutdown(cx)
    }
}
