use std::collections::BTreeMap;

use super::super::finding::Finding;
use super::super::wire::Wire;
use super::fault::Fault;

/// How many of the values that are wrong in the same way are named.
const NAMED: usize = 5;
/// How many changes of one kind are told.
const TOLD: usize = 1000;

/// What is done about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Mode {
    /// It is told.
    Look,
    /// What would mend it is told too.
    DryRun,
    /// It is mended.
    Repair,
}

/// Gathers the faults, and mends them if it is to.
pub(super) struct Judge {
    pub(super) mode: Mode,
    /// By where they are and what is wrong.
    tallies: BTreeMap<(String, String), Tally>,
}

#[derive(Default)]
struct Tally {
    count: u64,
    subjects: Vec<String>,
    changes: Vec<String>,
    mended: u64,
    failed: Option<String>,
}

impl Judge {
    pub(super) fn new(mode: Mode) -> Judge {
        Judge { mode, tallies: BTreeMap::new() }
    }

    /// Whether it was mended. What has changed since it was seen is no fault any more, or is found again.
    pub(super) async fn take(&mut self, wire: &mut Wire, place: &str, fault: Fault) -> bool {
        if self.mode != Mode::Repair {
            self.note(place, &fault.problem, fault.subject, fault.change);
            return false;
        }
        match wire.ask::<u64>(&fault.mend.command()).await {
            Ok(0) => false,
            Ok(_) => {
                self.mended(place, &fault.problem, fault.subject, fault.change);
                true
            }
            Err(why) => {
                self.note(place, &fault.problem, fault.subject, String::new()).failed = Some(why);
                false
            }
        }
    }

    /// A fault that was mended already.
    pub(super) fn mended(&mut self, place: &str, problem: &str, subject: String, change: String) {
        self.note(place, problem, subject, change).mended += 1;
    }

    /// A fault that nothing was done about.
    pub(super) fn found(&mut self, place: &str, problem: &str, subject: String, change: String) {
        self.note(place, problem, subject, change);
    }

    fn note(&mut self, place: &str, problem: &str, subject: String, change: String) -> &mut Tally {
        let tally = self.tallies.entry((place.to_owned(), problem.to_owned())).or_default();
        tally.count += 1;
        if tally.subjects.len() < NAMED {
            tally.subjects.push(subject);
        }
        if !change.is_empty() && tally.changes.len() < TOLD {
            tally.changes.push(change);
        }
        tally
    }

    /// How many faults are left as they are.
    pub(super) fn left(&self) -> u64 {
        self.tallies.values().map(|tally| tally.count - tally.mended).sum()
    }

    pub(super) fn findings(self) -> Vec<Finding> {
        let mode = self.mode;
        self.tallies
            .into_iter()
            .map(|((place, problem), tally)| tally.finding(mode, &place, &problem))
            .collect()
    }
}

impl Tally {
    fn finding(mut self, mode: Mode, place: &str, problem: &str) -> Finding {
        let unnamed = self.count - self.subjects.len() as u64;
        let others = if unnamed > 0 { format!(" and {unnamed} more") } else { String::new() };
        let detail = format!("{place}: {problem}: {}{others}", self.subjects.join(", "));
        let untold =
            (self.changes.len() == TOLD).then(|| self.count - TOLD as u64).filter(|untold| *untold > 0);
        self.changes.extend(untold.map(|untold| format!("and {untold} more like these")));
        match (mode, self.failed) {
            (Mode::Look, _) => {
                let mend = "delayline doctor --repair mends it; --repair --dry-run tells how";
                Finding::error("queues", detail, mend)
            }
            (Mode::DryRun, _) => {
                Finding::error("queues", detail, "delayline doctor --repair would").changing(self.changes)
            }
            (Mode::Repair, Some(why)) => {
                let mend = format!("it could not be mended: {why}");
                Finding::error("queues", detail, &mend).changing(self.changes)
            }
            (Mode::Repair, None) if self.mended < self.count => {
                Finding::error("queues", detail, "nothing mends it by itself: see docs/production.md")
            }
            (Mode::Repair, None) => Finding::mended("queues", detail, self.changes),
        }
    }
}
