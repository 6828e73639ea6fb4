use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use delayline_http::Problem;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;

use super::handshake::{Greeting, greet};
use super::stream::{Stream, Transport};
use super::wire::Wire;
use crate::service::access::Access;
use crate::service::limits::Patience;
use crate::service::peers::Peer;
use crate::service::reception::Reception;
use crate::service::rejection::Rejection;
use crate::service::request_context::RequestContext;
use crate::service::request_id::RequestId;
use crate::service::seldom::Seldom;
use crate::service::socket::Socket;
use crate::service::tls::Tls;

/// The most bytes of a request's head, and what is read of a body at once.
const BUFFER: usize = 64 << 10;

/// A connection that has just been made.
pub(super) struct Accepted {
    pub(super) socket: Arc<Socket>,
    pub(super) peer: Arc<Peer>,
    pub(super) patience: Patience,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) access: Access,
    pub(super) warned: Arc<Seldom>,
}

/// Answers the requests that come over a connection, until it ends, is closed, or the service shuts down.
pub(super) async fn serve(accepted: Accepted, reception: Reception, mut closing: watch::Receiver<bool>) {
    let (peer, access) = (Arc::clone(&accepted.peer), accepted.access.clone());
    let patience = accepted.patience;
    let greeted = tokio::select! { biased;
        greeted = accepted.greet() => greeted,
        () = peer.closing() => None,
        () = is_true(&mut closing) => None,
    };
    match greeted {
        Some(Greeting::Ready(stream)) => answer(stream, peer, reception, access, patience, closing).await,
        Some(Greeting::NoTls(stream)) => answer_once(stream, patience, no_tls).await,
        None => {}
    }
}

/// Answers one request with a refusal.
pub(super) async fn refuse(accepted: Accepted, why: impl Fn() -> Response) {
    let patience = accepted.patience;
    match accepted.greet().await {
        Some(Greeting::Ready(stream) | Greeting::NoTls(stream)) => answer_once(stream, patience, why).await,
        None => {}
    }
}

impl Accepted {
    /// The connection as HTTP sees it, unless it ends before that.
    async fn greet(self) -> Option<Greeting> {
        let Accepted { socket, peer, patience, tls, warned, .. } = self;
        let wire = Wire::new(socket, Arc::clone(&peer), patience.body);
        let Some(tls) = tls else {
            return Some(Greeting::Ready(Stream::new(Transport::Clear(wire), peer, patience.header)));
        };
        let greeted = greet(wire, peer, &tls, patience.header).await;
        greeted.unwrap_or_else(|error| {
            tracing::debug!(%error, "a connection did not come to TLS");
            if let Some(more) = warned.is_due("handshake") {
                tracing::warn!(more, "clients fail at TLS: {error}");
            }
            None
        })
    }
}

async fn answer(
    stream: Stream,
    peer: Arc<Peer>,
    reception: Reception,
    access: Access,
    patience: Patience,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let serving = peer.serves();
        let context = RequestContext::new(Arc::clone(&peer), peer.client(request.headers()));
        let exchange = access.begin(&request, &context);
        let answer = exchange.answered(reception.answer(context, request.map(Body::new)));
        async {
            let response = answer.await;
            peer.releases();
            drop(serving);
            Ok::<_, Infallible>(response)
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
    let is_broken = is_broken || peer.broke_off_unread().await;
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

async fn answer_once(stream: Stream, patience: Patience, why: impl Fn() -> Response) {
    let service = service_fn(|request: Request<Incoming>| {
        let mut response = why();
        RequestId::of(request.headers()).put_into(response.headers_mut());
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        async { Ok::<_, Infallible>(response) }
    });
    let _ = builder(patience).serve_connection(TokioIo::new(stream), service).await;
}

fn no_tls() -> Response {
    Rejection(Problem::bad("tls_required", "this port speaks TLS alone: ask for the same by https://"))
        .into_response()
}

fn builder(patience: Patience) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience.idle).max_buf_size(BUFFER);
    builder
}
