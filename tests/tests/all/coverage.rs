//! Which answers the random commands have drawn so far: a comparison that never sees one proves nothing about it.

use std::collections::BTreeSet;
use std::fmt::Debug;

use delayline_core::{Command, PublishOutcome, Reply, Stats};

/// What every run of some hundred sequences must have drawn. Not among it are the server's own answer to INFO, which no two
/// stores share.
const EXPECTED: [&str; 112] = [
    "acked",
    "again",
    "backoff",
    "cancelled",
    "Cancelled Cancelled",
    "Cancelled Dead",
    "Cancelled Gone",
    "Cancelled Leased",
    "ConfigConflict",
    "Configured",
    "Counted",
    "Counted paused",
    "damaged",
    "DeadMoved false",
    "DeadMoved left",
    "DeadMoved true",
    "Destroyed",
    "died",
    "edited",
    "ended",
    "expired",
    "Extended Extended",
    "Extended Gone",
    "Extended Stale",
    "forward_error",
    "forwarded",
    "Found Dead",
    "Found Delayed",
    "Found Leased",
    "Found Ready",
    "Gated",
    "Gated untimed",
    "Gone",
    "Granted",
    "granted",
    "Granted closed",
    "Granted more",
    "Granted next",
    "Granted none",
    "heard head",
    "heard wake",
    "Listed Dead",
    "Listed Delayed",
    "Listed Leased",
    "Listed more",
    "Listed none",
    "Listed Ready",
    "lost",
    "nacked",
    "Named",
    "newer",
    "not edited",
    "Opened",
    "PauseConflict",
    "Peeked agenda",
    "Peeked due",
    "Peeked by none",
    "Peeked by one",
    "published",
    "Published Duplicate",
    "Published Full",
    "Published New",
    "Published over",
    "Published Replaced",
    "purged",
    "ran Cancel",
    "ran Configure",
    "ran Destroy",
    "ran Extend",
    "ran Inspect",
    "ran List(Dead)",
    "ran List(Delayed)",
    "ran List(Leased)",
    "ran List(Ready)",
    "ran Open",
    "ran Pause",
    "ran Peek",
    "ran Publish",
    "ran Purge",
    "ran Queues",
    "ran Requeue",
    "ran Reschedule",
    "ran Reserve",
    "ran Settle",
    "ran Stats",
    "ran Tend",
    "released",
    "requeued",
    "Rescheduled Dead",
    "Rescheduled Expires",
    "Rescheduled Gone",
    "Rescheduled Leased",
    "Rescheduled Moved",
    "Settled Conflict(Bury)",
    "Settled Conflict(Nack)",
    "Settled Conflict(Release)",
    "Settled Conflict(Snooze)",
    "Settled Died",
    "Settled Done",
    "Settled Expired",
    "Settled Gone",
    "Settled Repeat",
    "Settled Stale",
    "Settled untimed",
    "snoozed",
    "Superseded",
    "swept",
    "Tended",
    "Tended forward",
    "Tended more",
    "Tended next",
    "unreadable",
];

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeSet<String>);

impl Coverage {
    /// Takes note of a command.
    pub(crate) fn command(&mut self, command: &Command) {
        self.saw("ran", command.kind());
    }

