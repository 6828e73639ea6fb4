use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use delayline_core::{
    Answer, Ask, CancelOutcome, Command, Job as Delivery, JobEdit, JobId, NameError, NotEditable, Place,
    QueueConfig, QueueName, RescheduleOutcome, Sizes, Stats, UnixMs,
};

use futures_util::stream::{self, BoxStream, Stream, StreamExt};

use crate::client::Office;
use crate::codec::Coder;
use crate::inbox::unexpected;
use crate::invalid;
use crate::when::unix_ms;
use crate::{Cursor, Edited, Error, Inspected, Page, Publish, Published, Taking, When};

/// How often an edit begins anew because the job changed between being read and being edited.
const EDIT_TRIES: usize = 5;

/// A queue of a client's. Queues are made by their first job; naming one costs nothing.
///
/// `T` is what its jobs are; they are written and read by the queue's [`Codec`](crate::Codec). Clones are cheap.
///
/// ```
/// # #[cfg(feature = "memory")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use std::time::Duration;
/// use delayline_tokio::{CancelOutcome, Client, Place, QueueConfig, RescheduleOutcome};
///
/// let client = Client::connect("memory://").await?;
/// let reminders = client.queue::<String>("reminders")?;
/// let day = Duration::from_secs(86_400);
///
/// reminders.publish(&"water the plants".into()).id("plants").delay(day).await?;
/// assert!(reminders.publish(&"again".into()).id("plants").await?.duplicate);
/// assert!(reminders.upsert("plants", &"water all plants".into()).delay(2 * day).await?.replaced);
/// let moved = reminders.reschedule("plants", 3 * day).await?;
/// assert_eq!(moved.outcome, RescheduleOutcome::Moved);
///
/// let found = reminders.inspect("plants").await?.expect("it waits");
/// assert_eq!(reminders.decode_inspected(&found)?, "water all plants");
/// let page = reminders.list(Place::Delayed, 100, None).await?;
/// assert_eq!((page.items.len(), page.next), (1, None));
/// assert_eq!(reminders.cancel("plants").await?, CancelOutcome::Cancelled);
///
/// reminders.configure(QueueConfig { attempts: Some(3), ..QueueConfig::default() }, None).await?;
/// reminders.pause().await?;
/// let stats = reminders.stats(0).await?;
/// assert_eq!((stats.counters.cancelled, stats.paused), (2, true));
/// reminders.destroy().await?;
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
pub struct Queue<T = Bytes> {
    office: Arc<Office>,
    name: QueueName,
    coder: Coder<T>,
}

/// What became of one job that was to be rescheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescheduled {
    /// What.
    pub outcome: RescheduleOutcome,
    /// The new due time, if it moved.
    pub due: Option<UnixMs>,
}

/// What became of dead letters that were requeued or purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadMoved {
    /// How many moved.
    pub moved: u64,
    /// How many dead letters are left.
    pub left: u64,
    /// For each id asked for, whether it moved; empty if all were meant.
    pub outcomes: Vec<bool>,
}

impl Queue<Bytes> {
    /// [`publish`](Queue::publish) for whatever is bytes.
    pub fn publish_bytes(&self, body: impl Into<Bytes>) -> Publish {
        self.publish(&body.into())
    }
}

