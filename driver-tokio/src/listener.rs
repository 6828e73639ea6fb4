use std::sync::Arc;
use std::time::Duration;

use delayline_core::{Identity, Keyspace, Shard, UnixMs, Wakeup};
use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::time::{interval_at, sleep, timeout};

use crate::inbox::Bell;
use crate::link::ATTEMPT;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often a silent connection is asked whether it still lives.
const PULSE: Duration = Duration::from_secs(15);

/// Hears notifications on a connection of its own, so that a large reply does not delay them; reconnects for ever.
pub(crate) async fn listen(
    client: redis::Client,
    keys: Arc<Keyspace>,
    identity: Identity,
    heads: bool,
    bell: Bell,
) {
    let mut channels: Vec<String> =
        keys.shards().iter().map(|shard| keys.wake_channel(shard, identity)).collect();
    let heads: Vec<(String, Shard)> = match heads {
        true => keys.shards().iter().map(|shard| (keys.head_channel(shard), shard)).collect(),
        false => Vec::new(),
    };
    channels.extend(heads.iter().map(|(channel, _)| channel.clone()));
    let mut pause = FIRST_PAUSE;
    loop {
        match timeout(ATTEMPT, subscribe(&client, &channels)).await {
            Ok(Ok((sink, stream))) => {
                pause = FIRST_PAUSE;
                bell.tell(Wakeup::Subscribed).await;
                hear(sink, stream, &heads, &bell).await;
                bell.tell(Wakeup::Unsubscribed).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "no subscription to notifications"),
            Err(_) => tracing::debug!("no subscription to notifications: no answer"),
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

async fn subscribe(
    client: &redis::Client,
    channels: &[String],
) -> redis::RedisResult<(PubSubSink, PubSubStream)> {
    let (mut sink, stream) = client.get_async_pubsub().await?.split();
    sink.subscribe(channels).await?;
    Ok((sink, stream))
}

/// Until the connection ends, or is taken for dead.
async fn hear(mut sink: PubSubSink, mut stream: PubSubStream, heads: &[(String, Shard)], bell: &Bell) {
    let mut pulse = interval_at(tokio::time::Instant::now() + PULSE, PULSE);
    loop {
        tokio::select! {
            message = stream.next() => {
                let Some(message) = message else { return };
                if let Some(wakeup) = read(message.get_channel_name(), message.get_payload_bytes(), heads) {
                    bell.ring(wakeup);
                }
            }
            _ = pulse.tick() => {
                if !matches!(timeout(ATTEMPT, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}

fn read(channel: &str, payload: &[u8], heads: &[(String, Shard)]) -> Option<Wakeup> {
    let payload = std::str::from_utf8(payload).ok()?;
    Some(match heads.iter().find(|(head, _)| head == channel) {
        Some((_, shard)) => Wakeup::Head(*shard, UnixMs(payload.parse().ok()?)),
        None => Wakeup::Ready(payload.parse().ok()?),
    })
}
