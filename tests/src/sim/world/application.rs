//! What callers and handlers do.

use bytes::Bytes;
use delayline_core::{
    Answer, Ask, Backoff, CancelOutcome, Due, Event, Fault, Job, JobId, NewJob, Place, QueueConfig,
    QueueName, Reason, Request, RescheduleOutcome, Take, UnixMs, Verdict,
};

use super::{EPOCH_MS, What, World};
use crate::Random;
use crate::sim::DELIVERY_MS;
use crate::sim::mistake::Slip;
use crate::sim::model::{Checked, Instance, ensure, key_of};
use crate::sim::node::Asked;
use crate::sim::plan::{Act, Asks, JobPlan, QueuePlan};
use crate::sim::{draw, names};

const REASON: &str = "simulated";
const TAKEN_MS: u64 = 5_000;

impl World<'_> {
    pub(super) fn act(&mut self, act: Act) -> Checked {
        let Act { node, what, .. } = act;
        match what {
            Asks::Publish(job) => self.publish(node, &job),
            Asks::Take { queues, count, lease_ms, wait_ms, forget_ms } => {
                let queues = queues.into_iter().map(names::queue).collect();
                self.take(node, Take { queues, count, lease_ms, wait_ms }, forget_ms)
            }
            Asks::Cancel { queue, job } => {
                self.witness.asks_to_cancel((queue, job));
                let ask = Ask::Cancel { queue: names::queue(queue), ids: vec![names::job(job)] };
                self.ask(node, Asked::Cancel(queue, job), ask)
            }
            Asks::Reschedule { queue, job, after_ms } => {
                self.witness.asks_to_move((queue, job));
                let jobs = vec![(names::job(job), Due::After { ms: after_ms })];
                let ask = Ask::Reschedule { queue: names::queue(queue), jobs };
                self.ask(node, Asked::Reschedule(queue, job), ask)
            }
            Asks::Pause { queue, paused } => {
                self.ask(node, Asked::Other, Ask::Pause { queue: names::queue(queue), paused })
            }
            Asks::Requeue { queue } => {
                self.ask(node, Asked::Other, Ask::Requeue { queue: names::queue(queue), ids: None })
            }
            Asks::Purge { queue } => {
                self.ask(node, Asked::Other, Ask::Purge { queue: names::queue(queue), ids: None })
            }
            Asks::Configure { queue } => {
                let config = config(&self.queues[queue]);
                let ask = Ask::Configure { queue: names::queue(queue), cfgver: None, config };
                self.ask(node, Asked::Other, ask)
            }
            Asks::Inspect { queue, job } => {
                let ask = Ask::Inspect { queue: names::queue(queue), id: names::job(job) };
                self.ask(node, Asked::Other, ask)
            }
            Asks::List { queue, place } => {
                let place =
                    [Place::Ready, Place::Delayed, Place::Leased, Place::Dead][usize::from(place % 4)];
                let ask = Ask::List { queue: names::queue(queue), place, limit: 10, after: None };
                self.ask(node, Asked::Other, ask)
            }
            Asks::Stats { queue } => {
                self.ask(node, Asked::Other, Ask::Stats { queue: names::queue(queue), hours: 2 })
            }
        }
    }

    fn publish(&mut self, node: usize, plan: &JobPlan) -> Checked {
        let key = (plan.queue, plan.job);
        if plan.replace {
            self.witness.asks_to_replace(key);
        }
        let token = self.nodes[node].token();
        let instance = Instance { key, version: plan.version };
        self.nodes[node].asked.insert(token, Asked::Publish(instance));
        let job = new_job(plan);
        self.tell(node, |story| story.published(token, &job));
        let mut full = false;
        self.with(node, |engine, now| full = engine.publish(now, token, job).is_err())?;
        self.unask(node, token, full);
        Ok(())
    }

    fn take(&mut self, node: usize, take: Take, forget_ms: Option<u64>) -> Checked {
        if self.nodes[node].edge.is_some() {
            return Ok(());
        }
        let (token, life) = (self.nodes[node].token(), self.nodes[node].life);
        self.nodes[node].asked.insert(token, Asked::Take(take.queues.clone(), false));
        self.tell(node, |story| story.took(token, &take));
        if let Some(ms) = forget_ms {
            self.after(ms * 1000, What::Forget(node, life, token));
        }
        let mut full = false;
        self.with(node, |engine, now| full = engine.take(now, token, take).is_err())?;
        self.unask(node, token, full);
        Ok(())
    }

    pub(super) fn ask(&mut self, node: usize, asked: Asked, ask: Ask) -> Checked {
        let token = self.nodes[node].token();
        self.nodes[node].asked.insert(token, asked);
        let mut full = false;
        let request = Request { ask, timeout_ms: 10_000 };
        self.tell(node, |story| story.requested(token, &request));
        self.with(node, |engine, now| full = engine.request(now, token, request).is_err())?;
        self.unask(node, token, full);
        Ok(())
    }

    fn unask(&mut self, node: usize, token: delayline_core::Token, full: bool) {
        if full {
            self.nodes[node].asked.remove(&token);
        }
    }

    pub(super) fn handle_event(&mut self, node: usize, event: Event) -> Checked {
        self.tell(node, |story| story.told(&event));
        match event {
            Event::Answered { token, answer } => match self.nodes[node].asked.remove(&token) {
                Some(asked) => self.answered(node, asked, answer),
                None => Ok(()),
            },
            Event::Run(job) => self.run(node, &job),
            Event::Abandon(held) => {
                self.marks.reach("an engine abandons a job");
                let grant = self.nodes[node].running.remove(&held);
                grant.map_or(Ok(()), |(key, fence)| self.check_abandoned(key, fence))
            }
            Event::Ended(fault) => {
                ensure!(false, "the shards agree", "node {node} stops: {fault}");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self, node: usize, job: &Job) -> Checked {
        let now = self.redis_now();
        self.witness.runs(now, job)?;
        let per_job = self.nodes[node].edge.as_ref().map_or(0, |edge| edge.limits.per_job);
        let paid = self.pay(node, per_job);
        ensure!(paid, "credit is respected", "node {node} cannot pay for a delivery");
        let Some(held) = job.held else { return Ok(()) };
        let mut handler = self.handler(job)?;
        let (ms, verdict) = self.handled(&mut handler, node);
        let life = self.nodes[node].life;
        let key = key_of(&job.lease.queue, &job.lease.id)?;
        self.nodes[node].running.insert(held, (key, job.lease.fence));
        if handler.percent(self.rates.twice) && !self.calm {
            let again_us = handler.number(0..=2_000_000);
            self.after(ms * 1000 + again_us, What::Done(node, life, held, Verdict::Ack));
        }
        self.after(ms * 1000, What::Done(node, life, held, verdict));
        Ok(())
    }

    /// What a delivery leads to depends on nothing but the job and which delivery it is.
    fn handler(&self, job: &Job) -> Checked<Random> {
        let (queue, number) = key_of(&job.lease.queue, &job.lease.id)?;
        let which = (queue as u64) << 48 | u64::from(number) << 16 | u64::from(job.deliveries);
        Ok(Random::new(self.seed ^ which.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// How a handler ends, and after how long.
    fn handled(&self, handler: &mut Random, node: usize) -> (u64, Verdict) {
        if self.calm {
            return (handler.number(0..=50), Verdict::Ack);
        }
        let reason = Reason::new(REASON);
        let verdict = match handler.number(0..=9) {
            _ if !handler.percent(self.rates.fails) => Verdict::Ack,
            0..=3 => Verdict::Nack { after_ms: None, reason },
            4 | 5 => Verdict::Nack { after_ms: Some(handler.number(0..=2_000)), reason },
            6 | 7 => Verdict::Snooze { after_ms: handler.number(1..=2_000) },
            8 => Verdict::Release,
            _ => Verdict::Bury { reason },
        };
        let edge = self.nodes[node].edge.is_some();
        let hangs = handler.percent(self.rates.hangs) && !edge;
        let long = handler.percent(10) && !edge;
        let ms = match () {
            () if hangs => (self.span_ms + 200).saturating_sub(self.now_us / 1000),
            () if long => handler.number(1_000..=8_000),
            () => handler.number(0..=DELIVERY_MS),
        };
        (ms, verdict)
    }

    fn answered(&mut self, node: usize, asked: Asked, mut answer: Result<Answer, Fault>) -> Checked {
        if asked.is_take() && matches!(answer, Err(Fault::NotSent(_))) {
            self.marks.reach("a take ends for want of an answer");
            if self.slips(Slip::TakeAnsweredUnasked) {
                answer = Ok(Answer::Taken(Vec::new()));
            }
        }
        match (asked, answer) {
            (Asked::Publish(instance), answer) => self.published(&instance, &answer)?,
            (Asked::Cancel(queue, job), Ok(Answer::Cancelled(outcomes)))
                if outcomes == [CancelOutcome::Cancelled] =>
            {
                self.publish_again(queue, job);
            }
            (Asked::Reschedule(queue, job), Ok(Answer::Rescheduled(outcomes)))
                if outcomes[0].0 == RescheduleOutcome::Moved && !self.calm && self.handlers.percent(60) =>
            {
                let after_ms = self.handlers.number(0..=6_000);
                self.again(Asks::Reschedule { queue, job, after_ms });
            }
            (Asked::Take(queues, was_asked), Ok(Answer::Taken(jobs))) => {
                ensure!(
                    was_asked || !jobs.is_empty() || self.drained_us > 0 || self.is_leaving(node),
                    "no jobs is said by who was asked",
                    "node {node}: a take of {queues:?} is told so, and none of them was asked"
                );
                if !jobs.is_empty() {
                    self.marks.reach("a take hands out jobs");
                }
                jobs.iter().try_for_each(|job| self.taken(node, job))?;
            }
            (_, Err(Fault::Broken(why))) => {
                ensure!(self.nodes[node].was_garbled, "every command is answered", "{why}");
            }
            _ => {}
        }
        Ok(())
    }

    fn published(&mut self, instance: &Instance, answer: &Result<Answer, Fault>) -> Checked {
        let times = self.ledger.times_accepted(instance);
        let lost = self.witness.is_lost(instance);
        match answer {
            Ok(Answer::Published { .. }) => {
                ensure!(
                    times == 1 || lost,
                    "accepted means accepted",
                    "{instance} was accepted {times} times"
                );
            }
            Ok(Answer::Duplicate { .. }) => {
                let contested = self.witness.is_contested(instance.key);
                ensure!(contested, "an id is used once at a time", "{instance} is called a duplicate");
                let accepted = times > 0 && !self.witness.rolled_back;
                ensure!(!accepted, "a duplicate is not accepted", "{instance} was, {times} times");
            }
            Err(Fault::NotSent(_)) => {
                self.marks.reach("a publish ends not sent");
                ensure!(times == 0, "not sent means not accepted", "{instance} was accepted {times} times");
            }
            Err(Fault::Unknown) => self.marks.reach("a publish ends unknown"),
            _ => {}
        }
        Ok(())
    }

    fn publish_again(&mut self, queue: usize, job: u32) {
        if !self.calm && self.handlers.percent(60) {
            self.versions += 1;
            let at_ms = self.now_us / 1000;
            let plan = draw::draw_job(&mut self.handlers, queue, job, at_ms);
            self.again(Asks::Publish(JobPlan { version: self.versions, ..plan }));
        }
    }

    /// Somebody goes on with a job that was cancelled or moved.
    fn again(&mut self, what: Asks) {
        let (us, node) = (self.handlers.number(0..=3_000_000), self.some_node());
        self.act_after(us, node, what);
    }

    pub(super) fn act_after(&mut self, us: u64, node: usize, what: Asks) {
        self.last_act_us = self.last_act_us.max(self.now_us + us);
        self.after(us, What::Act(Box::new(Act { at_ms: 0, node, what })));
    }

    pub(super) fn some_node(&mut self) -> usize {
        let last = self.nodes.len() as u64 - 1;
        usize::try_from(self.handlers.number(0..=last)).unwrap_or(0)
    }

    fn taken(&mut self, node: usize, job: &Job) -> Checked {
        let now = self.redis_now();
        self.witness.runs(now, job)?;
        let mut handler = self.handler(job)?;
        let (ms, verdict) = self.handled(&mut handler, node);
        if self.calm || !handler.percent(10) {
            let life = self.nodes[node].life;
            let us = ms.min(TAKEN_MS) * 1000;
            if handler.percent(self.rates.twice) && !self.calm {
                let other = Verdict::Bury { reason: Reason::new(REASON) };
                let again_us = handler.number(0..=2_000_000);
                self.after(us + again_us, What::Settle(node, life, Box::new((job.lease.clone(), other))));
            }
            self.after(us, What::Settle(node, life, Box::new((job.lease.clone(), verdict))));
        }
        Ok(())
    }
}

fn new_job(plan: &JobPlan) -> NewJob {
    let (queue, id): (QueueName, JobId) = (names::queue(plan.queue), names::job(plan.job));
    let mut body = id.to_string().into_bytes();
    body.resize(plan.bytes.max(body.len()), b' ');
    if plan.dense && plan.bytes > body_min(&id) {
        let mut noise = Random::new(plan.version);
        body[body_min(&id)..].fill_with(|| noise.any().to_le_bytes()[0]);
    }
    let mut job = NewJob::new(queue, id, Bytes::from(body));
    job.published = UnixMs(plan.version);
    job.due = match plan.at_ms {
        Some(at_ms) => Due::At(UnixMs(EPOCH_MS + at_ms)),
        None => Due::After { ms: plan.delay_ms },
    };
    job.ttl_ms = plan.ttl_ms;
    job.attempts = plan.attempts;
    job.backoff = Some(match plan.backoff_ms.as_slice() {
        [] => Backoff::None,
        [ms] => Backoff::Fixed { ms: *ms },
        rungs => Backoff::Ladder(rungs.to_vec()),
    });
    job.lost_delay_ms = plan.lost_delay_ms;
    job.timeout_ms = plan.timeout_ms;
    job.replace = plan.replace;
    job
}

/// A body begins with the job's name and a space.
fn body_min(id: &JobId) -> usize {
    id.as_str().len() + 1
}

fn config(plan: &QueuePlan) -> QueueConfig {
    QueueConfig {
        attempts: plan.attempts,
        retention_ms: plan.retention_ms,
        bury_expired: plan.bury_expired,
        max_jobs: plan.max_jobs,
        forward: plan.forward.as_ref().and_then(|to| to.parse().ok()),
        ..QueueConfig::default()
    }
}
