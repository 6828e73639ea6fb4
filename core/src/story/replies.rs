use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::commands::{name, placed, shard_count, subjects, verdict};
use super::{About, Line, Story, counted, from, one};
use crate::{
    CancelOutcome, Command, Entry, ExtendOutcome, Full, Grant, JobId, PublishOutcome, QueueName, Refusal,
    Reply, RescheduleOutcome, SettleOutcome, Span, Stored, UnixMicros, UnixMs, VerdictKind,
};

impl Story {
    /// The store answers a command: a line for each job that the command or its answer carries.
    pub fn answered(&self, command: &Command, reply: &Reply) -> Vec<Line> {
        match (command, reply) {
            (Command::Publish { queue, jobs, .. }, Reply::Published { since, outcomes, full, .. }) => {
                let line = |(job, outcome): (&Entry, &PublishOutcome)| {
                    let words = self.accepted(job, *since, *outcome, *full);
                    About::Job(queue.clone(), job.id.clone()).line(words)
                };
                jobs.iter().zip(outcomes).map(line).collect()
            }
            (Command::Reserve { queue, .. }, Reply::Granted { .. }) => self.granted(queue, reply),
            (Command::Settle { queue, leases, .. }, Reply::Settled { outcomes, .. }) => {
                let lines = leases.iter().zip(outcomes).map(|((id, _, settlement), outcome)| {
                    let words = format!("{} {}", verdict(settlement), settled(*outcome));
                    About::Job(queue.clone(), id.clone()).line(words)
                });
                lines.collect()
            }
            (Command::Extend { queue, leases, .. }, Reply::Extended { time, outcomes, lease_end }) => {
                let end = self.then(*lease_end, time.floor_ms());
                let lines = leases.iter().zip(outcomes).map(|((id, _), outcome)| {
                    About::Job(queue.clone(), id.clone()).line(extended(*outcome, &end))
                });
                lines.collect()
            }
            (Command::Cancel { queue, ids, .. }, Reply::Cancelled { outcomes, .. }) => {
                let line = |(id, outcome): (&JobId, &CancelOutcome)| {
                    About::Job(queue.clone(), id.clone()).line(cancelled(*outcome))
                };
                ids.iter().zip(outcomes).map(line).collect()
            }
            (Command::Reschedule { queue, jobs, .. }, Reply::Rescheduled { time, outcomes, dues }) => {
                let outcomes = outcomes.iter().zip(dues);
                let lines = jobs.iter().zip(outcomes).map(|((id, _), (outcome, due))| {
                    let words = self.rescheduled(*outcome, *due, *time);
                    About::Job(queue.clone(), id.clone()).line(words)
                });
                lines.collect()
            }
            (Command::Requeue { queue, dead } | Command::Purge { queue, dead }, Reply::DeadMoved { .. }) => {
                dead_moved(queue, dead.ids.as_deref(), reply)
            }
            (Command::List { queue, .. }, Reply::Listed { time, jobs, more }) => {
                let more = if *more { ", and there are more" } else { "" };
                let head = format!("listed {}{more}", counted(jobs.len() as u64, "job"));
                let jobs = jobs.iter().map(|job| self.found(queue, job, *time));
                one(About::Queue(queue.clone()).line(head)).into_iter().chain(jobs).collect()
            }
            (Command::Inspect { queue, .. }, Reply::Found { time, job }) => {
                one(self.found(queue, job, *time))
            }
            _ => {
                let words = self.plainly(command, reply);
                subjects(command).into_iter().map(|about| about.line(words.clone())).collect()
            }
        }
    }

    fn accepted(
        &self,
        job: &Entry,
        since: UnixMicros,
        outcome: PublishOutcome,
        full: Option<Full>,
    ) -> String {
        let due = self.then(job.due.counted_from(since), since.floor_ms());
        match outcome {
            PublishOutcome::New => format!("accepted, due {due}"),
            PublishOutcome::Replaced => format!("accepted in place of the waiting job of this id, due {due}"),
            PublishOutcome::Duplicate => "refused: the id is in use, and that job is untouched".into(),
            PublishOutcome::Full => {
                let held = full.map(|full| {
                    let (jobs, most) = (counted(full.jobs, "job"), full.ceiling.jobs);
                    format!(
                        ": it holds {jobs} of {} bytes, {} of them dead, and may hold {most}",
                        full.bytes, full.dead
                    )
                });
                format!("refused: the queue is full{}", held.unwrap_or_default())
            }
        }
    }