impl<T: 'static> Queue<T> {
    pub(crate) fn new(office: Arc<Office>, name: QueueName, coder: Coder<T>) -> Queue<T> {
        if let Some(time) = office.store.held() {
            time.know(&name, &coder);
        }
        Queue { office, name, coder }
    }

    /// A job to be published, due at once unless its options say otherwise. Await it.
    pub fn publish(&self, job: &T) -> Publish {
        let body = self.coder.encode(job);
        let body = body.map_err(|error| Error::Encode { queue: self.name.clone(), why: error.to_string() });
        Publish::new(self.office.clone(), self.name.clone(), body, self.coder.content_type())
    }

    /// Publishes jobs in batches, and answers what became of each, in their order. Each succeeds or fails for itself.
    ///
    /// ```
    /// # #[cfg(feature = "memory")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use std::time::Duration;
    /// # let client = delayline_tokio::Client::connect("memory://").await?;
    /// let reminders = client.queue::<u32>("reminders")?;
    /// let jobs = (1..=3).map(|day| reminders.publish(&day).delay(Duration::from_secs(86_400 * u64::from(day))));
    /// for outcome in reminders.publish_all(jobs).await {
    ///     println!("due at {:?}", outcome?.due);
    /// }
    /// # Ok::<(), delayline_tokio::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn publish_all<I>(&self, jobs: I) -> Vec<Result<Published, Error>>
    where
        I: IntoIterator<Item = Publish, IntoIter: Send>,
    {
        Publish::stream(stream::iter(jobs)).collect().await
    }

    /// Publishes jobs in batches as the stream yields them, and answers what became of each, in their order. At most
    /// some thousands are on their way at a time.
    pub fn publish_stream<'a>(
        &self,
        jobs: impl Stream<Item = Publish> + Send + 'a,
    ) -> BoxStream<'a, Result<Published, Error>> {
        Publish::stream(jobs).boxed()
    }

    /// A job to be published under this id: if one waits under it, this one takes its place, in one step. One that is
    /// being run, or is dead, stays, and the answer is a duplicate: [`publish`](Queue::publish) with an id, and
    /// [`replace`](Publish::replace). Await it.
    pub fn upsert(&self, id: impl TryInto<JobId, Error: Into<NameError>>, job: &T) -> Publish {
        self.publish(job).id(id).replace()
    }

    /// Reads the job of a delivery, or of whatever else has its body.
    pub fn decode(&self, delivery: &Delivery) -> Result<T, Error> {
        self.read(&delivery.lease.id, &delivery.body, delivery.content_type.as_deref())
    }

    /// Reads an inspected job.
    pub fn decode_inspected(&self, inspected: &Inspected) -> Result<T, Error> {
        let contents = inspected.contents.as_ref().map_err(|error| Error::Record(error.clone()))?;
        self.read(&inspected.id, &contents.body, contents.content_type.as_deref())
    }

    fn read(&self, id: &JobId, body: &Bytes, content_type: Option<&str>) -> Result<T, Error> {
        self.coder.decode(body, content_type).map_err(|error| Error::Decode {
            queue: self.name.clone(),
            id: id.clone(),
            expected: std::any::type_name::<T>(),
            why: error.to_string(),
        })
    }

    pub(crate) fn coder(&self) -> &Coder<T> {
        &self.coder
    }
}

impl<T> Queue<T> {
    pub(crate) fn is_of(&self, office: &Office) -> bool {
        self.office.prefix == office.prefix && self.office.store.is(&office.store)
    }

    /// Where its store is: without user and password.
    pub fn address(&self) -> &str {
        &self.office.desk.site.address
    }

    /// Its name.
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// Jobs to be taken from this queue alone. Await it.
    pub fn take(&self) -> Taking {
        Taking::new(self.office.clone(), vec![self.name.clone()])
    }

    /// Takes a waiting job away. One that is being run, or is dead, stays.
    pub async fn cancel(
        &self,
        id: impl TryInto<JobId, Error: Into<NameError>>,
    ) -> Result<CancelOutcome, Error> {
        self.cancel_all(vec![named(id)?]).await.and_then(first)
    }

