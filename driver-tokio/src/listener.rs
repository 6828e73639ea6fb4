use std::sync::Arc;
use std::time::{Duration, Instant};

use delayline_core::{Identity, Keyspace, Shard, UnixMs, Wakeup};
use futures_util::{FutureExt, StreamExt};
use redis::Msg;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::oneshot;
use tokio::time::{interval_at, sleep, timeout};

use crate::inbox::Bell;
use crate::link::ATTEMPT;
use crate::meters;
use crate::site::Site;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often a silent connection is asked whether it still lives.
const PULSE: Duration = Duration::from_secs(30);

/// What an engine listens to.
pub(crate) struct Channels {
    names: Vec<String>,
    heads: Vec<(String, Shard)>,
}

impl Channels {
    /// The engine's own in every shard, and the shards' heads if it tends them.
    pub(crate) fn new(keys: &Keyspace, identity: Identity, heads: bool) -> Channels {
        let shards = || keys.shards().iter();
        let mut names: Vec<String> = shards().map(|shard| keys.wake_channel(shard, identity)).collect();
        let heads: Vec<(String, Shard)> =
            shards().filter(|_| heads).map(|shard| (keys.head_channel(shard), shard)).collect();
        names.extend(heads.iter().map(|(channel, _)| channel.clone()));
        Channels { names, heads }
    }

    fn read(&self, message: &Msg) -> Option<Wakeup> {
        let (channel, payload) = (message.get_channel_name(), message.get_payload_bytes());
        let payload = std::str::from_utf8(payload).ok()?;
        Some(match self.heads.iter().find(|(head, _)| head == channel) {
            Some((_, shard)) => Wakeup::Head(*shard, UnixMs(payload.parse().ok()?)),
            None => Wakeup::Ready(payload.parse().ok()?),
        })
    }
}

/// Hears notifications on a connection of its own, so that a large reply does not delay them; reconnects until it is
/// hushed, and wherever the commands go by then.
pub(crate) async fn listen(
    client: redis::Client,
    channels: Channels,
    site: Arc<Site>,
    bell: Bell,
    mut hushed: oneshot::Receiver<()>,
) {
    let mut pause = FIRST_PAUSE;
    let mut is_again = false;
    loop {
        let (moves, since) = (site.moves(), Instant::now());
        match timeout(ATTEMPT, subscribe(&client, &channels)).await {
            Ok(Ok((sink, stream))) => {
                pause = FIRST_PAUSE;
                site.answered(since);
                if std::mem::replace(&mut is_again, true) {
                    meters::reconnected("wakeups");
                }
                bell.tell(Wakeup::Subscribed).await;
                let heard = tokio::select! {
                    heard = hear(sink, stream, &channels, &bell, &mut hushed) => heard,
                    () = site.moves_on(moves) => Heard::Part,
                };
                if heard == Heard::All {
                    return;
                }
                bell.tell(Wakeup::Unsubscribed).await;
            }
            Ok(Err(error)) if error.is_io_error() => site.lost(&error.to_string(), since),
            Ok(Err(error)) => tracing::debug!(%error, "no subscription to notifications"),
            Err(_) => site.lost("no answer to an attempt to connect", since),
        }
        tokio::select! {
            () = sleep(pause) => {}
            _ = &mut hushed => return,
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

#[derive(PartialEq, Eq)]
enum Heard {
    /// All that was sent until the subscription was ended on purpose.
    All,
    /// What was sent until the connection ended, or was taken for dead.
    Part,
}

async fn subscribe(
    client: &redis::Client,
    channels: &Channels,
) -> redis::RedisResult<(PubSubSink, PubSubStream)> {
    let (mut sink, stream) = client.get_async_pubsub().await?.split();
    sink.subscribe(&channels.names).await?;
    Ok((sink, stream))
}

async fn hear(
    mut sink: PubSubSink,
    mut stream: PubSubStream,
    channels: &Channels,
    bell: &Bell,
    hushed: &mut oneshot::Receiver<()>,
) -> Heard {
    let mut pulse = interval_at(tokio::time::Instant::now() + PULSE, PULSE);
    let ring = |message: &Msg| {
        if let Some(wakeup) = channels.read(message) {
            bell.ring(wakeup);
        }
    };
    loop {
        tokio::select! {
            message = stream.next() => match message {
                Some(message) => ring(&message),
                None => return Heard::Part,
            },
            _ = pulse.tick() => {
                if !matches!(timeout(ATTEMPT, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
                    return Heard::Part;
                }
            }
            _ = &mut *hushed => {
                let _ = sink.unsubscribe(&channels.names).await;
                while let Some(Some(message)) = stream.next().now_or_never() {
                    ring(&message);
                }
                return Heard::All;
            }
        }
    }
}