    fn granted(&self, queue: &QueueName, reply: &Reply) -> Vec<Line> {
        let Reply::Granted { time, lease_end, jobs, next, more, open, .. } = reply else {
            return Vec::new();
        };
        let now = time.floor_ms();
        let mut words = match jobs.len() {
            0 => "granted nothing".into(),
            count => format!("granted {}", counted(count as u64, "job")),
        };
        if !open {
            words += ": the queue is paused or forwards";
        }
        if *more {
            words += ", and more are due";
        }
        if let Some(next) = next {
            let _ = write!(words, "; the next thing to happen there is {}", self.then(*next, now));
        }
        let grants = jobs.iter().map(|grant| {
            About::Job(queue.clone(), grant.id.clone()).line(self.grant(grant, now, *lease_end))
        });
        one(About::Queue(queue.clone()).line(words)).into_iter().chain(grants).collect()
    }

    fn grant(&self, grant: &Grant, now: UnixMs, lease_end: UnixMs) -> String {
        let state = &grant.state;
        let (attempt, of, late) = (state.attempts, state.max, Span(now.since(grant.due)));
        let mut words = format!("granted attempt {attempt} of {of} under fence {}", state.fence);
        if state.deliveries != state.attempts {
            let _ = write!(words, " (delivery {})", state.deliveries);
        }
        let _ = write!(words, ", {late} after it was due, its lease ending {}", self.then(lease_end, now));
        if !state.reason.as_str().is_empty() {
            let _ = write!(words, "; it failed before: \"{}\"", state.reason);
        }
        words
    }

    fn rescheduled(&self, outcome: RescheduleOutcome, due: UnixMs, time: UnixMicros) -> String {
        match outcome {
            RescheduleOutcome::Moved => format!("rescheduled, due {}", self.then(due, time.floor_ms())),
            RescheduleOutcome::Leased => "not rescheduled: a consumer holds it".into(),
            RescheduleOutcome::Dead => "not rescheduled: it is a dead letter".into(),
            RescheduleOutcome::Gone => "not rescheduled: there is no such job".into(),
            RescheduleOutcome::Expires => "not rescheduled: it would expire before".into(),
        }
    }

    fn found(&self, queue: &QueueName, job: &Stored, time: UnixMicros) -> Line {
        let at = self.then(job.at, time.floor_ms());
        let words = match job.state.as_ref().map(|state| (state.attempts, state.max)) {
            Some((attempts, max)) => {
                format!("is {}, {at}, after attempt {attempts} of {max}", placed(job.place))
            }
            None => format!("is {}, {at}, never delivered", placed(job.place)),
        };
        About::Job(queue.clone(), job.id.clone()).line(words)
    }

