//! What callers and handlers do.

use delayline_core::{Answer, CancelOutcome, Event, Fault, Job, RescheduleOutcome};

use super::{What, World};
use crate::sim::model::{Violation, ensure};
use crate::sim::workload::{self, Act, Asked, HOLD_MS, Instance};

impl World {
    pub(super) fn act(&mut self, node: usize, act: Act) -> Result<(), Violation> {
        let token = self.nodes[node].token();
        match act {
            Act::Publish(job) => {
                self.model.publishes(&job);
                let asked = Asked::Publish(Instance::of(&job));
                self.nodes[node].asked.insert(token, asked);
                self.with(node, |engine, now| {
                    let _ = engine.publish(now, token, *job);
                })
            }
            Act::Take(take) => {
                self.nodes[node].asked.insert(token, Asked::Take);
                if self.handlers.percent(20) {
                    let (us, life) = (self.handlers.number(0..=5_000_000), self.nodes[node].life);
                    self.after(us, What::Forget(node, life, token));
                }
                self.with(node, |engine, now| {
                    let _ = engine.take(now, token, take);
                })
            }
            Act::Ask(ask) => {
                self.model.asked(&ask);
                self.nodes[node].asked.insert(token, Asked::by(&ask));
                self.with(node, |engine, now| {
                    let _ = engine.request(now, token, workload::request(ask));
                })
            }
        }
    }

    pub(super) fn handle_event(&mut self, node: usize, event: Event) -> Result<(), Violation> {
        if self.print {
            println!("    node {node}: {event:?}");
        }
        self.model.told(&event)?;
        match event {
            Event::Answered { token, answer } => {
                let asked = self.nodes[node].asked.remove(&token);
                let Some(asked) = asked else { return Ok(()) };
                self.answered(node, asked, answer)
            }
            Event::Run(job) => {
                let (ms, verdict) = workload::handled(&mut self.handlers, self.calm);
                if let Some(held) = job.held {
                    let life = self.nodes[node].life;
                    self.after(ms * 1000, What::Done(node, life, held, verdict));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn answered(
        &mut self,
        node: usize,
        asked: Asked,
        answer: Result<Answer, Fault>,
    ) -> Result<(), Violation> {
        match (asked, answer) {
            (Asked::Publish(instance), Ok(Answer::Published { .. })) => {
                let times = self.model.times_accepted(&instance);
                ensure!(times == 1, "accepted means accepted", "{instance} was accepted {times} times");
            }
            (Asked::Publish(instance), Err(Fault::NotSent(_))) => {
                let times = self.model.times_accepted(&instance);
                ensure!(times == 0, "not sent means not accepted", "{instance} was accepted {times} times");
            }
            (Asked::Publish(instance), Ok(Answer::Duplicate { .. })) => {
                ensure!(
                    self.model.is_contested(&instance),
                    "an id is used once at a time",
                    "{instance} is called a duplicate"
                );
                let times = self.model.times_accepted(&instance);
                ensure!(
                    times == 0,
                    "a duplicate is not accepted",
                    "{instance} is called one and was accepted {times} times"
                );
            }
            (asked @ Asked::Cancel(..), Ok(Answer::Cancelled(outcomes)))
                if outcomes == [CancelOutcome::Cancelled] =>
            {
                self.again(asked);
            }
            (asked @ Asked::Reschedule(..), Ok(Answer::Rescheduled(outcomes)))
                if outcomes[0].0 == RescheduleOutcome::Moved =>
            {
                self.again(asked);
            }
            (Asked::Take, Ok(Answer::Taken(jobs))) => {
                jobs.iter().try_for_each(|job| self.taken(node, job))?;
            }
            (_, Err(Fault::Broken(why))) => ensure!(false, "every command is answered", "{why}"),
            _ => {}
        }
        Ok(())
    }

    /// Somebody goes on with the job that was cancelled or moved.
    pub(super) fn again(&mut self, asked: Asked) {
        if self.handlers.percent(60) {
            let (us, nodes) = (self.handlers.number(0..=3_000_000), self.nodes.len() as u64);
            let node = usize::try_from(self.handlers.number(0..=nodes - 1)).unwrap_or(0);
            if let Some(act) = workload::again(&mut self.handlers, asked) {
                self.after(us, What::Act(node, act));
            }
        }
    }

    pub(super) fn taken(&mut self, node: usize, job: &Job) -> Result<(), Violation> {
        self.model.runs(job)?;
        let (ms, verdict) = workload::handled(&mut self.handlers, self.calm);
        if !self.handlers.percent(10) || self.calm {
            let life = self.nodes[node].life;
            self.after(ms.min(HOLD_MS / 4) * 1000, What::Settle(node, life, job.lease.clone(), verdict));
        }
        Ok(())
    }
}
