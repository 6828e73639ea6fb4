use delayline_core::{Ceiling, Entry, Full, PublishOutcome, Reply, Session, UnixMs};

use crate::meta::raise;
use crate::script::Script;
use crate::session::{Answer, Recall, Verb};

const LARGE_BYTES: usize = 4_096;

impl Script<'_> {
    /// See `publish.lua`.
    pub(crate) fn publish(&mut self, session: &Session, ceiling: Ceiling, jobs: &[Entry]) -> Reply {
        let time = self.time;
        match self.recall(session, Verb::Publish) {
            Recall::Superseded => return Reply::Superseded { time },
            Recall::Again(Answer::Published { since, outcomes }) => {
                return Reply::Published { time, since, outcomes, full: None };
            }
            Recall::Again(_) | Recall::New => {}
        }
        let full = self.full(ceiling);
        let outcomes = match full {
            Some(_) => vec![PublishOutcome::Full; jobs.len()],
            None => self.accept_all(jobs),
        };
        let answer = Answer::Published { since: time, outcomes: outcomes.clone() };
        self.remember(session, Verb::Publish, UnixMs(0), answer);
        self.lower_agenda(self.soon);
        self.announce();
        Reply::Published { time, since: time, outcomes, full }
    }

    fn full(&self, ceiling: Ceiling) -> Option<Full> {
        let meta = &self.queue.meta;
        let ceiling = Ceiling {
            jobs: meta.config.max_jobs.unwrap_or(ceiling.jobs),
            bytes: meta.config.max_bytes.unwrap_or(ceiling.bytes),
        };
        let jobs = meta.live_jobs();
        let bytes = jobs.saturating_mul(meta.mean());
        let over = |have: u64, most: u64| most > 0 && have >= most;
        (over(jobs, ceiling.jobs) || over(bytes, ceiling.bytes)).then(|| Full {
            jobs,
            dead: self.queue.dead.len() as u64,
            bytes,
            ceiling,
        })
    }

    fn accept_all(&mut self, jobs: &[Entry]) -> Vec<PublishOutcome> {
        let (held, mean) = (self.queue.meta.live_jobs(), self.queue.meta.mean());
        let (mut new, mut bytes) = (0, 0);
        let outcomes = jobs.iter().map(|job| {
            if self.queue.due.contains(&job.id) || self.queue.state.contains_key(&job.id) {
                return PublishOutcome::Duplicate;
            }
            self.accept(job);
            new += 1;
            bytes += job.record.len() as u64;
            PublishOutcome::New
        });
        let outcomes = outcomes.collect();
        if new > 0 {
            self.is_born();
            self.queue.meta.mean = Some(mean.saturating_mul(held).saturating_add(bytes) / (held + new));
            self.queue.meta.counters.published += new;
        }
        outcomes
    }

    fn accept(&mut self, job: &Entry) {
        let at = job.due.counted_from(self.time);
        self.queue.pool.insert(job.id.clone(), job.record.clone());
        self.queue.due.insert(job.id.clone(), at);
        if job.ttl_ms > 0 {
            let expiry = self.after(job.ttl_ms);
            self.queue.exp.insert(job.id.clone(), expiry);
            raise(&mut self.queue.meta.exp, 1);
            self.note(expiry);
        }
        if job.record.len() > LARGE_BYTES {
            self.queue.big.insert(job.id.clone(), job.record.len());
            raise(&mut self.queue.meta.big, 1);
        }
        self.arrives(at);
    }

    /// The queue comes to be, unless it has.
    pub(crate) fn is_born(&mut self) {
        if self.queue.meta.born.is_none() {
            self.queue.meta.born = Some(self.time);
            self.names.insert(self.name.clone());
        }
    }
}
