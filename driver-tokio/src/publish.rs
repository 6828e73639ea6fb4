use std::future::{Future, IntoFuture};
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use delayline_core::{Backoff, JobId, NameError, NewJob, Published, QueueName, TooLarge, Trace};
use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::Error;
use crate::client::{Office, block_on};
use crate::inbox::{Reply, unexpected};
use crate::invalid::millis;
use crate::when::{When, unix_ms};

/// How many jobs are handed over together, and how many such batches at a time.
const BATCH: usize = 500;
const BATCHES: usize = 8;

/// A job about to be published: await it.
///
/// Its order among other jobs is that of the awaits. A future that is dropped before it ends may have published the job.
///
/// ```
/// # #[cfg(feature = "memory")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # use std::time::Duration;
/// # let client = delayline_tokio::Client::connect("memory://").await?;
/// let callbacks = client.queue::<String>("callbacks")?;
/// let published = callbacks
///     .publish(&"https://example.org/paid".to_owned())
///     .delay(Duration::from_secs(15))
///     .id(format!("order-{}", 17))
///     .attempts(10)
///     .backoff("15s 3m 10m 30m 30m 1h 2h 6h 15h".parse().unwrap())
///     .ttl(Duration::from_secs(7 * 86_400))
///     .header("tenant", "acme")
///     .await?;
/// assert_eq!(published.id.as_str(), "order-17");
/// println!("due at {:?}", published.due);
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "a job is published when this is awaited"]
pub struct Publish {
    office: Arc<Office>,
    queue: QueueName,
    body: Result<Bytes, Error>,
    id: Option<JobId>,
    replace: bool,
    when: When,
    ttl: Option<Duration>,
    attempts: Option<u16>,
    backoff: Option<Backoff>,
    lost_delay: Option<Duration>,
    content_type: Option<String>,
    headers: Vec<(String, String)>,
    trace: Option<Trace>,
    wait_for_memory: bool,
    timeout: Duration,
}

impl Publish {
    pub(crate) fn new(
        office: Arc<Office>,
        queue: QueueName,
        body: Result<Bytes, Error>,
        content_type: Option<&str>,
    ) -> Publish {
        let timeout = office.limits.timeout;
        Publish {
            office,
            queue,
            body,
            id: None,
            replace: false,
            when: When::default(),
            ttl: None,
            attempts: None,
            backoff: None,
            lost_delay: None,
            content_type: content_type.map(str::to_owned),
            headers: Vec::new(),
            trace: None,
            wait_for_memory: false,
            timeout,
        }
    }

    /// Due so long after the call, by Redis's clock; at most 10 years. Of this, [`at`](Publish::at) and
    /// [`when`](Publish::when) the last one counts.
    pub fn delay(self, delay: Duration) -> Publish {
        self.when(delay)
    }

    /// Due at this time, by Redis's clock; at once if it is past.
    pub fn at(self, at: SystemTime) -> Publish {
        self.when(at)
    }

    /// Due then.
    pub fn when(mut self, when: impl Into<When>) -> Publish {
        self.when = when.into();
        self
    }

    /// Its name in its queue. If a job of this name is there, be it a dead letter, nothing changes and the answer is a
    /// duplicate. A name is drawn if none is given. One that cannot be used is [`Error::Name`] when this is awaited.
    pub fn id(mut self, id: impl TryInto<JobId, Error: Into<NameError>>) -> Publish {
        match id.try_into() {
            Ok(id) => self.id = Some(id),
            Err(error) => self.body = Err(Error::Name(error.into())),
        }
        self
    }

    /// If a waiting job of this id is there, this one takes its place, in one step: the effect of a cancel and a publish.
    /// One that is being run, or is dead, stays, and the answer is a duplicate. Needs an id.
    pub fn replace(mut self) -> Publish {
        self.replace = true;
        self
    }

    /// The most attempts, 1 to 999; the queue's if not called.
    pub fn attempts(mut self, attempts: u16) -> Publish {
        self.attempts = Some(attempts);
        self
    }

    /// The delay before another attempt; the queue's if not called.
    pub fn backoff(mut self, backoff: Backoff) -> Publish {
        self.backoff = Some(backoff);
        self
    }

    /// When it expires, counted from the call; not shorter than its delay.
    pub fn ttl(mut self, ttl: Duration) -> Publish {
        self.ttl = Some(ttl);
        self
    }

    /// How long it waits after a lease that ended without a verdict; not at all if not called.
    pub fn lost_delay(mut self, delay: Duration) -> Publish {
        self.lost_delay = Some(delay);
        self
    }

