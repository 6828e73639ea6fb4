use std::collections::BTreeSet;

use delayline_tokio::{Client, QueueName};

use crate::failure::Failure;

const AT_ONCE: u16 = 1_000;

/// The names of all queues, in order, each once.
pub(super) async fn all(client: &Client) -> Result<BTreeSet<QueueName>, Failure> {
    let (mut names, mut cursor) = (BTreeSet::new(), None);
    loop {
        let page = client.queues(cursor.as_ref(), AT_ONCE).await?;
        names.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(names);
        }
    }
}
