use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use delayline_tokio::Span;
use delayline_tokio::redis::aio::{PubSubSink, PubSubStream};
use delayline_tokio::redis::{Client, Msg, RedisError, RedisResult, Value};
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::feed::{Feed, Full};
use super::refusal::Refusal;
use super::topic::Topic;

/// How often a silent connection is asked whether it still lives.
const PULSE: Duration = Duration::from_secs(30);

const SLOW: &str = "ERR messages came faster than they were read, and some are lost: subscribe again";
const MOVED: &str = "ERR Redis has become a replica, and messages may be lost: subscribe again, to wherever its address leads";

/// Who hears of which messages, over one connection for all of them, which is there as long as somebody listens.
pub(super) struct Subscriptions {
    /// Not bounded by itself: a subscriber gives two orders at most, and there are so many subscribers.
    orders: mpsc::UnboundedSender<Order>,
    numbers: AtomicU64,
    room: Arc<Semaphore>,
    most: usize,
}

/// One subscriber, until it is dropped.
pub(super) struct Subscription {
    number: u64,
    topics: Vec<Topic>,
    feed: Arc<Feed>,
    orders: mpsc::UnboundedSender<Order>,
    _room: OwnedSemaphorePermit,
}

/// Where messages come from.
pub(super) struct Source {
    pub(super) client: Client,
    pub(super) address: String,
    /// How long an attempt to connect may take.
    pub(super) attempt: Duration,
    /// How long an answer of Redis may take.
    pub(super) limit: Span,
    /// Changes when connections are to be made anew, since the server there is no primary any more.
    pub(super) moves: watch::Receiver<u64>,
}

enum Order {
    Subscribe { number: u64, topics: Vec<Topic>, feed: Arc<Feed>, done: oneshot::Sender<Result<(), Refusal>> },
    Leave(u64),
}

/// The task that listens.
struct Hub {
    source: Source,
    orders: mpsc::UnboundedReceiver<Order>,
    line: Option<Line>,
    subscribers: HashMap<u64, Subscriber>,
    /// Who hears of each.
    topics: HashMap<Topic, Vec<u64>>,
}

struct Subscriber {
    topics: Vec<Topic>,
    feed: Arc<Feed>,
}

struct Line {
    sink: PubSubSink,
    stream: PubSubStream,
}

impl Subscriptions {
    /// `most` subscribers at once.
    pub(super) fn new(source: Source, most: usize) -> Subscriptions {
        let (orders, given) = mpsc::unbounded_channel();
        let hub =
            Hub { source, orders: given, line: None, subscribers: HashMap::new(), topics: HashMap::new() };
        tokio::spawn(hub.run());
        let most = most.min(Semaphore::MAX_PERMITS);
        Subscriptions { orders, numbers: AtomicU64::new(0), room: Arc::new(Semaphore::new(most)), most }
    }

    /// Subscribes, once Redis has said that it is so.
    pub(super) async fn subscribe(&self, topics: Vec<Topic>) -> Result<Subscription, Refusal> {
        let room = Arc::clone(&self.room).try_acquire_owned();
        let room = room.map_err(|_| Refusal::TooManySubscriptions { most: self.most })?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let feed = Arc::new(Feed::default());
        for (index, topic) in topics.iter().enumerate() {
            feed.push(topic.subscribed(index + 1)).map_err(|Full| Refusal::TooManyTopics { most: index })?;
        }
        let (done, is_done) = oneshot::channel();
        let order = Order::Subscribe { number, topics: topics.clone(), feed: Arc::clone(&feed), done };
        // Dropped when the request is, it leaves, whether it is a subscriber by then or not.
        let orders = self.orders.clone();
        let subscription = Subscription { number, topics, feed, orders, _room: room };
        let _ = self.orders.send(order);
        is_done.await.unwrap_or(Err(Refusal::Closing))?;
        Ok(subscription)
    }
}

impl Subscription {
    pub(super) fn topics(&self) -> &[Topic] {
        &self.topics
    }

    pub(super) fn feed(&self) -> &Feed {
        &self.feed
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Leave(self.number));
    }
}

