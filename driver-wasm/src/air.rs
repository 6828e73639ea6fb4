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
    deliveries: FuturesUnordered<LocalBoxFuture<'a, (Held, Verdict)>>,
}

/// What an await was ended by.
pub(crate) enum Woke {
    Landed(Ticket, Landed),
    Delivered(Held, Verdict),
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
        self.deliveries.push(Box::pin(async move { (held, world.deliver(job).await) }));
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
            if let Poll::Ready(Some((held, verdict))) = Pin::new(&mut self.deliveries).poll_next(context) {
                return Poll::Ready(Woke::Delivered(held, verdict));
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

/// What a round trip tells about Redis: `None` if it answered, else what is wrong. That it does not know a script yet is an
/// answer.
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
