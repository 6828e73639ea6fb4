use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use delayline_core::{DELAY_MAX_MS, Due, NewJob, TooLarge};
use delayline_tokio::{Backoff, JobId, Publish, Queue, QueueName, UnixMs};

/// The largest body that is moved, which is what a client publishes unless it is told otherwise.
pub(super) const BODY_MAX: usize = 1 << 20;
/// What the headers of a job may take together: the rest of what a record allows is kept for what else it says.
const HEADERS_MAX: usize = 2_944;

/// A job as it is to be in delayline.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) queue: QueueName,
    pub(super) id: JobId,
    /// When it is due; of a dead letter, when it died.
    pub(super) due: UnixMs,
    /// How long it lived on when it was read; `None` for ever.
    pub(super) ttl: Option<Duration>,
    pub(super) read: Instant,
    /// The most attempts, and that the next follows at once on one that failed; the queue's if not set.
    pub(super) attempts: Option<u16>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    /// Why it is dead, if it is.
    pub(super) dead: Option<&'static str>,
}

impl Arrival {
    /// What would be refused of it, before anything is done.
    pub(super) fn check(&self) -> Result<(), String> {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        if headers > HEADERS_MAX {
            return Err(format!("its attributes take over {HEADERS_MAX} bytes"));
        }
        TooLarge::check(&self.body, BODY_MAX)
            .map_err(|_| format!("its body is over the limit of {BODY_MAX} bytes"))?;
        if self.dead.is_some() {
            return Ok(());
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = UnixMs(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
        let job = NewJob {
            due: Due::At(self.due),
            ttl_ms: self.remaining().map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            attempts: self.attempts,
            published: now,
            ..NewJob::new(self.queue.clone(), self.id.clone(), Bytes::new())
        };
        job.validate().map_err(|invalid| match invalid {
            delayline_tokio::Invalid::Ttl { .. } => "it expires before it is due".to_owned(),
            delayline_tokio::Invalid::Delay(_) => "it is due in over 10 years".to_owned(),
            delayline_tokio::Invalid::TtlTooLong(_) => "it expires in over 10 years".to_owned(),
            invalid => invalid.to_string(),
        })
    }

    /// How long it lives on now; what has ended since it was read ends in a moment.
    fn remaining(&self) -> Option<Duration> {
        Some(self.ttl?.saturating_sub(self.read.elapsed()).max(Duration::from_millis(1)))
    }

    /// The same, to be published. A dead letter is due when nobody waits for it any more: it is buried long before.
    pub(super) fn publish(self, queue: &Queue) -> Publish {
        let ttl = self.remaining();
        let mut publish = queue.publish_bytes(self.body).id(self.id);
        publish = match self.dead {
            Some(_) => publish.delay(Duration::from_millis(DELAY_MAX_MS)),
            None => publish.at(UNIX_EPOCH + Duration::from_millis(self.due.0)),
        };
        if let Some(ttl) = ttl.filter(|_| self.dead.is_none()) {
            publish = publish.ttl(ttl);
        }
        if let Some(attempts) = self.attempts {
            publish = publish.attempts(attempts).backoff(Backoff::None).lost_delay(Duration::ZERO);
        }
        self.headers.into_iter().fold(publish, |publish, (name, value)| publish.header(name, value))
    }
}
