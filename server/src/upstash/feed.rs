use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// The most events of a subscriber that wait to be read.
const EVENTS: usize = 1_024;
/// The most bytes of them. One event may be larger if none waits before it.
const BYTES: usize = 256 << 10;

/// What a subscriber is to read, in its order.
#[derive(Default)]
pub(super) struct Feed {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Bytes>,
    bytes: usize,
    /// Why nothing comes after them.
    ended: Option<String>,
}

/// The subscriber reads more slowly than messages come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Event(Bytes),
    /// Nothing any more, for this reason.
    End(String),
}

impl Feed {
    /// Puts an event behind those that wait.
    pub(super) fn push(&self, event: Bytes) -> Result<(), Full> {
        let mut waiting = self.waiting();
        let bytes = waiting.bytes + event.len();
        if !waiting.events.is_empty() && (waiting.events.len() >= EVENTS || bytes > BYTES) {
            return Err(Full);
        }
        waiting.bytes = bytes;
        waiting.events.push_back(event);
        self.changed.notify_one();
        Ok(())
    }

    /// Nothing comes after what waits.
    pub(super) fn end(&self, why: &str) {
        self.waiting().ended.get_or_insert_with(|| why.to_owned());
        self.changed.notify_one();
    }

    /// Waits for what comes next. There is one reader.
    pub(super) async fn next(&self) -> Next {
        loop {
            if let Some(next) = self.waiting().take() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take(&mut self) -> Option<Next> {
        match self.events.pop_front() {
            Some(event) => {
                self.bytes -= event.len();
                Some(Next::Event(event))
            }
            None => self.ended.clone().map(Next::End),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn event(bytes: usize) -> Bytes {
        vec![b'x'; bytes].into()
    }

    #[test]
    fn events_come_in_their_order_and_then_why_there_are_no_more() {
        let feed = Feed::default();
        feed.push("a".into()).unwrap();
        feed.push("b".into()).unwrap();
        feed.end("over");
        feed.end("over again");
        let next = || feed.next().now_or_never();
        assert_eq!(next(), Some(Next::Event("a".into())));
        assert_eq!(next(), Some(Next::Event("b".into())));
        assert_eq!(next(), Some(Next::End("over".to_owned())));
    }

    #[test]
    fn it_has_room_for_so_many_events_and_bytes() {
        let feed = Feed::default();
        for _ in 0..EVENTS {
            feed.push(event(1)).unwrap();
        }
        assert_eq!(feed.push(event(1)), Err(Full));
        feed.next().now_or_never().unwrap();
        feed.push(event(1)).unwrap();

        let feed = Feed::default();
        feed.push(event(2 * BYTES)).unwrap();
        assert_eq!(feed.push(event(1)), Err(Full));
        feed.next().now_or_never().unwrap();
        feed.push(event(BYTES)).unwrap();
        assert_eq!(feed.push(event(1)), Err(Full));
    }

    #[tokio::test]
    async fn who_waits_is_told() {
        let feed = Feed::default();
        let mut next = Box::pin(feed.next());
        assert!(next.as_mut().now_or_never().is_none());
        feed.push("a".into()).unwrap();
        assert_eq!(next.await, Next::Event("a".into()));
        let mut next = Box::pin(feed.next());
        assert!(next.as_mut().now_or_never().is_none());
        feed.end("over");
        assert_eq!(next.await, Next::End("over".to_owned()));
    }
}