    /// Something else that its consumer should know. Headers, content type, backoff and trace take 3 KiB together at most.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Publish {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The media type of the body; what the queue's codec writes if not called.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Publish {
        self.content_type = Some(media_type.into());
        self
    }

    /// The trace it belongs to.
    pub fn trace(mut self, trace: Trace) -> Publish {
        self.trace = Some(trace);
        self
    }

    /// Waits for room where Redis is out of memory, as long as for an answer. Without it that is [`Error::NotSent`] at once.
    pub fn wait_for_memory(mut self) -> Publish {
        self.wait_for_memory = true;
        self
    }

    /// How long to wait for an answer; the client's timeout if not called. After it the answer is [`Error::NotSent`] or
    /// [`Error::Unknown`].
    pub fn timeout(mut self, timeout: Duration) -> Publish {
        self.timeout = timeout;
        self
    }

    /// Publishes it from a thread without a runtime, such as that of a [`blocking`](crate::blocking) handler. Panics
    /// within one: await it there.
    pub fn blocking(self) -> Result<Published, Error> {
        block_on(self.into_future())?
    }

    /// Publishes jobs as they come, batch by batch, and answers in their order.
    pub(crate) fn stream(
        jobs: impl Stream<Item = Publish> + Send,
    ) -> impl Stream<Item = Result<Published, Error>> + Send {
        jobs.ready_chunks(BATCH).map(Publish::all).buffered(BATCHES).flat_map(stream::iter)
    }

    /// Publishes jobs together, those of the same client in one go, and answers in their order.
    async fn all(jobs: Vec<Publish>) -> Vec<Result<Published, Error>> {
        let mut handed = Vec::with_capacity(jobs.len());
        let mut jobs = jobs.into_iter().peekable();
        while let Some(first) = jobs.next() {
            let office = first.office.clone();
            let others = iter::from_fn(|| jobs.next_if(|job| Arc::ptr_eq(&job.office, &office)));
            let together: Vec<_> = iter::once(first).chain(others).map(Publish::into_job).collect();
            let answers = office.desk.order(together, office.limits.fail_fast).await;
            handed.extend(answers.into_iter().map(|answered| (office.clone(), answered)));
        }
        let mut published = Vec::with_capacity(handed.len());
        for (office, answered) in handed {
            published.push(match answered {
                Ok(answered) => answer(&office, answered).await,
                Err(error) => Err(error),
            });
        }
        published
    }

    /// Publishes a job that is made already.
    pub(crate) async fn job(office: &Office, job: NewJob) -> Result<Published, Error> {
        TooLarge::check(&job.body, office.limits.max_payload)?;
        let answered = office.desk.order(vec![Ok(job)], office.limits.fail_fast).await.pop();
        answer(office, answered.unwrap_or_else(|| Err(office.unknown()))?).await
    }

    fn into_job(self) -> Result<NewJob, Error> {
        let body = self.body?;
        TooLarge::check(&body, self.office.limits.max_payload)?;
        let now = self.office.wall();
        let job = NewJob {
            queue: self.queue,
            generated: self.id.is_none(),
            id: self.id.unwrap_or_else(|| self.office.ids.draw(now)),
            replace: self.replace,
            edit: None,
            due: self.when.due(),
            ttl_ms: self.ttl.map(millis),
            attempts: self.attempts,
            backoff: self.backoff,
            lost_delay_ms: self.lost_delay.map(millis),
            content_type: self.content_type,
            headers: self.headers,
            trace: self.trace,
            published: unix_ms(now),
            body,
            wait_for_memory: self.wait_for_memory,
            timeout_ms: millis(self.timeout),
        };
        job.validate()?;
        Ok(job)
    }
}

impl IntoFuture for Publish {
    type Output = Result<Published, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Published, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let span = tracing::debug_span!("publish", queue = %self.queue, id = tracing::field::Empty);
        let office = self.office.clone();
        let published = async move {
            let fail_fast = office.limits.fail_fast;
            let answered = office.desk.order_one(self.into_job()?, fail_fast).await?;
            let published = answer(&office, answered).await?;
            tracing::Span::current().record("id", tracing::field::display(&published.id));
            Ok(published)
        };
        Box::pin(published.instrument(span))
    }
}

async fn answer(office: &Office, answered: oneshot::Receiver<Reply>) -> Result<Published, Error> {
    let answer = answered.await.unwrap_or_else(|_| Err(office.unknown()))?;
    Published::try_from(answer).map_err(|other| unexpected(&other))
}
