use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use delayline_http::push::{BODY_BYTES, Outcome, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tower_service::Service;

use super::addresses::Refused;
use super::resolver::{ConnectError, Connector};

/// How much of an answer is read so that its connection can be used again.
const DRAINED_BYTES: usize = 64 << 10;
/// How long that may take where the answer is not needed.
const DRAINED_WITHIN: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(60);
/// The head of an answer is no larger.
const HEAD_BYTES: usize = 64 << 10;
/// How often an HTTP/2 connection with requests on it is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_WITHIN: Duration = Duration::from_secs(10);
const AGENT: &str = concat!("delayline/", env!("CARGO_PKG_VERSION"));

/// Sends requests, and follows no redirect. Its connections are its own.
pub(super) struct Sender {
    client: Client<Timed, Full<Bytes>>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Vec<u8>>,
    pub(super) content_type: Option<String>,
    /// Its beginning.
    pub(super) body: Vec<u8>,
    /// Whether that is all of it.
    pub(super) is_whole: bool,
}

/// Why nothing came back.
#[derive(Debug)]
pub(super) enum Unanswered {
    TimedOut(Duration),
    /// The address may not be connected to.
    Refused(Refused),
    Failed(String),
}

impl Sender {
    /// Keeps at most `idle` connections that are not in use.
    pub(super) fn new(
        connector: Connector,
        tls: ClientConfig,
        connect_within: Duration,
        idle: usize,
    ) -> Sender {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(idle)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .http1_max_buf_size(HEAD_BYTES)
            .http2_max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX))
            .http2_keep_alive_interval(PING_EVERY)
            .http2_keep_alive_timeout(PING_WITHIN)
            .build(Timed { connector, within: connect_within });
        Sender { client }
    }

    /// Sends it, and reads the beginning of the answer's body: of a success `wanted` bytes, else what a reason takes. The
    /// status stands whatever becomes of the body.
    pub(super) async fn send(
        &self,
        request: Request,
        within: Duration,
        wanted: usize,
    ) -> Result<Answer, Unanswered> {
        let end = Instant::now() + within;
        let request = written(request).map_err(Unanswered::Failed)?;
        let response = match timeout_at(end, self.client.request(request)).await {
            Err(_) => return Err(Unanswered::TimedOut(within)),
            Ok(Err(error)) => return Err(unanswered(&error)),
            Ok(Ok(response)) => response,
        };
        let headers = response.headers();
        let retry_after = headers.get(RETRY_AFTER).map(|value| value.as_bytes().to_vec());
        let (status, content_type) = (response.status().as_u16(), text(headers));
        let wanted = if (200..300).contains(&status) { wanted } else { BODY_BYTES };
        let (body, is_whole) = read(response, wanted, end).await;
        Ok(Answer { status, retry_after, content_type, body, is_whole })
    }
}

impl Answer {
    pub(super) fn outcome(&self) -> Outcome<'_> {
        Outcome::Answered { status: self.status, retry_after: self.retry_after.as_deref(), body: &self.body }
    }
}

fn text(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(CONTENT_TYPE)?.to_str().ok()?.to_owned())
}

fn written(request: Request) -> Result<hyper::Request<Full<Bytes>>, String> {
    let mut built =
        hyper::Request::builder().method(Method::POST).uri(request.url.as_str()).header(USER_AGENT, AGENT);
    for (name, value) in &request.headers {
        built = built.header(name, value);
    }
    built.body(Full::new(request.body)).map_err(|error| format!("the request cannot be written: {error}"))
}

/// Reads up to `wanted` bytes, and drops what follows; a body that is short is read to its end, so that the connection can
/// be used again.
async fn read(mut response: Response<Incoming>, wanted: usize, end: Instant) -> (Vec<u8>, bool) {
    let end = if wanted == 0 { end.min(Instant::now() + DRAINED_WITHIN) } else { end };
    let (mut body, mut drained) = (Vec::new(), 0);
    loop {
        let frame = match timeout_at(end, response.body_mut().frame()).await {
            Ok(None) => return (body, drained <= wanted),
            Ok(Some(Ok(frame))) => frame,
            Err(_) | Ok(Some(Err(_))) => return (body, false),
        };
        let Ok(data) = frame.into_data() else { continue };
        drained += data.len();
        let fits = data.len().min(wanted.saturating_sub(body.len()));
        body.extend_from_slice(data.get(..fits).unwrap_or_default());
        if drained > wanted.max(DRAINED_BYTES) {
            return (body, false);
        }
    }
}

fn unanswered(error: &hyper_util::client::legacy::Error) -> Unanswered {
    let mut why: &(dyn Error + 'static) = error;
    loop {
        if let Some(ConnectError::Refused(refused)) = why.downcast_ref() {
            return Unanswered::Refused(refused.clone());
        }
        match why.source() {
            Some(source) => why = source,
            // The innermost says what happened, the others only that something did.
            None => return Unanswered::Failed(why.to_string()),
        }
    }
}

/// Limits how long a connection takes, TLS included.
#[derive(Clone)]
struct Timed {
    connector: HttpsConnector<Connector>,
    within: Duration,
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Timed {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let host = uri.host().unwrap_or_default().to_owned();
        let (connecting, after) = (self.connector.call(uri), self.within);
        Box::pin(async move {
            timeout(after, connecting).await.map_err(|_| ConnectError::TimedOut { host, after })?
        })
    }
}