    /// Takes waiting jobs away, and answers what became of each, in their order.
    pub async fn cancel_all(&self, ids: Vec<JobId>) -> Result<Vec<CancelOutcome>, Error> {
        let mut outcomes = Vec::with_capacity(ids.len());
        for ids in ids.chunks(Command::JOBS_MAX) {
            match self.ask(Ask::Cancel { queue: self.name.clone(), ids: ids.to_vec() }).await? {
                Answer::Cancelled(more) => outcomes.extend(more),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(outcomes)
    }

    /// Gives a waiting job another due time. One that is being run, or is dead, stays.
    pub async fn reschedule(
        &self,
        id: impl TryInto<JobId, Error: Into<NameError>>,
        when: impl Into<When>,
    ) -> Result<Rescheduled, Error> {
        self.reschedule_all(vec![(named(id)?, when.into())]).await.and_then(first)
    }

    /// Gives waiting jobs other due times, and answers what became of each, in their order.
    pub async fn reschedule_all(&self, jobs: Vec<(JobId, When)>) -> Result<Vec<Rescheduled>, Error> {
        let now = unix_ms(self.office.wall());
        let jobs: Vec<_> = jobs.into_iter().map(|(id, when)| (id, when.due())).collect();
        jobs.iter().try_for_each(|(_, due)| due.validate(now))?;
        let mut rescheduled = Vec::new();
        for jobs in jobs.chunks(Command::JOBS_MAX) {
            match self.ask(Ask::Reschedule { queue: self.name.clone(), jobs: jobs.to_vec() }).await? {
                Answer::Rescheduled(more) => {
                    rescheduled.extend(more.into_iter().map(|(outcome, due)| Rescheduled {
                        outcome,
                        due: (outcome == RescheduleOutcome::Moved).then_some(due),
                    }));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(rescheduled)
    }

    /// Changes what `edit` names of a waiting job, and nothing else: its attempts, its due time and its TTL stay unless they
    /// are named. One that is being run, or is dead, stays as it is, and one that ended meanwhile does not come back.
    ///
    /// ```
    /// # #[cfg(feature = "memory")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use delayline_tokio::{Change, Edited, JobEdit};
    ///
    /// # let client = delayline_tokio::Client::connect("memory://").await?;
    /// let letters = client.bytes("letters")?;
    /// letters.publish_bytes("to an").id("17").await?;
    /// let edit = JobEdit { body: Some("to ann".into()), attempts: Change::Set(3), ..JobEdit::default() };
    /// assert!(matches!(letters.edit("17", &edit).await?, Edited::Done { .. }));
    /// assert_eq!(&letters.take().await?[0].body[..], b"to ann");
    /// # Ok::<(), delayline_tokio::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn edit(
        &self,
        id: impl TryInto<JobId, Error: Into<NameError>>,
        edit: &JobEdit,
    ) -> Result<Edited, Error> {
        let id = named(id)?;
        for _ in 0..EDIT_TRIES {
            let Some(found) = self.inspect(id.clone()).await? else { return Ok(Edited::Gone) };
            let job = match edit.apply(self.name.clone(), found, unix_ms(self.office.wall())) {
                Ok(job) => job,
                Err(NotEditable::Invalid(invalid)) => return Err(invalid.into()),
                Err(why) => return Ok(Edited::NotEditable(why)),
            };
            if let Some(due) = Publish::job(&self.office, job).await?.due {
                return Ok(Edited::Done { due });
            }
        }
        Ok(Edited::Contended)
    }

    /// Reads a job; `None` if there is none of this name.
    pub async fn inspect(
        &self,
        id: impl TryInto<JobId, Error: Into<NameError>>,
    ) -> Result<Option<Inspected>, Error> {
        match self.ask(Ask::Inspect { queue: self.name.clone(), id: named(id)? }).await? {
            Answer::Inspected(stored) => Ok(stored.map(Inspected::from)),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads jobs in one state, page by page, at most `limit` of 1 to 256 at a time; large jobs make pages shorter.
    ///
    /// Ready and delayed jobs come by due time, leased ones by the end of their lease, dead ones by the time of death.
    pub async fn list(
        &self,
        place: Place,
        limit: u16,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Inspected>, Error> {
        let after = cursor.map(Cursor::job).transpose()?;
        match self.ask(Ask::List { queue: self.name.clone(), place, limit, after }).await? {
            Answer::Listed { jobs, more } => {
                let next = jobs.last().filter(|_| more).map(|job| Cursor::of_job(job.at, job.id.clone()));
                Ok(Page { items: jobs.into_iter().map(Inspected::from).collect(), next })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Reads dead letters page by page: [`list`](Queue::list) of [`Place::Dead`].
    pub async fn dead_letters(&self, limit: u16, cursor: Option<&Cursor>) -> Result<Page<Inspected>, Error> {
        self.list(Place::Dead, limit, cursor).await
    }

    /// Reads the queue's config, counters and sizes, and how many jobs come due in each of the next `hours`, at most 48.
    pub async fn stats(&self, hours: u8) -> Result<Stats, Error> {
        match self.ask(Ask::Stats { queue: self.name.clone(), hours }).await? {
            Answer::Counted(stats) => Ok(stats),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes these dead letters due, with all their attempts, and answers which of them were there.
    pub async fn requeue(&self, ids: Vec<JobId>) -> Result<DeadMoved, Error> {
        self.move_dead(Some(ids), |queue, ids| Ask::Requeue { queue, ids }).await
    }

    /// Makes all dead letters due, with all their attempts.
    pub async fn requeue_all(&self) -> Result<DeadMoved, Error> {
        self.move_dead(None, |queue, ids| Ask::Requeue { queue, ids }).await
    }

    /// Removes these dead letters, and answers which of them were there.
    pub async fn purge(&self, ids: Vec<JobId>) -> Result<DeadMoved, Error> {
        self.move_dead(Some(ids), |queue, ids| Ask::Purge { queue, ids }).await
    }

    /// Removes all dead letters.
    pub async fn purge_all(&self) -> Result<DeadMoved, Error> {
        self.move_dead(None, |queue, ids| Ask::Purge { queue, ids }).await
    }

    /// Replaces the queue's config, and answers its new version. With a `cfgver`, only if that is the version in force;
    /// otherwise the answer is [`Error::Conflict`].
    pub async fn configure(&self, config: QueueConfig, cfgver: Option<u64>) -> Result<u64, Error> {
        invalid::config(&config)?;
        let queue = self.name.clone();
        self.change(Ask::Configure { queue, cfgver, config }).await
    }

    /// Stops deliveries from the queue; what is being run goes on, and publishing too. Answers the config's version.
    pub async fn pause(&self) -> Result<u64, Error> {
        self.change(Ask::Pause { queue: self.name.clone(), paused: true }).await
    }

    /// Ends a pause. Answers the config's version.
    pub async fn resume(&self) -> Result<u64, Error> {
        self.change(Ask::Pause { queue: self.name.clone(), paused: false }).await
    }

    /// Removes the queue with all it holds, and answers how much that was; `None` if there was no such queue.
    pub async fn destroy(&self) -> Result<Option<Sizes>, Error> {
        match self.ask(Ask::Destroy { queue: self.name.clone() }).await? {
            Answer::Destroyed(sizes) => Ok(sizes),
            other => Err(unexpected(&other)),
        }
    }

    async fn change(&self, ask: Ask) -> Result<u64, Error> {
        match self.ask(ask).await? {
            Answer::Configured { cfgver } => Ok(cfgver),
            Answer::Conflict { cfgver } => Err(Error::Conflict { queue: self.name.clone(), cfgver }),
            other => Err(unexpected(&other)),
        }
    }

    async fn move_dead(
        &self,
        ids: Option<Vec<JobId>>,
        ask: impl Fn(QueueName, Option<Vec<JobId>>) -> Ask,
    ) -> Result<DeadMoved, Error> {
        match self.ask(ask(self.name.clone(), ids)).await? {
            Answer::DeadMoved { moved, left, outcomes } => Ok(DeadMoved { moved, left, outcomes }),
            other => Err(unexpected(&other)),
        }
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        self.office.request(ask).await
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Queue<T> {
        let Queue { office, name, coder } = self;
        Queue { office: office.clone(), name: name.clone(), coder: coder.clone() }
    }
}

impl<T> From<&Queue<T>> for QueueName {
    fn from(queue: &Queue<T>) -> QueueName {
        queue.name.clone()
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.name).finish()
    }
}

fn named(id: impl TryInto<JobId, Error: Into<NameError>>) -> Result<JobId, Error> {
    id.try_into().map_err(|error| Error::Name(error.into()))
}

fn first<T>(outcomes: Vec<T>) -> Result<T, Error> {
    outcomes.into_iter().next().ok_or_else(|| Error::Broken("an answer without an outcome".to_owned()))
}
