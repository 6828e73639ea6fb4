use std::sync::Arc;
use std::time::Duration;

use delayline_http::push::{
    Answered, CALLBACK_BODY_BYTES, Callback, Outcome, Request, Unsendable, batch_verdicts, verdict,
};
use delayline_tokio::{Delivery, QueueName, Reason, UnixMs, Verdict};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::circuit::Health;
use super::claim::Claim;
use super::pushed_queue::PushedQueue;
use super::sender::{Answer, Unanswered};
use super::target::{Busy, Entry, Target};
use super::{callbacks, metrics, noted};

/// How long a job that was taken waits for its turn; then it is put off, and takes no place from others.
const PATIENCE: Duration = Duration::from_secs(5);
/// For how long a job is put off whose target is busy.
const BUSY: Duration = Duration::from_secs(1);
/// How long a callback is tried; then the push is a failed attempt, so that it shows why it does not end.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// What is left of a lease for the last verdict.
const LAST: Duration = Duration::from_secs(5);
/// How much of the answer to a batch is read, for itself and for each of its jobs.
const BATCH_ANSWER_BYTES: usize = 16 << 10;
const RESULT_BYTES: usize = 2 << 10;

/// Jobs that were taken together.
pub(super) struct Taken {
    pub(super) jobs: Vec<Delivery>,
    pub(super) at: Instant,
}

/// Why a job is not pushed now.
enum Later {
    /// Its target has no room.
    After(Duration),
    /// This process is to stop.
    Stopping,
}

/// A request that may be begun: one of those of its target, and one of those of this process.
struct Place<'a> {
    entry: Entry,
    _permit: SemaphorePermit<'a>,
}

/// What came of a request.
struct Pushed {
    sent: Result<Answer, Unanswered>,
    verdict: Verdict,
}

/// Pushes one job, and ends its delivery.
pub(super) async fn deliver(queue: Arc<PushedQueue>, claim: Claim, job: Delivery, at: Instant) {
    let until = at + queue.lease() - LAST;
    let verdict = push(&queue, &job, at, until).await;
    claim.settle(vec![verdict], until).await;
}

async fn push(queue: &PushedQueue, job: &Delivery, at: Instant, until: Instant) -> Verdict {
    let callbacks = match queue.settings.callbacks(&queue.name, &job.headers) {
        Ok(callbacks) => callbacks,
        Err(error) => return error.into(),
    };
    let url = match queue.push.targets.of(job) {
        Ok(url) => url,
        Err(error) => return Unsendable::from(error).into(),
    };
    let target = queue.shared.targets.of(&url.origin());
    let place = match enter(queue, &target, at + PATIENCE).await {
        Ok(place) => place,
        Err(later) => return later.into(),
    };
    let request = match queue.push.request(job, now()) {
        Ok(request) => request,
        Err(unsendable) => return unsendable.into(),
    };
    let wanted = if callbacks.delivered.is_some() { CALLBACK_BODY_BYTES } else { 0 };
    let Pushed { sent, verdict } = send(queue, place, request, wanted).await;
    match (sent, verdict, callbacks.delivered) {
        (Ok(answer), Verdict::Ack, Some(callback)) => tell(queue, callback, job, &answer, until).await,
        (_, verdict, _) => verdict,
    }
}

/// Pushes jobs together, and ends their deliveries, each by its own verdict.
pub(super) async fn deliver_batch(queue: Arc<PushedQueue>, claim: Claim, taken: Taken) {
    let Taken { jobs, at } = taken;
    let until = at + queue.lease() - LAST;
    let verdicts = push_batch(&queue, &jobs, at).await;
    claim.settle(verdicts, until).await;
}

async fn push_batch(queue: &PushedQueue, jobs: &[Delivery], at: Instant) -> Vec<Verdict> {
    let all = |verdict: Verdict| vec![verdict; jobs.len()];
    let Some(url) = queue.settings.url.as_ref().map(|url| &url.0) else { return all(Verdict::Release) };
    let target = queue.shared.targets.of(&url.origin());
    let place = match enter(queue, &target, at + PATIENCE).await {
        Ok(place) => place,
        Err(later) => return all(later.into()),
    };
    let request = match queue.push.batch(url, jobs, now()) {
        Ok(request) => request,
        Err(unsendable) => return all(unsendable.into()),
    };
    let wanted = BATCH_ANSWER_BYTES + jobs.len() * RESULT_BYTES;
    let Pushed { sent, verdict } = send(queue, place, request, wanted).await;
    match sent {
        Ok(answer) => batch_verdicts(jobs, &answer.outcome(), answer.is_whole, now()),
        Err(_) => all(verdict),
    }
}

