use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::{About, Caller, Line, Story, all_or, counted, one};
use crate::{Ask, Held, Lease, NewJob, Request, Span, Take, TimeoutReason, Token, Verdict, Wakeup};

/// What the application asks.
impl Story {
    /// A job is handed over to be published.
    pub fn published(&mut self, token: Token, job: &NewJob) -> Vec<Line> {
        let about = About::Job(job.queue.clone(), job.id.clone());
        self.waits(token, "publish", Vec::from([about.clone()]));
        let mut words = format!("publish it, {}, within {}", self.due(job.due), Span(job.timeout_ms));
        if job.generated {
            words += ", under an id that was drawn";
        }
        if let Some(attempts) = job.attempts {
            let _ = write!(words, ", with {}", counted(attempts.into(), "attempt"));
        }
        let _ = write!(words, ", a body of {}", counted(job.body.len() as u64, "byte"));
        one(about.line(words))
    }

    /// Jobs are asked for.
    pub fn took(&mut self, token: Token, want: &Take) -> Vec<Line> {
        let about: Vec<About> = want.queues.iter().cloned().map(About::Queue).collect();
        self.waits(token, "take", about.clone());
        let words = format!(
            "take up to {} for {}, waiting {}",
            counted(want.count.into(), "job"),
            Span(want.lease_ms),
            Span(want.wait_ms)
        );
        about.into_iter().map(|about| about.line(words.clone())).collect()
    }

    /// Something else is asked.
    pub fn requested(&mut self, token: Token, request: &Request) -> Vec<Line> {
        let (verb, about, words) = self.asked(&request.ask);
        self.waits(token, verb, about.clone());
        let words = format!("{words}, within {}", Span(request.timeout_ms));
        about.into_iter().map(|about| about.line(words.clone())).collect()
    }

    /// A managed job ends.
    pub fn settled(&mut self, held: Held, verdict: &Verdict) -> Vec<Line> {
        match self.held.get(&held) {
            Some(about) => one(about.clone().line(format!("the handler says {}", judged(verdict)))),
            None => one(About::Nothing.line(format!("{} of a job that is in hand no more", judged(verdict)))),
        }
    }

    /// Nobody waits for an answer any more.
    pub fn forgot(&mut self, token: Token) -> Vec<Line> {
        match self.callers.remove(&token) {
            Some(Caller { verb, about }) => {
                let words = format!("nobody waits for the answer to {verb} any more");
                about.into_iter().map(|about| about.line(words.clone())).collect()
            }
            None => one(About::Nothing.line("nobody waits for an answer that was given")),
        }
    }

    /// The engine is to take nothing new and to end.
    pub fn drained(&self) -> Vec<Line> {
        one(About::Nothing.line("take nothing new, and end when all is done"))
    }

    /// The backlog had no room: what was handed over last is handed back.
    pub fn backlogged(&mut self, token: Token) -> Vec<Line> {
        let Some(Caller { verb, about }) = self.callers.remove(&token) else { return Vec::new() };
        let words = format!("{verb} handed back: there is no room for it now");
        about.into_iter().map(|about| about.line(words.clone())).collect()
    }

    /// A notification came.
    pub fn woken(&self, wakeup: &Wakeup) -> Vec<Line> {
        one(match wakeup {
            Wakeup::Ready(queue) => About::Queue(queue.clone()).line("woken: there is work"),
            Wakeup::Head(shard, at) if at.0 == 0 => {
                About::Nothing.line(format!("told that nobody tends shard {shard} any more"))
            }
            Wakeup::Head(shard, at) => {
                About::Nothing.line(format!("told that the head of shard {shard} is now {}", self.at(*at)))
            }
            Wakeup::Subscribed => About::Nothing.line("notifications are heard from now on"),
            Wakeup::Unsubscribed => About::Nothing.line("notifications are no longer heard"),
        })
    }

    /// A time has come.
    pub fn timed_out(&self, reason: Option<TimeoutReason>) -> Vec<Line> {
        let words = match reason {
            None => "the time comes, for nothing in particular",
            Some(TimeoutReason::Flight) => "an answer is overdue, or a command is to be sent again",
            Some(TimeoutReason::Deadline) => "a caller's time is over",
            Some(TimeoutReason::Lease) => "a lease is to be renewed, or ends",
            Some(TimeoutReason::Poll) => "a queue is to be asked, though nobody woke us",
            Some(TimeoutReason::Pump) => "a shard is to be tended",
        };
        one(About::Nothing.line(words))
    }

    fn waits(&mut self, token: Token, verb: &'static str, about: Vec<About>) {
        self.callers.insert(token, Caller { verb, about });
    }

    fn asked(&self, ask: &Ask) -> (&'static str, Vec<About>, String) {
        let of = |lease: &Lease| Vec::from([About::Job(lease.queue.clone(), lease.id.clone())]);
        match ask {
            Ask::Open { .. } => ("open", Vec::from([About::Nothing]), "open the deployment".into()),
            Ask::Server => ("server", Vec::from([About::Nothing]), "ask for version and policy".into()),
            Ask::Settle { lease, verdict } => {
                ("settle", of(lease), format!("{} under fence {}", judged(verdict), lease.fence))
            }
            Ask::Extend { lease, lease_ms } => (
                "extend",
                of(lease),
                format!("renew the lease of fence {} for {}", lease.fence, Span(*lease_ms)),
            ),
            Ask::Cancel { queue, ids } => ("cancel", all_or(queue, Some(ids)), "cancel it".into()),
            Ask::Reschedule { queue, jobs } => {
                let due = match jobs.as_slice() {
                    [(_, due)] => format!("reschedule it, {}", self.due(*due)),
                    _ => "reschedule it with others".into(),
                };
                let ids: Vec<_> = jobs.iter().map(|(id, _)| id.clone()).collect();
                ("reschedule", all_or(queue, Some(&ids)), due)
            }
            Ask::Inspect { queue, id } => {
                ("inspect", Vec::from([About::Job(queue.clone(), id.clone())]), "read it".into())
            }
            Ask::List { queue, .. } => ("list", Vec::from([About::Queue(queue.clone())]), "list jobs".into()),
            Ask::Stats { queue, .. } => {
                ("stats", Vec::from([About::Queue(queue.clone())]), "count its jobs".into())
            }
            Ask::Queues { shard, .. } => {
                ("queues", Vec::from([About::Nothing]), format!("name the queues of shard {shard}"))
            }
            Ask::Requeue { queue, ids } => {
                ("requeue", all_or(queue, ids.as_deref()), "make dead letters due".into())
            }
            Ask::Purge { queue, ids } => {
                ("purge", all_or(queue, ids.as_deref()), "remove dead letters".into())
            }
            Ask::Configure { queue, .. } => ("configure", all_or(queue, None), "replace its config".into()),
            Ask::Pause { queue, paused: true } => ("pause", all_or(queue, None), "pause it".into()),
            Ask::Pause { queue, .. } => ("resume", all_or(queue, None), "end its pause".into()),
            Ask::Destroy { queue } => ("destroy", all_or(queue, None), "destroy it".into()),
        }
    }
}

fn judged(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Ack => "ack".into(),
        Verdict::Nack { after_ms: None, reason } => format!("nack, because \"{reason}\""),
        Verdict::Nack { after_ms: Some(ms), reason } => {
            format!("nack, due again after {}, because \"{reason}\"", Span(*ms))
        }
        Verdict::Snooze { after_ms } => format!("snooze for {}", Span(*after_ms)),
        Verdict::Release => "release".into(),
        Verdict::Bury { reason } => format!("bury, because \"{reason}\""),
    }
}
