use std::sync::Arc;
use std::time::Instant;

use super::pushed_queue::PushedQueue;
use super::target::Target;
use crate::service::registry::Kind;

/// Keeps what this process knows of a queue's target where every instance, and `delayline stats`, can read it.
pub(super) async fn note(queue: &PushedQueue, target: &Arc<Target>) {
    let state = serde_json::to_string(&target.state(Instant::now())).unwrap_or_default();
    let noted = queue.shared.registry.note(&[(Kind::Push, queue.name.as_str(), state)]).await;
    if let Err(error) = noted {
        tracing::debug!(queue = %queue.name, %error, "the state of a target was not kept for others to see");
    }
}