/// Waits until a request may be begun, but not for long.
async fn enter<'a>(queue: &'a PushedQueue, target: &Arc<Target>, until: Instant) -> Result<Place<'a>, Later> {
    let permit = timeout_at(until, queue.shared.requests.acquire()).await;
    let permit = permit.map_err(|_| Later::After(BUSY))?.map_err(|_| Later::Stopping)?;
    loop {
        let freed = target.freed();
        let now = Instant::now();
        match target.enter(&queue.allowance, now.into_std()) {
            Ok(entry) if Instant::from_std(entry.turn) > until => return Err(Later::After(BUSY)),
            Ok(entry) => {
                sleep_until(entry.turn.into()).await;
                return Ok(Place { entry, _permit: permit });
            }
            Err(Busy::Held(Some(held))) => return Err(Later::After(held - now.into_std())),
            Err(Busy::Held(None)) => return Err(Later::After(BUSY)),
            Err(Busy::Full) if queue.is_stopping() => return Err(Later::Stopping),
            Err(Busy::Full) => {
                timeout_at(until, freed).await.map_err(|_| Later::After(BUSY))?;
            }
        }
    }
}

/// Sends a request, and tells its target how it did.
async fn send(queue: &PushedQueue, place: Place<'_>, request: Request, wanted: usize) -> Pushed {
    let begun = Instant::now();
    let sent = queue.sender.send(request, queue.timeout(), wanted).await;
    metrics::answered(outcome(&sent), begun.elapsed());
    let verdict = judge(&sent);
    let hold = match (&sent, &verdict) {
        (Ok(Answer { status: 429 | 503, .. }), Verdict::Nack { after_ms: Some(ms), .. }) => {
            Some(Duration::from_millis(*ms))
        }
        _ => None,
    };
    let why = match &verdict {
        Verdict::Nack { reason, .. } | Verdict::Bury { reason } => Some(reason.as_str()),
        _ => None,
    };
    let target = place.entry.target();
    if place.entry.end(health(&sent), why, hold) {
        noted::note(queue, &target).await;
    }
    Pushed { sent, verdict }
}

fn judge(sent: &Result<Answer, Unanswered>) -> Verdict {
    let outcome = match sent {
        Ok(answer) => answer.outcome(),
        Err(Unanswered::TimedOut(after)) => {
            Outcome::TimedOut { after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX) }
        }
        Err(Unanswered::Failed(why)) => Outcome::Failed(why),
        Err(Unanswered::Refused(refused)) => {
            return Verdict::Bury { reason: Reason::new(&format!("it cannot be pushed: {refused}")) };
        }
    };
    verdict(&outcome, now())
}

/// What an outcome tells about the target: that it says no is an answer too.
fn health(sent: &Result<Answer, Unanswered>) -> Health {
    match sent {
        Ok(Answer { status: 500..=599, .. }) | Err(Unanswered::TimedOut(_) | Unanswered::Failed(_)) => {
            Health::Failed
        }
        Ok(_) => Health::Alive,
        Err(Unanswered::Refused(_)) => Health::Unknown,
    }
}

fn outcome(sent: &Result<Answer, Unanswered>) -> &'static str {
    match sent {
        Ok(Answer { status: 200..=299, .. }) => "2xx",
        Ok(Answer { status: 300..=399, .. }) => "3xx",
        Ok(Answer { status: 400..=499, .. }) => "4xx",
        Ok(_) => "5xx",
        Err(Unanswered::TimedOut(_)) => "timed_out",
        Err(Unanswered::Refused(_)) => "refused",
        Err(Unanswered::Failed(_)) => "failed",
    }
}

/// Tells another queue of a delivery, and acknowledges it only then.
async fn tell(
    queue: &PushedQueue,
    callback: QueueName,
    job: &Delivery,
    answer: &Answer,
    until: Instant,
) -> Verdict {
    let answered = Answered {
        status: answer.status,
        content_type: answer.content_type.as_deref(),
        body: &answer.body,
        is_whole: answer.is_whole,
    };
    let callback = Callback::delivered(callback, job, &answered);
    let until = until.min(Instant::now() + TOLD_WITHIN);
    match callbacks::publish(&queue.shared.client, callback, until).await {
        Ok(()) => Verdict::Ack,
        Err(why) => {
            let why = format!("answered {}, but its callback was not published: {why}", answer.status);
            Verdict::Nack { after_ms: None, reason: Reason::new(&why) }
        }
    }
}

impl From<Later> for Verdict {
    fn from(later: Later) -> Verdict {
        match later {
            Later::Stopping => Verdict::Release,
            Later::After(wait) => {
                let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                Verdict::Snooze { after_ms: ms.saturating_add(1) }
            }
        }
    }
}

fn now() -> UnixMs {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    UnixMs(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}
