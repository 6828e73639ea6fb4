use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::until;

/// An HTTP server that keeps what is sent to it, and answers as a test says; first 200 to everything.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Push {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// When all of it had arrived, by this machine's clock, in Unix milliseconds.
    pub arrived_ms: u64,
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// With which status.
    pub status: u16,
    /// After which time.
    pub delay: Duration,
    /// With which headers.
    pub headers: Vec<(&'static str, String)>,
    /// With which body.
    pub body: String,
}

type Answering = dyn Fn(&Push) -> Answer + Send;

struct Shared {
    pushes: Mutex<Vec<Push>>,
    answering: Mutex<Box<Answering>>,
}

impl Receiver {
    /// Starts one.
    ///
    /// # Panics
    /// If this machine has no port or thread left.
    pub fn start() -> Receiver {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            pushes: Mutex::default(),
            answering: Mutex::new(Box::new(|_| Answer::default())),
        });
        let router = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        runtime.spawn(async { axum::serve(listener, router).await });
        Receiver { address, shared, runtime: Some(runtime) }
    }

    /// Its address as clients write it: `http://127.0.0.1:1234`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers so from now on.
    pub fn answer(&self, answering: impl Fn(&Push) -> Answer + Send + 'static) {
        *lock(&self.shared.answering) = Box::new(answering);
    }

    /// All that arrived, in that order.
    pub fn pushes(&self) -> Vec<Push> {
        lock(&self.shared.pushes).clone()
    }

    /// All that arrived, once that is as many as `count`.
    ///
    /// # Panics
    /// If it is fewer within `limit`.
    pub fn wait(&self, count: usize, limit: Duration) -> Vec<Push> {
        until(&format!("{count} pushes"), limit, || Some(self.pushes()).filter(|all| all.len() >= count))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Push {
    /// Its body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Default for Answer {
    fn default() -> Answer {
        Answer { status: 200, delay: Duration::ZERO, headers: Vec::new(), body: String::new() }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("pushes", &self.pushes).finish_non_exhaustive()
    }
}

async fn receive(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let arrived_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let push = Push { method, uri, headers, body, arrived_ms };
    let answer = lock(&shared.answering)(&push);
    lock(&shared.pushes).push(push);
    sleep(answer.delay).await;
    let headers = answer.headers.into_iter().map(|(name, value)| {
        let value = HeaderValue::from_str(&value).expect("the value of a header");
        (HeaderName::from_static(name), value)
    });
    let status = StatusCode::from_u16(answer.status).expect("a status");
    (status, headers.collect::<HeaderMap>(), answer.body)
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_is_kept_and_answered_as_a_test_says() {
        let receiver = Receiver::start();
        receiver.answer(|push| Answer {
            status: 503,
            headers: vec![("retry-after", "7".to_string())],
            body: push.text(),
            ..Answer::default()
        });
        let asked = ureq::post(format!("{}/hook?a=1", receiver.url()))
            .config()
            .http_status_as_error(false)
            .build()
            .header("x-attempt", "2")
            .send("a body");
        let mut answer = asked.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &"7".parse().unwrap())
        );
        assert_eq!(answer.body_mut().read_to_string().unwrap(), "a body");
        let pushes = receiver.wait(1, Duration::from_secs(10));
        assert_eq!((pushes[0].uri.to_string(), pushes[0].text()), ("/hook?a=1".into(), "a body".into()));
        assert_eq!(pushes[0].headers["x-attempt"], "2");
    }
}