impl Hub {
    async fn run(mut self) {
        let mut pulse = interval(PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(Order::Subscribe { number, topics, feed, done }) => {
                        if self.line.is_none() {
                            pulse.reset();
                        }
                        let subscribed = self.subscribe(number, topics, feed).await;
                        let _ = done.send(subscribed);
                    }
                    Some(Order::Leave(number)) => self.leave(number).await,
                    None => return,
                },
                message = heard(&mut self.line) => match message {
                    Some(message) => self.pass_on(&message).await,
                    None => self.give_up(&self.broken("it was closed")),
                },
                _ = pulse.tick(), if self.line.is_some() => {
                    self.carry_out(async |sink| sink.ping::<Value>().await.map(drop)).await.unwrap_or_default();
                }
                Ok(()) = self.source.moves.changed() => self.give_up(MOVED),
            }
        }
    }

    async fn subscribe(&mut self, number: u64, topics: Vec<Topic>, feed: Arc<Feed>) -> Result<(), Refusal> {
        if self.line.is_none() {
            self.line = Some(self.connect().await?);
        }
        let is_new = |topic: &&Topic| !self.topics.contains_key(topic);
        let new: Vec<Topic> = topics.iter().filter(is_new).cloned().collect();
        if let Err(refusal) = self.carry_out(async |sink| tell(sink, &new, Listening::Begins).await).await {
            self.hang_up_if_alone();
            return Err(refusal);
        }
        for topic in &topics {
            self.topics.entry(topic.clone()).or_default().push(number);
        }
        self.subscribers.insert(number, Subscriber { topics, feed });
        Ok(())
    }

    async fn leave(&mut self, number: u64) {
        let Some(Subscriber { topics, .. }) = self.subscribers.remove(&number) else { return };
        let mut unheard = Vec::new();
        for topic in topics {
            let Some(numbers) = self.topics.get_mut(&topic) else { continue };
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.topics.remove(&topic);
                unheard.push(topic);
            }
        }
        self.hang_up_if_alone();
        // A failure has ended all subscriptions by now.
        let _ = self.carry_out(async |sink| tell(sink, &unheard, Listening::Ends).await).await;
    }

    async fn pass_on(&mut self, message: &Msg) {
        let topic = match message.get_pattern::<Option<Vec<u8>>>() {
            Ok(Some(pattern)) => Topic::Pattern(pattern),
            _ => Topic::Channel(message.get_channel().unwrap_or_default()),
        };
        let Some(numbers) = self.topics.get(&topic) else { return };
        let channel: Vec<u8> = message.get_channel().unwrap_or_default();
        let event = topic.message(&channel, message.get_payload_bytes());
        let mut slow = Vec::new();
        for number in numbers {
            let Some(subscriber) = self.subscribers.get(number) else { continue };
            if subscriber.feed.push(event.clone()) == Err(Full) {
                subscriber.feed.end(SLOW);
                slow.push(*number);
            }
        }
        for number in slow {
            self.leave(number).await;
        }
    }

    /// Has Redis carry something out, if there is a connection. One that fails is given up, with all subscriptions.
    async fn carry_out(
        &mut self,
        ask: impl AsyncFnOnce(&mut PubSubSink) -> RedisResult<()>,
    ) -> Result<(), Refusal> {
        let Some(line) = &mut self.line else { return Ok(()) };
        let limit = self.source.limit;
        let failed = match timeout(Duration::from_millis(limit.0), ask(&mut line.sink)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if error.is_connection_dropped() || error.is_unrecoverable_error() => {
                self.give_up(&self.broken(&error.to_string()));
                self.unreachable(&error)
            }
            Ok(Err(error)) => Refusal::Discarded(shown(&error)),
            Err(_) => {
                self.give_up(&self.broken(&format!("no answer within {limit}")));
                Refusal::Late { address: self.source.address.clone(), limit }
            }
        };
        Err(failed)
    }

    async fn connect(&self) -> Result<Line, Refusal> {
        match timeout(self.source.attempt, self.source.client.get_async_pubsub()).await {
            Ok(Ok(connection)) => {
                let (sink, stream) = connection.split();
                Ok(Line { sink, stream })
            }
            Ok(Err(error)) => Err(self.unreachable(&error)),
            Err(_) => {
                let (address, why) = (self.source.address.clone(), "it does not answer".to_owned());
                Err(Refusal::Unreachable { address, why })
            }
        }
    }

    /// Ends the connection and all subscriptions: messages that came since are lost, and only their readers can tell what
    /// that means to them.
    fn give_up(&mut self, why: &str) {
        self.line = None;
        self.topics.clear();
        for (_, subscriber) in self.subscribers.drain() {
            subscriber.feed.end(why);
        }
    }

    fn hang_up_if_alone(&mut self) {
        if self.subscribers.is_empty() {
            self.line = None;
        }
    }

    fn broken(&self, why: &str) -> String {
        let address = &self.source.address;
        format!("ERR the connection to {address} broke ({why}), and messages may be lost: subscribe again")
    }

    fn unreachable(&self, why: &RedisError) -> Refusal {
        Refusal::Unreachable { address: self.source.address.clone(), why: why.to_string() }
    }
}

#[derive(Clone, Copy)]
enum Listening {
    Begins,
    Ends,
}

/// The next message; without a connection there is none for ever.
async fn heard(line: &mut Option<Line>) -> Option<Msg> {
    match line {
        Some(line) => line.stream.next().await,
        None => std::future::pending().await,
    }
}

async fn tell(sink: &mut PubSubSink, topics: &[Topic], listening: Listening) -> RedisResult<()> {
    let (patterns, channels): (Vec<&Topic>, Vec<&Topic>) =
        topics.iter().partition(|topic| matches!(topic, Topic::Pattern(_)));
    let names = |topics: Vec<&Topic>| topics.into_iter().map(|topic| topic.name().to_vec()).collect();
    let (patterns, channels): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (names(patterns), names(channels));
    if !channels.is_empty() {
        match listening {
            Listening::Begins => sink.subscribe(&channels).await?,
            Listening::Ends => sink.unsubscribe(&channels).await?,
        }
    }
    if !patterns.is_empty() {
        match listening {
            Listening::Begins => sink.psubscribe(&patterns).await?,
            Listening::Ends => sink.punsubscribe(&patterns).await?,
        }
    }
    Ok(())
}

/// What Redis said.
fn shown(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => format!("ERR {error}"),
    }
}
