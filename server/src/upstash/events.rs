use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::time::sleep;

use super::feed::Next;
use super::subscriptions::Subscription;
use crate::service::peers::Peer;

/// How often a comment is written where no event is: proxies end what is silent, and a peer that has died shows when it is
/// written to.
const HEARTBEAT: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b":\n\n";

const CLOSING: &str = "ERR the endpoint stops: subscribe again";

/// Answers with the events of a subscription, until the client leaves, Redis does, or `closing` ends. `counted` is dropped
/// with it.
pub(super) fn response<C: Send + 'static>(
    subscription: Subscription,
    peer: Arc<Peer>,
    closing: impl Future<Output = ()> + Send + 'static,
    counted: C,
) -> Response {
    let begun = Some((subscription, peer, Box::pin(closing), counted));
    let events = stream::unfold(begun, async |under_way| {
        let (subscription, peer, mut closing, counted) = under_way?;
        let next = tokio::select! {
            next = subscription.feed().next() => next,
            () = sleep(HEARTBEAT) => Next::Event(Bytes::from_static(COMMENT)),
            () = closing.as_mut() => Next::End(CLOSING.to_owned()),
            () = peer.gone() => return None,
        };
        Some(match next {
            Next::Event(event) => (event, Some((subscription, peer, closing, counted))),
            Next::End(why) => {
                let last = subscription.topics().iter().map(|topic| topic.ended(&why));
                (last.collect::<Vec<Bytes>>().concat().into(), None)
            }
        })
    });
    let events = futures_util::StreamExt::map(events, Ok::<Bytes, Infallible>);
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // nginx would hold events back otherwise.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}
