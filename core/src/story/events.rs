use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::replies::{cancelled, extended, settled};
use super::{About, Caller, Line, Story, counted, one};
use crate::{Answer, Event, Fault, Held, Job, RescheduleOutcome, Span};

impl Story {
    /// The engine tells the application something: a line for each job.
    pub fn told(&mut self, event: &Event) -> Vec<Line> {
        match event {
            Event::Answered { token, answer } => {
                let caller = self.callers.remove(token);
                let caller = caller.unwrap_or(Caller { verb: "request", about: Vec::from([About::Nothing]) });
                self.reply_to(caller, answer)
            }
            Event::Run(job) => {
                let about = job_of(job);
                if let Some(held) = job.held {
                    self.held.insert(held, about.clone());
                }
                one(about.line(self.runs(job)))
            }
            Event::Abandon(held) => self.ends(
                *held,
                "the lease is lost: its handler should stop, and its verdict counts no more".into(),
            ),
            Event::Settled { held, outcome } => {
                self.ends(*held, format!("the handler's verdict is {}", settled(*outcome)))
            }
            Event::Unsettled(held) => {
                let words = "nobody knows whether the verdict was carried out: if not, it comes back when its lease ends";
                self.ends(*held, words.into())
            }
            Event::Tended { queue, ended, expired, purged, forwarded } => {
                let words = format!(
                    "tended here: {}, {expired} expired, {purged} purged, {forwarded} forwarded",
                    counted(*ended, "ended lease")
                );
                one(About::Jobs(queue.clone()).line(words))
            }
            Event::Fault(fault) => one(About::Nothing.line(format!("in trouble: {fault}"))),
            Event::Ended(fault) => one(About::Nothing.line(format!("stops for good: {fault}"))),
            Event::Drained => one(About::Nothing.line("all is done, nothing more will happen")),
        }
    }

    fn ends(&mut self, held: Held, words: String) -> Vec<Line> {
        one(self.held.remove(&held).unwrap_or(About::Nothing).line(words))
    }

    fn runs(&self, job: &Job) -> String {
        let Job { attempt, max_attempts, late_ms, .. } = job;
        let (late, ends) = (Span(*late_ms), self.at(job.lease_ends));
        format!("run attempt {attempt} of {max_attempts}, {late} after it was due; the lease ends {ends}")
    }

    fn reply_to(&self, caller: Caller, answer: &Result<Answer, Fault>) -> Vec<Line> {
        let Caller { verb, about } = caller;
        match answer {
            Ok(Answer::Taken(jobs)) if !jobs.is_empty() => {
                let told = |job| job_of(job).line(format!("handed out: {}", self.runs(job)));
                jobs.iter().map(told).collect()
            }
            Ok(Answer::Cancelled(outcomes)) => about
                .into_iter()
                .zip(outcomes)
                .map(|(about, outcome)| about.line(cancelled(*outcome)))
                .collect(),
            Ok(Answer::Rescheduled(outcomes)) => {
                let told = |(about, (outcome, due)): (About, &(RescheduleOutcome, _))| match outcome {
                    RescheduleOutcome::Moved => about.line(format!("rescheduled, due {}", self.at(*due))),
                    other => about.line(format!("not rescheduled: {other:?}").to_lowercase()),
                };
                about.into_iter().zip(outcomes).map(told).collect()
            }
            Ok(Answer::DeadMoved { outcomes, .. }) if !outcomes.is_empty() => {
                let told = |(about, moved): (About, &bool)| {
                    about.line(if *moved { "moved from the dead letters" } else { "is no dead letter" })
                };
                about.into_iter().zip(outcomes).map(told).collect()
            }
            _ => {
                let words = match answer {
                    Ok(answer) => format!("{verb} answered: {}", self.plain_answer(answer)),
                    Err(fault) => format!("{verb} failed: {fault}"),
                };
                about.into_iter().map(|about| about.line(words.clone())).collect()
            }
        }
    }

    fn plain_answer(&self, answer: &Answer) -> String {
        match answer {
            Answer::Published { id, due, replaced } => {
                let place = if *replaced { " in place of the waiting job" } else { "" };
                format!("accepted as {id}{place}, due {}", self.at(*due))
            }
            Answer::Duplicate { .. } => "the id is in use".into(),
            Answer::Taken(_) => "no jobs".into(),
            Answer::Settled(outcome) => settled(*outcome).into(),
            Answer::Extended(outcome, end) => extended(*outcome, &self.at(*end)),
            Answer::Inspected(None) => "there is no such job".into(),
            Answer::Inspected(Some(_)) => "found".into(),
            Answer::Listed { jobs, .. } => counted(jobs.len() as u64, "job"),
            Answer::Counted(_) => "counted".into(),
            Answer::Named { queues, .. } => counted(queues.len() as u64, "queue"),
            Answer::DeadMoved { moved, left, .. } => {
                format!("{} moved, {left} left", counted(*moved, "dead letter"))
            }
            Answer::Configured { cfgver } => format!("done, by version {cfgver} of its config"),
            Answer::Conflict { cfgver } => format!("not done: version {cfgver} was found"),
            Answer::Destroyed(None) => "there is no such queue".into(),
            Answer::Destroyed(Some(_)) => "destroyed".into(),
            Answer::Opened { shards, .. } => counted(shards.count().into(), "shard"),
            Answer::Server { version: (major, minor, patch), .. } => {
                format!("version {major}.{minor}.{patch}")
            }
            Answer::Cancelled(_) | Answer::Rescheduled(_) => "nothing".to_string(),
        }
    }
}

fn job_of(job: &Job) -> About {
    About::Job(job.lease.queue.clone(), job.lease.id.clone())
}
