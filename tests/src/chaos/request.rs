use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Response;

/// Longer than the service waits for Redis and a take waits for jobs.
const PATIENCE: Duration = Duration::from_secs(8);

/// What became of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was answered.
    Answered(Response),
    /// It was not sent.
    Unsent,
    /// It was sent, and nobody answered.
    Unanswered,
}

/// Makes a request over a connection of its own, as HTTP/1.0 has it. A service that is gone is no error.
pub(super) async fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Outcome {
    let Ok(Ok(mut stream)) = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await else {
        return Outcome::Unsent;
    };
    let text = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let exchange = async {
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map(|_| answer)
    };
    match tokio::time::timeout(PATIENCE, exchange).await {
        Ok(Ok(answer)) => read(&answer).map_or(Outcome::Unanswered, Outcome::Answered),
        _ => Outcome::Unanswered,
    }
}

fn read(answer: &str) -> Option<Response> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let len: usize = head
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        })
        .unwrap_or(0);
    let status = head.split(' ').nth(1)?.parse().ok()?;
    (body.len() >= len).then(|| Response { status, body: body.to_string() })
}
