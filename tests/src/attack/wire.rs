use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// How long a connection may take.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
/// How a good answer begins.
const OK: &[u8] = b"HTTP/1.1 200 ";
/// More bytes than come before a client leaves that reads none.
const MOST_ANSWERED: usize = 64 << 10;

/// A connection on which one request follows the other.
pub(super) struct Wire {
    stream: TcpStream,
    address: SocketAddr,
    read: Vec<u8>,
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Wire {
    /// Connects from an address of this machine.
    pub(super) async fn open(from: Ipv4Addr, to: SocketAddr) -> io::Result<Wire> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from.into(), 0))?;
        let stream = timeout(CONNECTED_WITHIN, socket.connect(to)).await.map_err(io::Error::from)??;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, address: to, read: Vec::new() })
    }

    /// A request's line and headers; `more` are lines that end in `\r\n`.
    pub(super) fn head(&self, method: &str, path: &str, more: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", self.address)
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    pub(super) async fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        let length = format!("Content-Length: {}\r\n", body.len());
        let request = self.head(method, path, &length) + body;
        self.send(request.as_bytes()).await?;
        self.answer().await
    }

    /// Reads an answer whose length is said.
    pub(super) async fn answer(&mut self) -> io::Result<Answer> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let end = loop {
            match self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.more().await?,
            }
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| bad("no status"))?;
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let length = match length {
            Some(length) => length.parse().map_err(|_| bad("no length"))?,
            None if status == 204 => 0,
            None => return Err(bad("an answer without a length")),
        };
        while self.read.len() < length {
            self.more().await?;
        }
        let body: Vec<u8> = self.read.drain(..length).collect();
        Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Leaves, and tells how many requests had been answered well by then; nobody reads the answers.
    pub(super) fn leave(self) -> io::Result<usize> {
        // A runtime would tell what has come only once it has heard of it.
        let stream = self.stream.into_std()?;
        let mut unread = vec![0; MOST_ANSWERED];
        let count = match stream.peek(&mut unread) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            came => came?,
        };
        Ok(unread[..count].windows(OK.len()).filter(|start| *start == OK).count())
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
