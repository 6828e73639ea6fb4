use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::endpoint::Endpoint;

/// How long a connection may take.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
/// How a good answer begins.
const OK: &[u8] = b"HTTP/1.1 200 ";
/// More bytes than come before a client leaves that reads none.
const MOST_ANSWERED: usize = 64 << 10;

/// A connection on which one request follows the other.
pub(crate) struct Wire {
    stream: Stream,
    address: SocketAddr,
    authorization: String,
    read: Vec<u8>,
}

enum Stream {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Wire {
    /// Connects from an address of this machine.
    pub(crate) async fn open(from: Ipv4Addr, to: &Endpoint) -> io::Result<Wire> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from.into(), 0))?;
        let stream =
            timeout(CONNECTED_WITHIN, socket.connect(to.address)).await.map_err(io::Error::from)??;
        stream.set_nodelay(true)?;
        let stream = match &to.tls {
            None => Stream::Clear(stream),
            Some(tls) => {
                let name = ServerName::IpAddress(to.address.ip().into());
                let shaking = timeout(CONNECTED_WITHIN, tls.connect(name, stream));
                Stream::Tls(Box::new(shaking.await.map_err(io::Error::from)??))
            }
        };
        let (address, authorization) = (to.address, to.authorization.clone());
        Ok(Wire { stream, address, authorization, read: Vec::new() })
    }

    /// A request's line and headers; `more` are lines that end in `\r\n`.
    pub(crate) fn head(&self, method: &str, path: &str, more: &str) -> String {
        let Wire { address, authorization, .. } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}{more}\r\n")
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Clear(stream) => stream.write_all(bytes).await,
            Stream::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        let length = format!("Content-Length: {}\r\n", body.len());
        let request = self.head(method, path, &length) + body;
        self.send(request.as_bytes()).await?;
        self.answer().await
    }

    /// Reads an answer whose length is said.
    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
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
    pub(crate) fn leave(self) -> io::Result<usize> {
        let unread = match self.stream {
            Stream::Clear(stream) => peek(stream)?,
            Stream::Tls(stream) => read(*stream)?,
        };
        Ok(unread.windows(OK.len()).filter(|start| *start == OK).count())
    }

    async fn more(&mut self) -> io::Result<()> {
        let read = match &mut self.stream {
            Stream::Clear(stream) => stream.read_buf(&mut self.read).await?,
            Stream::Tls(stream) => stream.read_buf(&mut self.read).await?,
        };
        match read {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// What has come, which stays unread: the system breaks the connection off.
fn peek(stream: TcpStream) -> io::Result<Vec<u8>> {
    // A runtime would tell what has come only once it has heard of it.
    let stream = stream.into_std()?;
    let mut unread = vec![0; MOST_ANSWERED];
    let count = match stream.peek(&mut unread) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        came => came?,
    };
    unread.truncate(count);
    Ok(unread)
}

/// What has come, which must be read to be told; then the connection is broken off.
fn read(stream: TlsStream<TcpStream>) -> io::Result<Vec<u8>> {
    let (stream, mut session) = stream.into_inner();
    stream.set_zero_linger()?;
    let (mut stream, mut text) = (stream.into_std()?, Vec::new());
    loop {
        match session.read_tls(&mut stream) {
            Ok(0) => return Ok(text),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(text),
            came => came?,
        };
        session.process_new_packets().map_err(io::Error::other)?;
        match session.reader().read_to_end(&mut text) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => drop(read?),
        }
    }
}
