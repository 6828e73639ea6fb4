use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{Interest, ReadBuf, Ready};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connection's socket, of either family.
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Calls the method of the same name on either socket.
macro_rules! of_either {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            #[cfg(unix)]
            Socket::Unix($stream) => $call,
        }
    };
}

impl Socket {
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(self, stream => stream.poll_read_ready(cx))
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(self, stream => stream.poll_write_ready(cx))
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        of_either!(self, stream => stream.try_read(bytes))
    }

    /// Reads what has come. Where that is less than there is room for, nothing more has: the runtime then waits to be told by
    /// the system, and does not ask it once more in vain.
    pub(crate) fn try_read_buf(&self, buf: &mut ReadBuf<'_>) -> io::Result<usize> {
        let (room, mut read) = (buf.remaining(), None);
        let tried = of_either!(self, stream => stream.try_io(Interest::READABLE, || {
            let count = stream.try_read_buf(buf)?;
            read = Some(count);
            // Only of these it is known that they tell of whatever comes from now on.
            let is_drained = cfg!(any(target_os = "linux", target_os = "macos")) && (1..room).contains(&count);
            if is_drained { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        }));
        match (read, tried) {
            (Some(count), _) => Ok(count),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        of_either!(self, stream => stream.try_write(bytes))
    }

    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        of_either!(self, stream => stream.try_write_vectored(slices))
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        of_either!(self, stream => stream.ready(interest).await)
    }

    /// Says that nothing more is written.
    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        of_either!(self, stream => SockRef::from(stream).shutdown(Shutdown::Write))
    }

    /// Ends once the other side has closed the connection, with whether it broke it off: the system does so for whoever
    /// closes it with something unread.
    pub(crate) async fn is_reset(&self) -> bool {
        let mut bytes = [0; 512];
        loop {
            if self.ready(Interest::READABLE).await.is_err() {
                return true;
            }
            match self.try_read(&mut bytes) {
                Ok(0) => return false,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return error.kind() == io::ErrorKind::ConnectionReset;
                }
                _ => {}
            }
        }
    }

    /// The first byte that comes, which stays to be read; none if the other side closes before it.
    pub(crate) async fn first_byte(&self) -> io::Result<Option<u8>> {
        let mut first = [0];
        match self {
            Socket::Tcp(stream) => Ok((stream.peek(&mut first).await? > 0).then_some(first[0])),
            #[cfg(unix)]
            Socket::Unix(_) => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    /// Whether the other side has closed the connection or its half of it, asked of the system: the runtime hears of it later.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_read_closed(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let mut closed = [of_either!(self, stream => PollFd::new(stream, PollFlags::RDHUP))];
        poll(&mut closed, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }

    /// What the runtime has heard is all that is known.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_read_closed(&self) -> bool {
        use futures_util::FutureExt;

        let ready = self.ready(Interest::READABLE).now_or_never();
        matches!(ready, Some(Ok(ready)) if ready.is_read_closed())
    }
}
