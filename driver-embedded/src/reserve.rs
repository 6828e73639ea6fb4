use delayline_core::{Fence, Grant, Identity, JobId, Phase, Reason, Reply, Session, State, UnixMs};

use crate::agenda::earlier;
use crate::bug::Bug;
use crate::meta::Lo;
use crate::script::Script;
use crate::session::{Answer, Recall, Verb};
use crate::sift::DueJob;

const DEFAULT_ATTEMPTS: u16 = 10;
const REAPED_AT_ONCE: usize = 100;
const DELIVERIES_MAX: u16 = 9_999;

/// What a reserve asks for.
pub(crate) struct Ask {
    pub(crate) want: usize,
    pub(crate) lease_ms: u64,
    pub(crate) max_bytes: u64,
    pub(crate) wakeable: bool,
}

/// The first due jobs, the first due time that is still ahead, and whether more are due.
#[derive(Default)]
struct FirstDue {
    jobs: Vec<(JobId, UnixMs)>,
    next: Option<UnixMs>,
    more: bool,
}

impl Script<'_> {
    /// See `reserve.lua`.
    pub(crate) fn reserve(&mut self, session: &Session, ask: &Ask) -> Reply {
        match self.recall(session, Verb::Reserve) {
            Recall::Superseded => return Reply::Superseded { time: self.time },
            Recall::Again(Answer::Granted { fence, lease_end, ids }) => {
                return self.granted_before(fence, lease_end, &ids);
            }
            Recall::Again(_) | Recall::New => {}
        }
        let unreadable = self.queue.meta.counters.unreadable;
        self.reap(REAPED_AT_ONCE);
        let paused = self.queue.meta.paused && !self.planted(Bug::PausedGrants);
        let open = !paused && self.queue.meta.config.forward.is_none();
        let asked = open && ask.want > 0;
        let FirstDue { jobs: due, next: next_due, more } =
            if asked { self.first_due(ask.want, ask.max_bytes) } else { FirstDue::default() };
        let found = self.sift(due);
        let (fence, lease_end) = (self.next_fence(), self.after(ask.lease_ms));
        let jobs = self.grant_all(found, fence, lease_end);
        self.apply();
        let met_broken = self.queue.meta.counters.unreadable > unreadable;
        if self.planted(Bug::ErrorAfterLease) && met_broken && !jobs.is_empty() {
            return Reply::Broken("no state".to_owned());
        }
        self.register(session.engine, ask, !more && jobs.len() < ask.want);
        let next = if asked && !more {
            self.recompute(next_due, ask.lease_ms, !jobs.is_empty())
        } else {
            if !jobs.is_empty() {
                self.note(lease_end);
            }
            self.lower_agenda(self.soon);
            None
        };
        let ids = jobs.iter().map(|job| job.id.clone()).collect();
        self.remember(session, Verb::Reserve, lease_end, Answer::Granted { fence, lease_end, ids });
        self.woken = more || (self.woken && ask.want == 0);
        self.announce();
        let backoff = self.queue.meta.config.backoff.clone();
        Reply::Granted { time: self.time, fence, lease_end, backoff, jobs, next, more, open }
    }

    /// What a repeat is answered: its grants that are still held.
    fn granted_before(&self, fence: Fence, lease_end: UnixMs, ids: &[JobId]) -> Reply {
        let held = ids.iter().filter_map(|id| {
            let state = self.queue.state.get(id)?;
            let record = self.queue.pool.get(id)?.clone();
            (state.phase == Phase::Leased && state.fence == fence).then(|| Grant {
                id: id.clone(),
                due: state.due,
                record,
                state: state.clone(),
            })
        });
        Reply::Granted {
            time: self.time,
            fence,
            lease_end,
            backoff: self.queue.meta.config.backoff.clone(),
            jobs: held.collect(),
            next: None,
            more: false,
            open: true,
        }
    }

    fn first_due(&self, want: usize, max_bytes: u64) -> FirstDue {
        let mut first = FirstDue::default();
        let want = if self.planted(Bug::UnboundedMove) { self.queue.due.len() } else { want };
        let early_ms = u64::from(self.planted(Bug::EarlyPromotion));
        for (id, due) in self.queue.due.iter().take(want + 1) {
            if due > self.now + early_ms {
                first.next = Some(due);
                break;
            }
            if first.jobs.len() == want {
                first.more = true;
                break;
            }
            first.jobs.push((id.clone(), due));
        }
        let fit = self.how_many_fit(first.jobs.iter().map(|(id, _)| id), max_bytes);
        if fit < first.jobs.len() {
            first.more = true;
            first.jobs.truncate(fit);
        }
        first
    }

    /// Never one that was: the clock, or one more than the last.
    fn next_fence(&self) -> Fence {
        let last = self.queue.meta.fence.map_or(0, |fence| fence.0);
        if self.planted(Bug::FenceShared) {
            return Fence(last.max(self.time.0 - self.time.0 % 1_000_000));
        }
        Fence(self.time.0.max(last + 1))
    }

    fn grant_all(&mut self, found: Vec<DueJob>, fence: Fence, lease_end: UnixMs) -> Vec<Grant> {
        let jobs: Vec<Grant> = found.into_iter().map(|job| self.grant(job, fence, lease_end)).collect();
        if !jobs.is_empty() {
            let first = self.lo().filter(|_| !self.planted(Bug::ReapLate));
            let meta = &mut self.queue.meta;
            meta.fence = Some(fence);
            meta.lo = Lo::of(earlier(first, Some(lease_end)));
            meta.counters.granted += jobs.len() as u64;
        }
        jobs
    }

    fn grant(&mut self, job: DueJob, fence: Fence, lease_end: UnixMs) -> Grant {
        let DueJob { id, due, record, head, state, big, ttl } = job;
        let (attempts, deliveries, reason) =
            state.map_or((0, 0, Reason::default()), |s| (s.attempts, s.deliveries, s.reason));
        let max = if head.attempts > 0 {
            head.attempts
        } else {
            self.queue.meta.config.attempts.unwrap_or(DEFAULT_ATTEMPTS)
        };
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let state = State {
            phase: Phase::Leased,
            fence,
            attempts: (attempts + u16::from(!self.planted(Bug::AttemptNotCounted))).min(DELIVERIES_MAX),
            verdict: None,
            max,
            deliveries: deliveries.saturating_add(1).min(DELIVERIES_MAX),
            flags: flag(ttl, State::TTL)
                | flag(!head.lost_delay.is_empty(), State::LOST_DELAY)
                | flag(big, State::BIG),
            due,
            extension: head.lost_delay,
            reason,
        };
        self.changes.into.state.push((id.clone(), state.clone()));
        let early_ms = if self.planted(Bug::WrongLeaseEnd) { 1_000 } else { 0 };
        if !self.planted(Bug::LeaseForgotten) {
            self.changes.into.leased.push((id.clone(), UnixMs(lease_end.0.saturating_sub(early_ms))));
        }
        Grant { id, due, record, state }
    }

    /// An engine that wants nothing is not to be woken; one that came back short is.
    fn register(&mut self, engine: Identity, ask: &Ask, short: bool) {
        if ask.want == 0 {
            self.queue.waiting.remove(&engine);
        } else if ask.wakeable && short {
            self.queue.waiting.insert(engine, self.now);
            self.queue.meta.waited = true;
        }
    }

    /// All that is due was taken: what comes next is known.
    fn recompute(&mut self, next_due: Option<UnixMs>, lease_ms: u64, granted: bool) -> Option<UnixMs> {
        let at = self.next_event(earlier(next_due, self.soon));
        self.set_agenda(at);
        let near = at.filter(|at| *at < self.now + self.pace.near_ms);
        if granted && lease_ms < self.pace.near_ms && near.is_some() {
            self.head = near;
        }
        at
    }
}
