use bytes::Bytes;
use delayline_core::{Forward, JobId, UnixMs};

use crate::bug::Bug;
use crate::destination::{add, push};
use crate::script::Script;
use crate::sift::DueJob;

const STREAM_LIMIT: usize = 64;
const FORWARD_BYTES: u64 = 1_048_576;
const ERROR_BYTES: usize = 256;

impl Script<'_> {
    /// Appends first, removes after: whatever fails, a job is in one place or the other. Answers how many jobs went and
    /// whether more can go at once.
    pub(crate) fn forward(&mut self, limit: usize, to: Option<&Forward>) -> (usize, bool) {
        let meta = &self.queue.meta;
        let Some(forward) = meta.config.forward.clone() else {
            return (0, false);
        };
        if meta.paused || to.map(key) != Some(key(&forward)) {
            return (0, false);
        }
        let most = if let Forward::Stream(_) = forward { limit.min(STREAM_LIMIT) } else { limit };
        let (ready, more) = self.ready(most);
        if ready.is_empty() {
            return (0, false);
        }
        let jobs = self.sift(ready);
        let plain = self.plain(&forward, jobs);
        if self.planted(Bug::ForwardsTwice) {
            let _ = self.append(&forward, &plain);
        }
        let appended = self.append(&forward, &plain);
        let done = match appended {
            Ok(()) => {
                if !plain.is_empty() && self.queue.meta.forward_error.is_some() {
                    self.queue.meta.forward_error = Some(String::new());
                }
                for job in &plain {
                    self.vanishes(&job.id, job.state.as_ref());
                }
                plain.len()
            }
            Err(error) => {
                let kept = |id: &JobId| plain.iter().any(|job| job.id == *id);
                self.changes.out.due.retain(|id| !kept(id));
                self.queue.meta.forward_error = Some(error.chars().take(ERROR_BYTES).collect());
                0
            }
        };
        self.queue.meta.counters.forwarded += done as u64;
        self.apply();
        (done, more && appended.is_ok())
    }

    /// The first jobs that are due and fit, and whether there may be more.
    fn ready(&self, most: usize) -> (Vec<(JobId, UnixMs)>, bool) {
        let ready = self.queue.due.up_to(self.now).take(most);
        let mut ready: Vec<_> = ready.map(|(id, due)| (id.clone(), due)).collect();
        let fit = self.how_many_fit(ready.iter().map(|(id, _)| id), FORWARD_BYTES);
        let more = ready.len() == most || fit < ready.len();
        ready.truncate(fit);
        (ready, more)
    }

    /// A list gets bodies only, so they must be as their publishers sent them; all others die.
    fn plain(&mut self, forward: &Forward, jobs: Vec<DueJob>) -> Vec<DueJob> {
        let Forward::List(_) = forward else {
            return jobs;
        };
        let (plain, other): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| job.head.encoding() == "identity");
        for job in other {
            self.quarantine(&job.id, job.state, job.due, "not plain");
        }
        plain
    }

    fn append(&mut self, forward: &Forward, jobs: &[DueJob]) -> Result<(), &'static str> {
        match forward {
            Forward::List(key) => {
                let bodies = jobs.iter().map(|job| job.record.slice(body_at(job)..));
                push(self.destinations, key, bodies.collect())
            }
            Forward::Stream(key) => {
                jobs.iter().try_for_each(|job| add(self.destinations, key, self.now.0, fields(job)))
            }
        }
    }
}

/// The key that the script declares.
fn key(forward: &Forward) -> &str {
    match forward {
        Forward::List(key) | Forward::Stream(key) => key,
    }
}

fn body_at(job: &DueJob) -> usize {
    job.head.head_len + job.head.metadata_len
}

fn fields(job: &DueJob) -> Vec<(Bytes, Bytes)> {
    let attempt = job.state.as_ref().map_or(0, |state| state.attempts) + 1;
    let values = [
        ("id", job.id.to_string().into()),
        ("due", job.due.to_string().into()),
        ("attempt", attempt.to_string().into()),
        ("encoding", Bytes::from_static(job.head.encoding().as_bytes())),
        ("meta", job.record.slice(job.head.head_len..body_at(job))),
        ("body", job.record.slice(body_at(job)..)),
    ];
    values.map(|(name, value)| (Bytes::from_static(name.as_bytes()), value)).into()
}
