use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use delayline_http::push::Callback;
use delayline_tokio::{Cursor, Inspected, JobId, Page, QueueName, UnixMs};
use tokio::time::{Instant, timeout};

use super::callbacks;
use super::pushed_queue::{PushedQueue, Shared};
use crate::failure::Failure;
use crate::service::registry::Kind;

/// How often dead letters are looked for that died of nothing that this process did.
const EVERY: Duration = Duration::from_secs(30);
/// A dead letter of the same millisecond may come to stand before one that was told of, but not so long after it: Redis's
/// clock has gone on by then.
const SETTLED: Duration = Duration::from_secs(2);
const PAGE: u16 = 100;
/// How many pages are read before other queues have their turn.
const PAGES: usize = 10;
/// How long one callback is tried; then it is tried again with the next look.
const TRIED: Duration = Duration::from_secs(5);

/// Tells other queues of dead letters, in the order of their deaths.
///
/// Up to which it has is kept in the registry once it is certain that no other stands before it. So each death is told of
/// at least once, and again if two processes look at the same time, or one ended before it could keep that.
pub(super) struct DeadLetters {
    shared: Arc<Shared>,
    told: HashMap<QueueName, Told>,
}

/// Those that were told of and stand behind the kept cursor, and since when.
type Told = BTreeMap<(UnixMs, JobId), Instant>;

impl DeadLetters {
    pub(super) fn new(shared: Arc<Shared>) -> DeadLetters {
        DeadLetters { shared, told: HashMap::new() }
    }

    /// Looks again and again; never ends.
    pub(super) async fn run(mut self) {
        loop {
            let death = self.shared.death.notified();
            let mut soon = false;
            for queue in self.shared.queues.all() {
                if !queue.settings.tells_of_deaths() {
                    continue;
                }
                let told = self.told.entry(queue.name.clone()).or_default();
                match look(&queue, told).await {
                    Ok(has_more) => soon |= has_more || !told.is_empty(),
                    Err(why) => {
                        tracing::warn!(queue = %queue.name, %why, "callbacks of dead letters wait");
                    }
                }
            }
            self.told.retain(|name, _| self.shared.queues.get(name).is_some());
            let _ = timeout(if soon { SETTLED } else { EVERY }, death).await;
        }
    }
}

/// Tells of what is new, and answers whether there is more.
async fn look(queue: &PushedQueue, told: &mut Told) -> Result<bool, Failure> {
    let shared = &queue.shared;
    let kept = shared.registry.notes(Kind::PushDead, &[queue.name.as_str()]).await?.pop().flatten();
    let mut cursor: Option<Cursor> = kept.and_then(|text| text.parse().ok());
    let letters = shared.client.bytes(&queue.name)?;
    let mut has_more = true;
    let mut pages = 0;
    while has_more && pages < PAGES {
        let Page { items, next } = letters.dead_letters(PAGE, cursor.as_ref()).await?;
        for letter in &items {
            tell(queue, letter, told).await?;
        }
        has_more = next.is_some();
        cursor = next.or(cursor);
        pages += 1;
    }
    settle(queue, told).await?;
    Ok(has_more)
}

async fn tell(queue: &PushedQueue, letter: &Inspected, told: &mut Told) -> Result<(), Failure> {
    let key = (letter.at, letter.id.clone());
    if told.contains_key(&key) {
        return Ok(());
    }
    let headers = letter.contents.as_ref().map(|contents| contents.headers.as_slice()).unwrap_or_default();
    // What the job says wrongly of callbacks is why it died: the queue's own is told of that.
    let callback = queue.settings.callbacks(&queue.name, headers).map(|callbacks| callbacks.died);
    let callback = callback.unwrap_or_else(|_| queue.settings.failure_callback.clone());
    if let Some(callback) = callback {
        let callback = Callback::died(callback, &queue.name, letter);
        callbacks::publish(&queue.shared.client, callback, Instant::now() + TRIED).await?;
    }
    told.insert(key, Instant::now());
    Ok(())
}

/// Keeps up to which letter none can come before it any more.
async fn settle(queue: &PushedQueue, told: &mut Told) -> Result<(), Failure> {
    let settled = told.iter().take_while(|(_, at)| at.elapsed() >= SETTLED).last();
    let Some(((at, id), _)) = settled else { return Ok(()) };
    let last = (*at, id.clone());
    let cursor = Cursor::after_job(last.0, last.1.clone()).to_string();
    queue.shared.registry.note(&[(Kind::PushDead, queue.name.as_str(), cursor)]).await?;
    told.retain(|key, _| *key > last);
    Ok(())
}
