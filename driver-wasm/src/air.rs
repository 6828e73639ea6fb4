use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use delayline_core::{Engine, Held, Job, Millis, Refusal, Reply, Ticket, Transmit, Verdict};
use futures_util::Stream;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;

use crate::World;
use crate::rest::Landed;

/// What is under way: round trips, and deliveries.
pub(crate) struct Air<'a> {
    flights: FuturesUnordered<LocalBoxFuture<'a, (Ticket, Landed)>>,
    deliveries: FuturesUnordered<LocalBoxFuture<'a, Delivered>>,
}

/// A delivery that has ended.
pub(crate) struct Delivered {
    pub(crate) held: Held,
    pub(crate) verdict: Verdict,
    /// How long a failed attempt waits that says nothing else.
    pub(crate) retry_ms: u64,
}

/// What an await was ended by.
pub(crate) enum Woke {
    Landed(Ticket, Landed),
    Delivered(Delivered),
    Slept,
}

impl<'a> Air<'a> {
    pub(crate) fn new() -> Air<'a> {
        Air { flights: FuturesUnordered::new(), deliveries: FuturesUnordered::new() }
    }

    pub(crate) fn send<W: World>(&self, world: &'a W, transmit: Transmit<'_>) {
        let ticket = transmit.ticket;
        let sent = world.send(transmit);
        self.flights.push(Box::pin(async move { (ticket, sent.await) }));
    }

    pub(crate) fn deliver<W: World>(&self, world: &'a W, held: Held, job: Job) {
        let retry_ms = job.lease.retry_ms;
        self.deliveries.push(Box::pin(async move {
            let verdict = world.deliver(job).await;
            Delivered { held, verdict, retry_ms }
        }));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.flights.len() + self.deliveries.len()
    }

    pub(crate) fn delivering(&self) -> usize {
        self.deliveries.len()
    }

    /// The next thing that happens; the only await there is.
    pub(crate) async fn next(&mut self, sleep: impl Future<Output = ()>) -> Woke {
        let mut sleep = pin!(sleep);
        poll_fn(|context| {
            if let Poll::Ready(Some((ticket, landed))) = Pin::new(&mut self.flights).poll_next(context) {
                return Poll::Ready(Woke::Landed(ticket, landed));
            }
            if let Poll::Ready(Some(delivered)) = Pin::new(&mut self.deliveries).poll_next(context) {
                return Poll::Ready(Woke::Delivered(delivered));
            }
            sleep.as_mut().poll(context).map(|()| Woke::Slept)
        })
        .await
    }
}

/// Tells the engine what became of a round trip.
pub(crate) fn land(engine: &mut Engine, now: Millis, ticket: Ticket, landed: Landed) {
    match landed {
        Landed::Replies(replies) => engine.handle_replies(now, ticket, replies),
        Landed::Lost { .. } => engine.handle_loss(now, ticket),
    }
}

/// What a round trip tells about Redis: `None` if it answered, if only that a script is to be sent, else what is wrong.
pub(crate) fn trouble(landed: &Landed) -> Option<String> {
    match landed {
        Landed::Lost { why } => Some(why.clone()),
        Landed::Replies(replies) => match replies.first() {
            None => Some("an empty answer".to_owned()),
            Some(Reply::Refused(refusal)) if *refusal != Refusal::NoScript => Some(refusal.to_string()),
            Some(_) => None,
        },
    }
}
