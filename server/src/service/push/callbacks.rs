use std::time::Duration;

use delayline_http::push::Callback;
use delayline_tokio::{Client, Error};
use tokio::time::{Instant, sleep};

const JSON: &str = "application/json";
/// How long to wait before a callback is published again that was refused.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Publishes a callback, trying until then. One that waits already is there once.
pub(super) async fn publish(client: &Client, callback: Callback, until: Instant) -> Result<(), Error> {
    let Callback { queue, id, body } = callback;
    let queue = client.bytes(&queue)?;
    loop {
        match queue.publish_bytes(body.clone()).id(id.clone()).content_type(JSON).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() + AGAIN_AFTER >= until => return Err(error),
            Err(_) => sleep(AGAIN_AFTER).await,
        }
    }
}
