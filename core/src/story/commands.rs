use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use super::{About, Line, Story, all_or, counted};
use crate::{Command, Entry, Fence, JobId, Place, QueueName, Session, Settlement, Span};

impl Story {
    /// A command leaves for the store: a line for each job that it carries.
    pub fn sent(&self, command: &Command) -> Vec<Line> {
        match command {
            Command::Publish { queue, session, jobs, .. } => {
                let line = |job: &Entry| {
                    let words = self.entry(job, *session);
                    About::Job(queue.clone(), job.id.clone()).line(words)
                };
                jobs.iter().map(line).collect()
            }
            Command::Settle { queue, leases, .. } => {
                let line = |(id, fence, settlement): &(_, Fence, Settlement)| {
                    let words = format!("sends {} under fence {fence}", settled(settlement));
                    About::Job(queue.clone(), Clone::clone(id)).line(words)
                };
                leases.iter().map(line).collect()
            }
            Command::Extend { queue, lease_ms, leases } => {
                let line = |(id, fence): &(_, Fence)| {
                    let words = format!("asks to renew the lease of fence {fence} for {}", Span(*lease_ms));
                    About::Job(queue.clone(), Clone::clone(id)).line(words)
                };
                leases.iter().map(line).collect()
            }
            Command::Reschedule { queue, session, jobs } => {
                let line = |(id, due): &(_, _)| {
                    let words = format!("reschedules it, {}, {}", self.due(*due), numbered(*session));
                    About::Job(queue.clone(), Clone::clone(id)).line(words)
                };
                jobs.iter().map(line).collect()
            }
            other => {
                let words = self.plain(other);
                subjects(other).into_iter().map(|about| about.line(words.clone())).collect()
            }
        }
    }

    /// A command whose answer will not come: a line for each job that it carries.
    pub fn lost(&self, command: &Command) -> Vec<Line> {
        let again = match session(command) {
            Some(session) => format!("it is sent again {}", numbered(session)),
            None => "it is sent again".to_string(),
        };
        let words = format!("{} lost: it may or may not have run; {again}", name(command));
        subjects(command).into_iter().map(|about| about.line(words.clone())).collect()
    }

    fn entry(&self, job: &Entry, session: Session) -> String {
        let mut words = format!("publishes it, {}, {}", self.due(job.due), numbered(session));
        if job.ttl_ms > 0 {
            let _ = write!(words, ", expiring after {}", Span(job.ttl_ms));
        }
        if job.edit.is_some() {
            words += ", as an edit of the waiting one";
        } else if job.replace {
            words += ", in place of a waiting one";
        }
        words
    }

    fn plain(&self, command: &Command) -> String {
        match command {
            Command::Open { shards } => format!("opens the deployment, of {}", shard_count(shards.count())),
            Command::Server => "asks for the server's version and policy".into(),
            Command::Reserve { session, count: 0, .. } => {
                format!("reserve takes this engine off the waiting list, {}", numbered(*session))
            }
            Command::Reserve { queue, session, count, lease_ms, wakeable, .. } => {
                let wake = if *wakeable { ", and to be woken if there are fewer" } else { "" };
                let (jobs, lease) = (counted((*count).into(), "job"), Span(*lease_ms));
                format!("reserve asks for up to {jobs} of {queue} for {lease}, {}{wake}", numbered(*session))
            }
            Command::Cancel { session, .. } => format!("cancels it, {}", numbered(*session)),
            Command::Peek { shard, lease_ms: 0, .. } => format!("gives up the pump lease of shard {shard}"),
            Command::Peek { shard, lease_ms, stay: false, .. } => format!(
                "reads the agenda of shard {shard}, and asks for its pump lease for {} if something is due",
                Span(*lease_ms)
            ),
            Command::Peek { shard, lease_ms, .. } => {
                format!(
                    "reads the agenda of shard {shard}, and asks for its pump lease for {}",
                    Span(*lease_ms)
                )
            }
            Command::Tend { forward, .. } => match forward {
                Some(forward) => format!("tends the queue, forwarding its due jobs to {forward}"),
                None => "tends the queue".into(),
            },
            Command::Requeue { dead, .. } => {
                format!("makes {} due", letters(dead.ids.is_some()))
            }
            Command::Purge { dead, .. } => format!("removes {}", letters(dead.ids.is_some())),
            Command::Configure { cfgver, .. } => match cfgver {
                Some(cfgver) => format!("replaces the config of version {cfgver}"),
                None => "replaces the config, of whatever version".into(),
            },
            Command::Pause { paused: true, .. } => "pauses the queue".into(),
            Command::Pause { .. } => "ends the pause of the queue".into(),
            Command::Destroy { born, .. } => {
                format!("destroys the queue that came to be {}", self.at(born.floor_ms()))
            }
            Command::Inspect { .. } => "reads it".into(),
            Command::List { place, limit, .. } => {
                format!("reads up to {} that are {}", counted((*limit).into(), "job"), placed(*place))
            }
            Command::Stats { .. } => "reads the queue's config, counters and sizes".into(),
            Command::Queues { shard, .. } => format!("reads the names of the queues of shard {shard}"),
            other => format!("sends {}", name(other)),
        }
    }
}

