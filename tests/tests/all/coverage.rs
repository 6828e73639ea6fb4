//! Which answers the random commands have drawn so far: a comparison that never sees one proves nothing about it.

use std::collections::BTreeSet;

use delayline_core::Reply;

/// What every run of a hundred sequences must have drawn.
const EXPECTED: [&str; 63] = [
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
    "DeadMoved false",
    "DeadMoved true",
    "Destroyed",
    "died",
    "ended",
    "expired",
    "Extended Extended",
    "Extended Gone",
    "Extended Stale",
    "forward_error",
    "forwarded",
    "Found",
    "Gone",
    "granted",
    "Granted",
    "Granted more",
    "heard head",
    "heard wake",
    "Listed",
    "Listed more",
    "lost",
    "nacked",
    "Named",
    "newer",
    "Opened",
    "PauseConflict",
    "Peeked by none",
    "Peeked by one",
    "published",
    "Published Duplicate",
    "Published Full",
    "Published New",
    "Published Replaced",
    "purged",
    "released",
    "requeued",
    "Rescheduled Dead",
    "Rescheduled Expires",
    "Rescheduled Gone",
    "Rescheduled Leased",
    "Rescheduled Moved",
    "Settled Died",
    "Settled Done",
    "Settled Expired",
    "Settled Gone",
    "Settled Repeat",
    "Settled Stale",
    "snoozed",
    "Superseded",
    "swept",
    "Tended",
    "Tended more",
    "unreadable",
];

/// The answers seen.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeSet<String>);

impl Coverage {
    /// Takes note of a reply.
    pub(crate) fn reply(&mut self, reply: &Reply) {
        let text = format!("{reply:?}");
        let name = text.split([' ', '(', '{']).next().unwrap_or_default().to_string();
        match reply {
            Reply::Published { time, since, outcomes, .. } => {
                self.outcomes(&name, outcomes);
                self.when(time != since, "again");
            }
            Reply::Settled { outcomes, .. } => self.outcomes(&name, outcomes),
            Reply::Extended { outcomes, .. } => self.outcomes(&name, outcomes),
            Reply::Cancelled { outcomes, .. } => self.outcomes(&name, outcomes),
            Reply::Rescheduled { outcomes, .. } => self.outcomes(&name, outcomes),
            Reply::DeadMoved { outcomes, .. } => self.outcomes(&name, outcomes),
            Reply::Granted { more, backoff, .. } => {
                self.more(name, *more);
                self.when(backoff.is_some(), "backoff");
            }
            Reply::Listed { more, .. } | Reply::Tended { more, .. } => self.more(name, *more),
            Reply::Peeked { holder: None, .. } => self.when(true, "Peeked by none"),
            Reply::Peeked { .. } => self.when(true, "Peeked by one"),
            Reply::Counted { stats, .. } => {
                let counters = format!("{:?}", stats.counters);
                let fields = counters.trim_start_matches("Counters { ").trim_end_matches(" }").split(", ");
                let counted =
                    fields.filter_map(|field| field.split_once(": ")).filter(|(_, count)| *count != "0");
                self.0.extend(counted.map(|(name, _)| name.to_string()));
                self.when(stats.forward_error.is_some(), "forward_error");
            }
            _ => self.when(true, &name),
        }
    }

    /// Takes note of what both stores hold or heard.
    pub(crate) fn when(&mut self, seen: bool, what: &str) {
        if seen {
            self.0.insert(what.to_string());
        }
    }

    /// What should have been seen and was not.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        EXPECTED.into_iter().filter(|what| !self.0.contains(*what)).collect()
    }

    fn more(&mut self, name: String, more: bool) {
        self.when(more, &format!("{name} more"));
        self.0.insert(name);
    }

    fn outcomes(&mut self, name: &str, outcomes: &[impl std::fmt::Debug]) {
        self.0.extend(outcomes.iter().map(|outcome| format!("{name} {outcome:?}")));
    }
}
