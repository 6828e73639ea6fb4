use std::collections::BTreeMap;
use std::fmt;

use super::case::Case;
use super::expected::Expected;
use super::history::{End, History, Ledger, Run};

/// Every acknowledgement of a history held against what is promised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// What must not be.
    pub violations: Vec<Violation>,
    /// Publishes that were acknowledged.
    pub acknowledged: usize,
    /// Jobs that were accepted and are lost, where that is allowed.
    pub lost: Vec<String>,
    /// What else only a loss of writes explains: cancelled jobs that ran, leases of one job at the same time, and so on.
    pub undone: Vec<String>,
    /// Acks by leases that were over, answered as done since a later delivery had been acked before.
    pub mistaken: Vec<String>,
    /// Jobs of which nothing is left, and whose time to live was over.
    pub expired: usize,
    /// Runs that ended well.
    pub done: usize,
    /// Runs that did not end, their worker being killed.
    pub cut: usize,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// With which job.
    pub id: Option<String>,
    /// How.
    pub what: String,
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// What was accepted ends well, is cancelled, expires or is a dead letter.
    NothingVanishes,
    /// No delivery before its due time, nor one due before a client asked for it.
    NeverEarly,
    /// A job is granted again only once its lease has ended or was settled.
    OneLiveLease,
    /// No two grants of a job have the same fence, and no grant reaches two runs.
    FencesDiffer,
    /// What was cancelled runs no more.
    CancelledIsGone,
    /// No more attempts than were allowed.
    AttemptsAreLimited,
    /// What was acknowledged as done runs no more, and a lease that is over settles nothing. An ack by such a lease may be
    /// answered as done if the job is, by a later delivery.
    AckIsFinal,
    /// What was refused was not done, and nobody runs what nobody published.
    NothingFromNowhere,
    /// A dead letter has a reason, which is so.
    DeathHasAReason,
    /// In the end nothing waits or is held.
    AllSettles,
    /// The counters of a queue add up.
    CountersAddUp,
    /// Of what is gone no key is left.
    NothingIsLeft,
    /// Every part answers as it should, and ends when it is told.
    PartsBehave,
}

impl Audit {
    /// Looks through all of it.
    pub fn new(history: &History) -> Audit {
        let mut audit = Audit::default();
        let mut runs: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
        for run in &history.runs {
            runs.entry(&run.id).or_default().push(run);
            audit.done += usize::from(matches!(run.end, Some((End::Done, _))));
            audit.cut += usize::from(run.end.is_none());
        }
        for id in runs.keys().copied().chain(history.dead.keys().map(String::as_str)) {
            if !history.jobs.contains_key(id) {
                audit.break_rule(Rule::NothingFromNowhere, Some(id), "nobody published it".to_string());
            }
        }
        for (id, story) in &history.jobs {
            let mut runs = runs.remove(id.as_str()).unwrap_or_default();
            runs.sort_by_key(|run| (run.granted, run.fence));
            let letter = history.dead.get(id);
            let is_held = history.held.contains(id);
            Case { id, story, runs, letter, is_held, losses: &history.losses }.judge(&mut audit);
        }
        for (queue, ledger) in &history.ledgers {
            audit.add_up(history, queue, ledger);
        }
        for key in &history.keys {
            audit.break_rule(Rule::NothingIsLeft, None, format!("{key} is left"));
        }
        for what in &history.oddities {
            audit.break_rule(Rule::PartsBehave, None, what.clone());
        }
        audit
    }

    pub(super) fn break_rule(&mut self, rule: Rule, id: Option<&str>, what: String) {
        self.violations.push(Violation { rule, id: id.map(str::to_string), what });
    }

    fn add_up(&mut self, history: &History, queue: &str, ledger: &Ledger) {
        let Ledger { counters, holds, dead } = *ledger;
        let letters =
            history.dead.keys().filter(|id| history.jobs.get(*id).is_some_and(|job| job.queue == queue));
        let letters = letters.count() as u64;
        let gone =
            counters.acked + counters.cancelled + counters.expired + counters.purged + counters.forwarded;
        let mut wrong = Vec::new();
        if counters.published != gone + counters.lost + holds {
            wrong.push(format!("it holds {holds}"));
        }
        if dead != letters {
            wrong.push(format!("it says {dead} dead letters, and lists {letters}"));
        }
        if counters.lost + counters.unreadable + counters.newer > 0 {
            wrong.push("records were lost or could not be read".to_string());
        }
        if history.losses.is_empty() {
            wrong.extend(Expected::of(history, queue).differences(ledger));
        }
        for what in wrong {
            self.break_rule(Rule::CountersAddUp, None, format!("queue {queue}: {what}: {counters:?}"));
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { rule, id, what } = self;
        write!(
            f,
            "{rule:?}: {}{}{what}",
            id.as_deref().unwrap_or_default(),
            if id.is_some() { ": " } else { "" }
        )
    }
}
