use std::any::type_name;
use std::fmt::{Debug, Display};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delayline_core::{Command, JobId, Place, QueueName, Reply, Stored};

use super::run::span;
use super::{TestClock, queues_of};
use crate::Inspected;
use crate::codec::Coder;

const PAGE: u16 = 256;

/// A job that waits, in a [`test()`](crate::test()).
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled<T> {
    /// The queue.
    pub queue: QueueName,
    /// The job's name.
    pub id: JobId,
    /// When it is due.
    pub due: SystemTime,
    /// How long that is from now; zero if it is due.
    pub due_in: Duration,
    /// How many attempts were spent.
    pub attempts: u16,
    /// What its publisher said beside the body.
    pub headers: Vec<(String, String)>,
    /// The job.
    pub job: T,
}

/// A dead letter, in a [`test()`](crate::test()).
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter<T> {
    /// The queue.
    pub queue: QueueName,
    /// The job's name.
    pub id: JobId,
    /// How many attempts were spent.
    pub attempts: u16,
    /// Why it died.
    pub reason: String,
    /// The job.
    pub job: T,
}

impl TestClock {
    /// The jobs that wait in the queues of `T`s that the test, or what it tests, has named; the soonest first.
    ///
    /// # Panics
    ///
    /// If one of them cannot be read.
    #[track_caller]
    pub fn scheduled<T: 'static>(&self) -> Vec<Scheduled<T>> {
        let mut scheduled = Vec::new();
        for (queue, coder) in queues_of::<T>(&self.time) {
            for place in [Place::Ready, Place::Delayed] {
                for stored in self.list(&queue, place) {
                    let due = stored.at;
                    let (inspected, headers, job) = read(&queue, &coder, stored);
                    scheduled.push(Scheduled {
                        queue: queue.clone(),
                        due: UNIX_EPOCH + Duration::from_millis(due.0),
                        due_in: Duration::from_millis(due.since(self.time.now())),
                        attempts: inspected.attempt(),
                        headers,
                        job,
                        id: inspected.id,
                    });
                }
            }
        }
        scheduled.sort_by(|one, other| (one.due, &one.id).cmp(&(other.due, &other.id)));
        scheduled
    }

    /// The dead letters in the queues of `T`s that the test, or what it tests, has named; the oldest of a queue first.
    ///
    /// # Panics
    ///
    /// If one of them cannot be read.
    #[track_caller]
    pub fn dead_letters<T: 'static>(&self) -> Vec<DeadLetter<T>> {
        let mut dead = Vec::new();
        for (queue, coder) in queues_of::<T>(&self.time) {
            for stored in self.list(&queue, Place::Dead) {
                let (inspected, _, job) = read(&queue, &coder, stored);
                let reason = inspected.last_reason().unwrap_or_default().to_owned();
                let attempts = inspected.attempt();
                dead.push(DeadLetter { queue: queue.clone(), id: inspected.id, attempts, reason, job });
            }
        }
        dead
    }

    /// That a job waits of which this is true; answers the soonest such.
    ///
    /// # Panics
    ///
    /// If there is none, with what waits instead.
    #[track_caller]
    pub fn assert_scheduled<T: Debug + 'static>(
        &self,
        is_it: impl Fn(&Scheduled<T>) -> bool,
    ) -> Scheduled<T> {
        let mut scheduled = self.scheduled();
        let Some(place) = scheduled.iter().position(is_it) else {
            panic!("no such {} waits; what waits is:{}", type_name::<T>(), shown(&scheduled));
        };
        scheduled.swap_remove(place)
    }

    /// That no job waits of which this is true.
    ///
    /// # Panics
    ///
    /// If there is one.
    #[track_caller]
    pub fn assert_not_scheduled<T: Debug + 'static>(&self, is_it: impl Fn(&Scheduled<T>) -> bool) {
        let mut scheduled = self.scheduled();
        scheduled.retain(is_it);
        let waits = shown(&scheduled);
        assert!(scheduled.is_empty(), "no such {} was to wait, and these do:{waits}", type_name::<T>());
    }

    /// That no `T` waits at all.
    ///
    /// # Panics
    ///
    /// If one does.
    #[track_caller]
    pub fn assert_nothing_scheduled<T: Debug + 'static>(&self) {
        self.assert_not_scheduled(|_: &Scheduled<T>| true);
    }

    /// That there is a dead letter of which this is true; answers the oldest such.
    ///
    /// # Panics
    ///
    /// If there is none, with those that are there instead.
    #[track_caller]
    pub fn assert_dead<T: Debug + 'static>(&self, is_it: impl Fn(&DeadLetter<T>) -> bool) -> DeadLetter<T> {
        let mut dead = self.dead_letters();
        let Some(place) = dead.iter().position(is_it) else {
            let there = dead.iter().map(|letter| {
                let DeadLetter { queue, id, attempts, reason, job } = letter;
                format!("queue {queue}, job {id}, after {attempts} attempts: {reason}: {job:?}")
            });
            panic!("no such {} is dead; what is dead is:{}", type_name::<T>(), lines(there));
        };
        dead.swap_remove(place)
    }

    fn list(&self, queue: &QueueName, place: Place) -> Vec<Stored> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let list =
                Command::List { queue: queue.clone(), place, limit: PAGE, max_bytes: u64::MAX >> 11, after };
            let Some(Reply::Listed { jobs, more, .. }) = self.memory.execute(&[list]).pop() else {
                return all;
            };
            after = jobs.last().map(|job| (job.at, job.id.clone()));
            all.extend(jobs);
            if !more || after.is_none() {
                return all;
            }
        }
    }
}

#[track_caller]
fn read<T: 'static>(
    queue: &QueueName,
    coder: &Coder<T>,
    stored: Stored,
) -> (Inspected, Vec<(String, String)>, T) {
    let inspected = Inspected::from(stored);
    let (headers, job) = match &inspected.contents {
        Ok(contents) => match coder.decode(&contents.body, contents.content_type.as_deref()) {
            Ok(job) => (contents.headers.clone(), job),
            Err(error) => unreadable::<T>(queue, &inspected.id, &error),
        },
        Err(error) => unreadable::<T>(queue, &inspected.id, error),
    };
    (inspected, headers, job)
}

#[track_caller]
fn unreadable<T>(queue: &QueueName, id: &JobId, error: &impl Display) -> ! {
    panic!("job {id} of queue {queue} cannot be read as {}: {error}", type_name::<T>());
}

fn shown<T: Debug>(scheduled: &[Scheduled<T>]) -> String {
    lines(scheduled.iter().map(|scheduled| {
        let Scheduled { queue, id, due_in, attempts, job, .. } = scheduled;
        format!("queue {queue}, job {id}, in {}, {attempts} attempts spent: {job:?}", span(*due_in))
    }))
}

pub(super) fn lines(texts: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = texts.collect();
    if lines.is_empty() { "\n  nothing".to_owned() } else { format!("\n  {}", lines.join("\n  ")) }
}
