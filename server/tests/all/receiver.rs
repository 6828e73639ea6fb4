use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::SockRef;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::eventually;
use crate::service::Service;

/// What pushes to receivers of tests need.
pub(crate) const ALLOW: [&str; 2] = ["--push-allow", "127.0.0.0/8"];

/// A real HTTP server that pushes go to, and that answers as a test wants it to. It ends when this is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// By this status, these headers and this body.
    With(u16, &'static str, Vec<u8>),
    /// The same, after so long.
    Slowly(Duration, u16),
    /// Never.
    HangBeforeHead,
    /// By this status, and half of a body.
    HangAfterHead(u16),
    /// The connection is reset.
    Reset,
    /// A byte each 50 ms, head and all.
    DripHead,
    /// A head, and a body of a byte each 50 ms.
    DripBody(u16),
    /// By a body that never ends.
    Endless(u16),
}

impl Reply {
    pub(crate) fn status(status: u16) -> Reply {
        Reply::With(status, "", Vec::new())
    }

    pub(crate) fn json(json: &Value) -> Reply {
        Reply::With(200, "content-type: application/json\r\n", json.to_string().into_bytes())
    }
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Receiver {
    /// Answers each request by what `decide` says of it, and of how many came before.
    pub(crate) async fn start(
        decide: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static,
    ) -> Receiver {
        Receiver::at("127.0.0.1:0", decide).await
    }

    pub(crate) async fn at(
        address: &str,
        decide: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static,
    ) -> Receiver {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, decide) = (Arc::new(Seen::default()), Arc::new(decide));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                kept.connections.fetch_add(1, Ordering::Relaxed);
                let (seen, decide) = (Arc::clone(&kept), Arc::clone(&decide));
                tokio::spawn(async move {
                    let _ = serve(stream, &seen, &*decide).await;
                });
            }
        });
        Receiver { address, seen, task }
    }

    pub(crate) async fn always(reply: Reply) -> Receiver {
        Receiver::start(move |_, _| reply.clone()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/jobs", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.requests.lock().unwrap().len()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// The most requests that were under way at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.seen.most.load(Ordering::Relaxed)
    }

    /// Waits until so many requests came.
    pub(crate) async fn has(&self, count: usize) -> Vec<Received> {
        eventually(&format!("{count} requests came"), async || {
            let requests = self.requests();
            (requests.len() >= count).then_some(requests)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    stream: TcpStream,
    seen: &Seen,
    decide: &(dyn Fn(usize, &Received) -> Reply + Send + Sync),
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(received) = read(&mut stream).await? {
        let now = seen.now.fetch_add(1, Ordering::Relaxed) + 1;
        seen.most.fetch_max(now, Ordering::Relaxed);
        let before = {
            let mut requests = seen.requests.lock().unwrap();
            requests.push(received.clone());
            requests.len() - 1
        };
        let replied = reply(stream.get_mut(), decide(before, &received)).await;
        seen.now.fetch_sub(1, Ordering::Relaxed);
        replied?;
    }
    Ok(())
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Received>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Received { at: Instant::now(), path, headers, body }))
}

async fn reply(stream: &mut TcpStream, reply: Reply) -> io::Result<()> {
    let head = |status, length: usize| format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n");
    match reply {
        Reply::With(status, headers, body) => {
            let head = format!("{}{headers}\r\n", head(status, body.len()));
            stream.write_all(&[head.as_bytes(), &body].concat()).await
        }
        Reply::Slowly(after, status) => {
            sleep(after).await;
            stream.write_all(format!("{}\r\n", head(status, 0)).as_bytes()).await
        }
        Reply::HangBeforeHead => std::future::pending().await,
        Reply::HangAfterHead(status) => {
            stream.write_all(format!("{}\r\nhalf", head(status, 8)).as_bytes()).await?;
            std::future::pending().await
        }
        Reply::Reset => {
            SockRef::from(&*stream).set_linger(Some(Duration::ZERO))?;
            Err(io::ErrorKind::ConnectionReset.into())
        }
        // Longer than any push waits.
        Reply::DripHead => {
            drip(stream, format!("{}pad: {}", head(200, 0), "x".repeat(10_000)).as_bytes()).await
        }
        Reply::DripBody(status) => {
            stream.write_all(format!("{}\r\n", head(status, 10_000)).as_bytes()).await?;
            drip(stream, &[b'x'; 10_000]).await
        }
        Reply::Endless(status) => {
            stream.write_all(format!("{}\r\n", head(status, usize::MAX / 2)).as_bytes()).await?;
            loop {
                stream.write_all(&[b'x'; 16 << 10]).await?;
            }
        }
    }
}

async fn drip(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    for byte in bytes {
        stream.write_all(&[*byte]).await?;
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

impl Service {
    /// Has the jobs of a queue pushed, as `push` says, with what else `config` says.
    pub(crate) async fn pushes(&self, queue: &str, push: Value, config: Value) {
        let mut config = config;
        config["push"] = push;
        let answer = self.put(&format!("/v1/queues/{queue}/config"), config.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// The dead letters of a queue, once there are so many.
    pub(crate) async fn dead(&self, queue: &str, count: usize) -> Vec<Value> {
        eventually(&format!("{count} dead letters in {queue}"), async || {
            let answer = self.get(&format!("/v1/queues/{queue}/dead")).await;
            let jobs = answer.json["jobs"].as_array().cloned().unwrap_or_default();
            (jobs.len() >= count).then_some(jobs)
        })
        .await
    }

    /// A counter of a queue.
    pub(crate) async fn counted(&self, queue: &str, event: &str) -> u64 {
        self.get(&format!("/v1/queues/{queue}")).await.json["counters"][event].as_u64().unwrap_or_default()
    }

    /// Waits until a counter of a queue has come so far.
    pub(crate) async fn counts(&self, queue: &str, event: &str, count: u64) {
        eventually(&format!("{count} {event} in {queue}"), async || {
            (self.counted(queue, event).await >= count).then_some(())
        })
        .await;
        assert_eq!(self.counted(queue, event).await, count);
    }
}

/// A config that says where to push to, and no more.
pub(crate) fn to(receiver: &Receiver) -> Value {
    json!({ "url": receiver.url() })
}

/// The text that a cursor stands for.
pub(crate) fn base64url(text: &str) -> String {
    let bits = text.bytes().map(|byte| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        _ => 63,
    });
    let bits: Vec<u8> = bits.flat_map(|six| (0..6).rev().map(move |bit| six >> bit & 1)).collect();
    let bytes = bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect();
    String::from_utf8(bytes).unwrap()
}
