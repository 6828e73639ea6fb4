use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use delayline_http::Problem;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::watch;

use super::stream::Stream;
use crate::limits::Patience;
use crate::peers::Peer;
use crate::rejection::Rejection;

/// The most bytes of a request's head, and what is read of a body at once.
const BUFFER: usize = 64 << 10;

/// Answers the requests that come over a connection, until it ends, is closed, or the service shuts down.
pub(super) async fn serve(
    stream: Stream,
    peer: Arc<Peer>,
    router: Router,
    patience: Patience,
    mut closing: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        let (peer, serving) = (Arc::clone(&peer), peer.serves());
        request.extensions_mut().insert(Arc::clone(&peer));
        let response = router.call(request.map(Body::new));
        async move {
            let response = response.await;
            peer.releases();
            drop(serving);
            response
        }
    });
    let mut connection = pin!(builder(patience).serve_connection(TokioIo::new(stream), service));
    let ended = async {
        tokio::select! {
            done = connection.as_mut() => done,
            () = is_true(&mut closing) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let is_broken = tokio::select! {
        done = ended => done.inspect_err(|error| tracing::debug!(%error, "a connection broke off")).is_err_and(|error| is_broken(&error)),
        () = peer.closing() => {
            tracing::debug!("a connection was closed that was silent");
            false
        }
    };
    peer.is_over(is_broken);
}

/// Whether the client broke the connection, with answers unread.
fn is_broken(error: &hyper::Error) -> bool {
    let why = std::error::Error::source(error).and_then(|why| why.downcast_ref::<io::Error>());
    why.is_some_and(|why| matches!(why.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
}

async fn is_true(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Answers one request with a refusal.
pub(super) async fn refuse(stream: Stream, patience: Patience, why: impl Fn() -> Problem) {
    let service = service_fn(|_: Request<Incoming>| {
        let mut response: Response = Rejection(why()).into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        async { Ok::<_, Infallible>(response) }
    });
    let _ = builder(patience).serve_connection(TokioIo::new(stream), service).await;
}

fn builder(patience: Patience) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience.idle).max_buf_size(BUFFER);
    builder
}
