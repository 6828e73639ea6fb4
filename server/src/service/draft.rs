use std::time::Duration;

use delayline_http::Draft;
use delayline_tokio::{Publish, Queue};

/// The job as it is to be published; the queue checks the rest.
pub(crate) fn publish(draft: Draft, queue: &Queue) -> Publish {
    let mut publish = queue.publish(&draft.body);
    if let Some(due) = draft.due {
        publish = publish.when(due);
    }
    if let Some(id) = draft.id {
        publish = publish.id(id);
    }
    if draft.replace {
        publish = publish.replace();
    }
    if let Some(attempts) = draft.attempts {
        publish = publish.attempts(attempts);
    }
    if let Some(backoff) = draft.backoff {
        publish = publish.backoff(backoff);
    }
    if let Some(ttl) = draft.ttl {
        publish = publish.ttl(Duration::from_millis(ttl.0));
    }
    if let Some(content_type) = draft.content_type {
        publish = publish.content_type(content_type);
    }
    if let Some(trace) = draft.trace {
        publish = publish.trace(trace);
    }
    draft.headers.into_iter().fold(publish, |publish, (name, value)| publish.header(name, value))
}