/// What a command is about: each of its jobs, all of its queue's, its queue, or nothing.
pub(super) fn subjects(command: &Command) -> Vec<About> {
    let jobs = |queue: &QueueName, ids: &mut dyn Iterator<Item = &JobId>| {
        ids.map(|id| About::Job(queue.clone(), id.clone())).collect()
    };
    match command {
        Command::Publish { queue, jobs: entries, .. } => jobs(queue, &mut entries.iter().map(|job| &job.id)),
        Command::Settle { queue, leases, .. } => jobs(queue, &mut leases.iter().map(|(id, ..)| id)),
        Command::Extend { queue, leases, .. } => jobs(queue, &mut leases.iter().map(|(id, _)| id)),
        Command::Cancel { queue, ids, .. } => jobs(queue, &mut ids.iter()),
        Command::Reschedule { queue, jobs: moved, .. } => jobs(queue, &mut moved.iter().map(|(id, _)| id)),
        Command::Inspect { queue, id } => Vec::from([About::Job(queue.clone(), id.clone())]),
        Command::Requeue { queue, dead } | Command::Purge { queue, dead } => {
            all_or(queue, dead.ids.as_deref())
        }
        Command::Configure { queue, .. } | Command::Pause { queue, .. } | Command::Destroy { queue, .. } => {
            Vec::from([About::Jobs(queue.clone())])
        }
        other => Vec::from([other.queue().cloned().map_or(About::Nothing, About::Queue)]),
    }
}

/// What the command is called.
pub(super) fn name(command: &Command) -> &'static str {
    match command {
        Command::Open { .. } => "open",
        Command::Server => "server",
        Command::Publish { .. } => "publish",
        Command::Reserve { .. } => "reserve",
        Command::Settle { .. } => "settle",
        Command::Extend { .. } => "renewal",
        Command::Cancel { .. } => "cancel",
        Command::Reschedule { .. } => "reschedule",
        Command::Peek { .. } => "peek",
        Command::Tend { .. } => "tend",
        Command::Requeue { .. } => "requeue",
        Command::Purge { .. } => "purge",
        Command::Configure { .. } => "configure",
        Command::Pause { .. } => "pause",
        Command::Destroy { .. } => "destroy",
        Command::Inspect { .. } => "inspect",
        Command::List { .. } => "list",
        Command::Stats { .. } => "stats",
        Command::Queues { .. } => "queues",
    }
}

fn session(command: &Command) -> Option<Session> {
    match command {
        Command::Publish { session, .. }
        | Command::Reserve { session, .. }
        | Command::Cancel { session, .. }
        | Command::Reschedule { session, .. } => Some(*session),
        _ => None,
    }
}

pub(super) fn numbered(session: Session) -> String {
    format!("as sequence {}", session.sequence)
}

pub(super) fn verdict(settlement: &Settlement) -> &'static str {
    match settlement {
        Settlement::Ack => "ack",
        Settlement::Nack { .. } => "nack",
        Settlement::Snooze { .. } => "snooze",
        Settlement::Release { .. } => "release",
        Settlement::Bury { .. } => "bury",
    }
}

fn settled(settlement: &Settlement) -> String {
    match settlement {
        Settlement::Ack => "ack".into(),
        Settlement::Nack { after_ms, reason } => {
            format!("nack, due again after {}, because \"{reason}\"", Span(*after_ms))
        }
        Settlement::Snooze { after_ms } => format!("snooze for {}", Span(*after_ms)),
        Settlement::Release { after_ms: 0 } => "release".into(),
        Settlement::Release { after_ms } => format!("release for {}", Span(*after_ms)),
        Settlement::Bury { reason } => format!("bury, because \"{reason}\""),
    }
}

pub(super) fn placed(place: Place) -> &'static str {
    match place {
        Place::Ready => "ready",
        Place::Delayed => "delayed",
        Place::Leased => "leased",
        Place::Dead => "dead",
    }
}

pub(super) fn shard_count(count: u16) -> String {
    counted(count.into(), "shard")
}

fn letters(is_one: bool) -> &'static str {
    if is_one { "this dead letter" } else { "all dead letters" }
}
