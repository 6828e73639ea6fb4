use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::service::Service;

/// A connection on which a test writes what it likes.
pub(crate) struct Raw<S = TcpStream>(pub(crate) S);

/// What came back on it.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) json: Value,
}

impl Raw {
    pub(crate) async fn connect(service: &Service) -> Raw {
        Raw::connect_to(service.address()).await
    }

    pub(crate) async fn connect_to(address: &str) -> Raw {
        Raw(TcpStream::connect(address).await.unwrap())
    }

    /// From another address of this machine: another client.
    pub(crate) async fn connect_from(from: IpAddr, service: &Service) -> Raw {
        Raw::connect_from_to(from, service.address()).await
    }

    pub(crate) async fn connect_from_to(from: IpAddr, address: &str) -> Raw {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        Raw(socket.connect(address.parse().unwrap()).await.unwrap())
    }

    /// On which little waits to be read.
    pub(crate) async fn connect_with_little_room(service: &Service) -> Raw {
        Raw::connect_with_little_room_to(service.address()).await
    }

    pub(crate) async fn connect_with_little_room_to(address: &str) -> Raw {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        Raw(socket.connect(address.parse().unwrap()).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    /// Sends a request with a body, and reads its answer.
    pub(crate) async fn ask(&mut self, route: &str, headers: &str, body: &str) -> Came {
        let length = body.len();
        let head =
            format!("{route} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.write(head + body).await;
        self.answer().await
    }

    pub(crate) async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).await.unwrap();
    }

    /// Writes what the service takes, until it takes no more.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// All that still comes, until the service closes the connection, as it must within 60 s.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = timeout(Duration::from_secs(60), self.0.read_to_end(&mut bytes)).await;
        assert!(read.is_ok(), "it stays open");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The next answer, which must come within 20 s.
    pub(crate) async fn answer(&mut self) -> Came {
        self.answer_to("GET").await
    }

    /// The answer to a request of that method: to HEAD there is no body.
    pub(crate) async fn answer_to(&mut self, method: &str) -> Came {
        timeout(Duration::from_secs(20), self.read(method != "HEAD")).await.expect("no answer")
    }

    async fn read(&mut self, has_body: bool) -> Came {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.expect("closed before the answer"));
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.filter(|_| has_body).map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.unwrap();
        Came { status, head, json: serde_json::from_slice(&body).unwrap_or_default() }
    }

    /// Whether the service closes the connection, without another answer, within 20 s.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        let closed = timeout(Duration::from_secs(20), self.0.read(&mut byte)).await;
        matches!(closed, Ok(Ok(0) | Err(_)))
    }
}

impl Came {
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.json["code"].as_str()), (status, Some(code)), "{self:?}");
    }
}