    /// What is said alike of every job of the command.
    fn plainly(&self, command: &Command, reply: &Reply) -> String {
        match reply {
            Reply::Refused(Refusal::NoScript) => {
                let name = name(command);
                format!("{name} refused: Redis does not know the script; it is sent with its source")
            }
            Reply::Refused(why) => {
                format!("{} refused, certainly not run: {why}; it is sent again", name(command))
            }
            Reply::Broken(why) => format!("{} failed, and may have run: {why}", name(command)),
            Reply::Superseded { .. } => {
                format!("{} came too late and did nothing: a later batch of its lane has run", name(command))
            }
            Reply::Gated { gate, .. } => {
                format!("refused: the queue has a gate, for what newer clients know: {gate}")
            }
            Reply::Opened { layout, shards, .. } => {
                format!("opened: layout {layout}, {}", shard_count(shards.count()))
            }
            Reply::Server { version: (major, minor, patch), policy } => {
                let policy = policy.as_deref().unwrap_or("of unknown policy");
                format!("the server is of version {major}.{minor}.{patch}, {policy}")
            }
            Reply::Peeked { time, holder, agenda, firsts } => {
                let now = time.floor_ms();
                let holder = match holder {
                    Some((holder, until)) => format!("held by {holder}, ending {}", self.then(*until, now)),
                    None => "held by nobody".into(),
                };
                let first = agenda.first().map(|(queue, at)| format!(", {queue} first, {}", from(now, *at)));
                let entries = match agenda.len() {
                    0 => "nothing on the agenda".into(),
                    1 => "1 queue on the agenda".into(),
                    count => format!("{count} queues on the agenda"),
                };
                let ready = firsts.iter().flatten().filter(|at| **at <= now).count();
                let ready =
                    if ready > 0 { format!("; {ready} of its queues have due jobs") } else { String::new() };
                format!("the pump lease is {holder}; {entries}{}{ready}", first.unwrap_or_default())
            }
            Reply::Tended { time, ended, expired, purged, forwarded, next, .. } => {
                let next = next.map(|next| {
                    format!("; the next thing to happen there is {}", self.then(next, time.floor_ms()))
                });
                format!(
                    "tended: {}, {expired} expired, {purged} purged, {forwarded} forwarded{}",
                    counted(*ended, "ended lease"),
                    next.unwrap_or_default()
                )
            }
            Reply::Configured { cfgver, .. } => format!("done: the config is of version {cfgver}"),
            Reply::ConfigConflict { cfgver, .. } | Reply::PauseConflict { cfgver, .. } => {
                format!("not done: somebody else has made version {cfgver}")
            }
            Reply::Destroyed { waiting, leased, dead, .. } => {
                format!("destroyed, with {waiting} waiting, {leased} leased and {dead} dead")
            }
            Reply::Gone { .. } => "there is no such thing".into(),
            Reply::Counted { stats, .. } => format!(
                "counted: {} ready, {} delayed, {} leased, {} dead",
                stats.ready, stats.delayed, stats.leased, stats.dead
            ),
            Reply::Named { queues, .. } => format!("named {}", counted(queues.len() as u64, "queue")),
            other => format!("{} answered by what does not fit it: {other:?}", name(command)),
        }
    }
}

fn dead_moved(queue: &QueueName, ids: Option<&[JobId]>, reply: &Reply) -> Vec<Line> {
    let Reply::DeadMoved { moved, left, outcomes, .. } = reply else { return Vec::new() };
    let Some(ids) = ids else {
        let words = format!("{} moved, {left} left", counted(*moved, "dead letter"));
        return one(About::Jobs(queue.clone()).line(words));
    };
    let lines = ids.iter().zip(outcomes).map(|(id, moved)| {
        let words = if *moved { "moved from the dead letters" } else { "is no dead letter" };
        About::Job(queue.clone(), id.clone()).line(words)
    });
    lines.collect()
}

pub(super) fn settled(outcome: SettleOutcome) -> &'static str {
    use VerdictKind::{Ack, Bury, Nack, Release, Snooze};
    match outcome {
        SettleOutcome::Done => "done",
        SettleOutcome::Died => "done: the job is a dead letter now",
        SettleOutcome::Expired => "done: the job had expired while it was held, and that is its end",
        SettleOutcome::Gone => "refused: there is no such job",
        SettleOutcome::Stale => "refused: stale, the lease is another's or has ended",
        SettleOutcome::Repeat => "refused: it was carried out before",
        SettleOutcome::Conflict(Ack) => "refused: the job was acked before",
        SettleOutcome::Conflict(Nack) => "refused: the job was nacked before",
        SettleOutcome::Conflict(Snooze) => "refused: the job was snoozed before",
        SettleOutcome::Conflict(Release) => "refused: the job was released before",
        SettleOutcome::Conflict(Bury) => "refused: the job was buried before",
    }
}

pub(super) fn extended(outcome: ExtendOutcome, end: &str) -> String {
    match outcome {
        ExtendOutcome::Extended => format!("lease renewed, ending {end}"),
        ExtendOutcome::Gone => "lease not renewed: there is no such job".into(),
        ExtendOutcome::Stale => "lease not renewed: stale, it is another's or has ended".into(),
    }
}

pub(super) fn cancelled(outcome: CancelOutcome) -> &'static str {
    match outcome {
        CancelOutcome::Cancelled => "cancelled",
        CancelOutcome::Leased => "not cancelled: a consumer holds it",
        CancelOutcome::Dead => "not cancelled: it is a dead letter",
        CancelOutcome::Gone => "not cancelled: there is no such job",
    }
}
