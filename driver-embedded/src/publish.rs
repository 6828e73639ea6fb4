use std::collections::BTreeMap;

use bytes::Bytes;
use delayline_core::{
    Ceiling, Edit, Entry, Full, JobId, Phase, PublishOutcome, RecordDigest, Reply, Session, State, UnixMs,
};

use crate::bug::Bug;
use crate::changes::set_flag;
use crate::meta::raise;
use crate::script::Script;
use crate::session::{Answer, Lane, Recall, SESSION_MS, Verb};

const LARGE_BYTES: usize = 4_096;
const NAMED_MS: u64 = 60_000;

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
            None => self.accept_all(session, jobs),
        };
        let answer = Answer::Published { since: time, outcomes: outcomes.clone() };
        self.remember(session, Verb::Publish, UnixMs(0), answer);
        if !self.planted(Bug::AgendaNotLowered) {
            self.lower_agenda(self.soon);
        }
        // Nobody can wait for a queue that is new, or was lost with all its keys: who tends the shard is told.
        if self.newborn && !self.planted(Bug::SilentBirth) {
            self.head = self.head.or(Some(self.now));
        }
        self.woken &= !self.planted(Bug::NoWakeOnPublish);
        self.announce();
        Reply::Published { time, since: time, outcomes, full }
    }

    fn full(&mut self, ceiling: Ceiling) -> Option<Full> {
        let meta = &self.queue.meta;
        let ceiling = Ceiling {
            jobs: meta.config.max_jobs.unwrap_or(ceiling.jobs),
            bytes: meta.config.max_bytes.unwrap_or(ceiling.bytes),
        };
        let mean = meta.mean();
        let over = |have: u64, most: u64| most > 0 && have >= most;
        let is_full = |jobs: u64| over(jobs, ceiling.jobs) || over(jobs.saturating_mul(mean), ceiling.bytes);
        if !is_full(meta.live_jobs()) {
            return None;
        }
        // A queue that seems full is counted, since a counter may have been lost.
        let queue = &mut *self.queue;
        let dead = queue.dead.len() as u64;
        let jobs = (queue.due.len() + queue.leased.len()) as u64 + dead;
        if jobs != queue.meta.live_jobs() {
            queue.meta.counters.published = jobs + queue.meta.ended_jobs();
        }
        is_full(jobs).then(|| Full { jobs, dead, bytes: jobs.saturating_mul(mean), ceiling })
    }

    fn accept_all(&mut self, session: &Session, jobs: &[Entry]) -> Vec<PublishOutcome> {
        let mut others = self.queue.meta.live_jobs();
        let (mut kept, mut accepted, mut replaced) = (BTreeMap::new(), 0, 0);
        let mut outcomes = Vec::with_capacity(jobs.len());
        for job in jobs {
            let (waits, follows) = (self.queue.due.contains(&job.id), kept.contains_key(&job.id));
            let state = self.queue.state_of(&job.id);
            if let Some(edit) = &job.edit {
                let is_edited = waits && !follows && self.is_as_found(&job.id, edit);
                if is_edited {
                    others = others.saturating_sub(1);
                    kept.insert(&job.id, job);
                }
                let (done, not) = (PublishOutcome::Replaced, PublishOutcome::Duplicate);
                outcomes.push(if is_edited { done } else { not });
                continue;
            }
            let outcome = if !waits && !follows && state.is_none() {
                PublishOutcome::New
            } else if (waits || follows) && (job.replace || self.planted(Bug::DuplicateReplaces))
                || job.replace && self.planted(Bug::ReplacesLeased) && is_held(state.as_ref())
            {
                if !follows {
                    others = others.saturating_sub(1);
                }
                if kept.get(&job.id).is_none_or(|first: &&Entry| first.edit.is_some()) {
                    self.is_forgotten(&job.id, state.as_ref());
                }
                replaced += 1;
                PublishOutcome::Replaced
            } else {
                PublishOutcome::Duplicate
            };
            if outcome != PublishOutcome::Duplicate {
                kept.insert(&job.id, job);
                accepted += 1;
            }
            outcomes.push(outcome);
        }
        if !kept.is_empty() {
            for (job, edit) in kept.values().filter_map(|job| Some((job, job.edit.as_ref()?))) {
                self.is_edited(job, edit);
            }
            self.apply();
            let (new, mut bytes) = (kept.len() as u64, 0_u64);
            for job in kept.into_values() {
                self.accept(job);
                bytes += job.record.len() as u64;
            }
            self.newborn = self.queue.meta.born.is_none();
            if self.newborn || self.is_named_again(session) {
                self.is_born();
            }
            let meta = &mut self.queue.meta;
            meta.mean = Some(meta.mean().saturating_mul(others).saturating_add(bytes) / (others + new));
            meta.counters.published += accepted;
            meta.counters.cancelled += replaced;
        }
        outcomes
    }

    /// Whether the queue's name is written again: once a minute in each lane, since the index may have been lost.
    fn is_named_again(&self, session: &Session) -> bool {
        let past = self.queue.meta.lanes.get(&Lane::of(session, Verb::Publish));
        past.is_none_or(|past| past.keep_until.0 / NAMED_MS != (self.now + SESSION_MS).0 / NAMED_MS)
    }

    /// Whether the waiting job is as its editor found it.
    fn is_as_found(&self, id: &JobId, edit: &Edit) -> bool {
        let queue = &self.queue;
        let is_same = |record: &Bytes| RecordDigest::of(record) == edit.record;
        self.planted(Bug::EditIgnoresChanges)
            || queue.pool.get(id).is_some_and(is_same) && queue.due.score(id) == Some(edit.due)
    }

    /// The job's state stays, but for what says that it has a TTL or is large.
    fn is_edited(&mut self, job: &Entry, edit: &Edit) {
        let state = self.queue.state_of(&job.id);
        let (meta, out) = (&self.queue.meta, &mut self.changes.out);
        if state.as_ref().map_or(meta.has_sizes(), |state| state.has(State::BIG)) {
            out.big.push(job.id.clone());
        }
        if !edit.keeps_ttl && state.as_ref().map_or(meta.has_expiries(), |state| state.has(State::TTL)) {
            out.exp.push(job.id.clone());
        }
        let Some(mut state) = state.filter(|_| !self.queue.is_broken(&job.id)) else { return };
        set_flag(&mut state, State::BIG, job.record.len() > LARGE_BYTES);
        if !edit.keeps_ttl {
            set_flag(&mut state, State::TTL, job.ttl_ms > 0);
        }
        if self.planted(Bug::EditForgetsAttempts) {
            state.attempts = 0;
        }
        self.changes.into.state.push((job.id.clone(), state));
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

    /// The queue comes to be, unless it has. Its name is written each time, since the index may have been lost.
    pub(crate) fn is_born(&mut self) {
        let newborn = self.queue.meta.born.is_none();
        self.queue.meta.born.get_or_insert(self.time);
        if newborn || !self.planted(Bug::IndexNotMended) {
            self.names.insert(self.name.clone());
        }
    }
}

fn is_held(state: Option<&State>) -> bool {
    state.is_some_and(|state| state.phase == Phase::Leased)
}