    /// Takes note of a reply.
    pub(crate) fn reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Opened { .. } => self.when(true, "Opened"),
            Reply::Published { time, since, outcomes, full } => {
                self.all("Published", outcomes);
                self.when(time != since, "again");
                self.when(full.is_some(), "Published over");
            }
            Reply::Superseded { .. } => self.when(true, "Superseded"),
            Reply::Gated { time, .. } => {
                self.when(true, "Gated");
                self.when(time.is_none(), "Gated untimed");
            }
            Reply::Granted { jobs, backoff, next, more, open, .. } => {
                self.when(true, "Granted");
                self.when(jobs.is_empty(), "Granted none");
                self.when(backoff.is_some(), "backoff");
                self.when(next.is_some(), "Granted next");
                self.when(*more, "Granted more");
                self.when(!open, "Granted closed");
            }
            Reply::Settled { time, outcomes } => {
                self.all("Settled", outcomes);
                self.when(time.is_none(), "Settled untimed");
            }
            Reply::Extended { outcomes, .. } => self.all("Extended", outcomes),
            Reply::Cancelled { outcomes, .. } => self.all("Cancelled", outcomes),
            Reply::Rescheduled { outcomes, .. } => self.all("Rescheduled", outcomes),
            Reply::Peeked { holder, agenda, firsts, .. } => {
                self.when(firsts.iter().any(Option::is_some), "Peeked due");
                self.when(holder.is_none(), "Peeked by none");
                self.when(holder.is_some(), "Peeked by one");
                self.when(!agenda.is_empty(), "Peeked agenda");
            }
            Reply::Tended { next, more, forward, .. } => {
                self.when(true, "Tended");
                self.when(next.is_some(), "Tended next");
                self.when(*more, "Tended more");
                self.when(forward.is_some(), "Tended forward");
            }
            Reply::DeadMoved { left, outcomes, .. } => {
                self.all("DeadMoved", outcomes);
                self.when(*left > 0, "DeadMoved left");
            }
            Reply::Configured { .. } => self.when(true, "Configured"),
            Reply::ConfigConflict { .. } => self.when(true, "ConfigConflict"),
            Reply::PauseConflict { .. } => self.when(true, "PauseConflict"),
            Reply::Destroyed { .. } => self.when(true, "Destroyed"),
            Reply::Gone { .. } => self.when(true, "Gone"),
            Reply::Found { job, .. } => self.saw("Found", job.place),
            Reply::Listed { jobs, more, .. } => {
                for job in jobs {
                    self.saw("Listed", job.place);
                }
                self.when(jobs.is_empty(), "Listed none");
                self.when(*more, "Listed more");
            }
            Reply::Counted { stats, .. } => self.counted(stats),
            Reply::Named { .. } => self.when(true, "Named"),
            Reply::Server { .. } | Reply::OtherSlot | Reply::Refused(_) | Reply::Broken(_) => {
                self.saw("unexpected", reply);
            }
        }
    }

    /// Takes note of which edits of a publish were carried out.
    pub(crate) fn edits(&mut self, command: &Command, reply: &Reply) {
        let (Command::Publish { jobs, .. }, Reply::Published { outcomes, .. }) = (command, reply) else {
            return;
        };
        for (_, outcome) in jobs.iter().zip(outcomes).filter(|(job, _)| job.edit.is_some()) {
            self.when(*outcome == PublishOutcome::Replaced, "edited");
            self.when(*outcome == PublishOutcome::Duplicate, "not edited");
        }
    }

    /// Takes note of what a store holds, heard or answered.
    pub(crate) fn when(&mut self, seen: bool, what: &str) {
        if seen && !self.0.contains(what) {
            self.0.insert(what.to_string());
        }
    }

    /// Takes note of what another has seen.
    pub(crate) fn add(&mut self, other: Coverage) {
        self.0.extend(other.0);
    }

    /// What should have been seen and was not.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        EXPECTED.into_iter().filter(|what| !self.0.contains(*what)).collect()
    }

    fn counted(&mut self, stats: &Stats) {
        self.when(true, "Counted");
        self.when(stats.paused, "Counted paused");
        self.when(stats.forward_error.is_some(), "forward_error");
        for (name, count) in stats.counters.named() {
            self.when(count > 0, name);
        }
    }

    fn all(&mut self, name: &str, outcomes: &[impl Debug]) {
        for outcome in outcomes {
            self.saw(name, outcome);
        }
    }

    fn saw(&mut self, name: &str, what: impl Debug) {
        self.when(true, &format!("{name} {what:?}"));
    }
}
