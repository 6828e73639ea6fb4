use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Speaks to an HTTP service: a connection a request, as HTTP/1.0 has it, so that the answer ends where the connection
/// does.
#[derive(Clone, Copy, Debug)]
pub struct Http {
    address: SocketAddr,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: String,
}

impl Http {
    /// The service at an address.
    pub fn new(address: SocketAddr) -> Http {
        Http { address }
    }

    /// Sends a request and reads the answer while it sends.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn ask(&self, method: &str, path: &str, content_type: &str, body: &str) -> Response {
        let answer = self.exchange(method, path, content_type, body);
        let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let (head, body) =
            answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {answer:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Response { status: status.unwrap_or_else(|| panic!("{head:?}")), body: body.to_string() }
    }

    fn exchange(&self, method: &str, path: &str, content_type: &str, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (len, mut sender) = (body.len(), stream.try_clone()?);
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {len}\r\n\r\n"
        );
        thread::scope(|scope| {
            scope.spawn(move || {
                sender.write_all(head.as_bytes())?;
                sender.write_all(body.as_bytes())
            });
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        })
    }
}
