//! What became of each job, held against what was asked.

use std::collections::BTreeMap;
use std::fmt;

use delayline_tests::{Mark, What};

use crate::plan::{ATTEMPTS, Kind, LADDER, Plan, Planned};

/// One delivery of a job.
#[derive(Debug)]
struct Run<'a> {
    began: &'a Mark,
    ended: Option<&'a Mark>,
}

/// A line of the table.
#[derive(Default)]
struct Row {
    jobs: usize,
    runs: usize,
    done: usize,
    dead: usize,
    untouched: usize,
    /// Runs that had no end, since their worker was killed.
    cut: usize,
    /// Jobs that ended well more than once.
    twice: usize,
    late_us: Vec<i64>,
}

pub(crate) struct Audit {
    rows: BTreeMap<Kind, Row>,
    /// What must not be.
    pub(crate) wrong: Vec<String>,
}

impl Audit {
    /// Of the dead letters the reasons are known.
    pub(crate) fn new(plan: &Plan, marks: &[Mark], dead: &BTreeMap<String, String>) -> Audit {
        let mut audit = Audit { rows: BTreeMap::new(), wrong: Vec::new() };
        let runs = runs(marks, &mut audit.wrong);
        audit.strangers(plan, runs.keys().copied().chain(dead.keys().map(String::as_str)));
        for (id, planned) in plan {
            let runs = runs.get(id.as_str()).map_or(&[][..], Vec::as_slice);
            audit.count(planned, runs, dead.get(id));
            let wrong = end(planned, runs, dead.get(id)).into_iter().chain(early(planned, runs));
            audit.wrong.extend(wrong.map(|what| format!("{id} ({:?}): {what}", planned.kind)));
        }
        audit
    }

    pub(crate) fn done(&self) -> usize {
        self.rows.values().map(|row| row.done).sum()
    }

    pub(crate) fn cut(&self) -> usize {
        self.rows.values().map(|row| row.cut).sum()
    }

    pub(crate) fn of(&self, kind: Kind) -> usize {
        self.rows.get(&kind).map_or(0, |row| row.jobs)
    }

    fn strangers<'a>(&mut self, plan: &Plan, ids: impl Iterator<Item = &'a str>) {
        let strangers = ids.filter(|id| !plan.contains_key(*id));
        self.wrong.extend(strangers.map(|id| format!("{id}: nobody published it")));
    }

    fn count(&mut self, planned: &Planned, runs: &[Run], dead: Option<&String>) {
        let row = self.rows.entry(planned.kind).or_default();
        let done = runs.iter().filter(|run| run.what() == Some(What::Done)).count();
        row.jobs += 1;
        row.runs += runs.len();
        row.done += usize::from(done > 0);
        row.twice += usize::from(done > 1);
        row.dead += usize::from(dead.is_some());
        row.untouched += usize::from(runs.is_empty() && dead.is_none());
        row.cut += runs.iter().filter(|run| run.ended.is_none()).count();
        row.late_us.extend(runs.iter().map(Run::late_us));
    }
}

impl Run<'_> {
    fn what(&self) -> Option<What> {
        self.ended.map(|mark| mark.what)
    }

    fn late_us(&self) -> i64 {
        let signed = |us: u64| i64::try_from(us).expect("a time of this century");
        signed(self.began.at) - signed(self.began.due * 1000)
    }
}

/// The deliveries of each job, in order; each happens once.
fn runs<'a>(marks: &'a [Mark], wrong: &mut Vec<String>) -> BTreeMap<&'a str, Vec<Run<'a>>> {
    let mut runs: BTreeMap<(&str, u16), Run> = BTreeMap::new();
    let (began, ended): (Vec<&Mark>, Vec<&Mark>) = marks.iter().partition(|mark| mark.what == What::Began);
    for mark in began {
        if runs.insert((&mark.id, mark.delivery), Run { began: mark, ended: None }).is_some() {
            wrong.push(format!("{}: delivery {} reached two workers", mark.id, mark.delivery));
        }
    }
    for mark in ended {
        match runs.get_mut(&(&*mark.id, mark.delivery)) {
            Some(run) => run.ended = Some(mark),
            None => wrong.push(format!("{}: delivery {} ended unbegun", mark.id, mark.delivery)),
        }
    }
    let mut by_job: BTreeMap<&str, Vec<Run>> = BTreeMap::new();
    for ((id, _), run) in runs {
        by_job.entry(id).or_default().push(run);
    }
    by_job
}

/// Whether it ended as it was to.
fn end(planned: &Planned, runs: &[Run], dead: Option<&String>) -> Option<String> {
    let done = runs.iter().any(|run| run.what() == Some(What::Done));
    match (planned.kind, runs.last(), dead) {
        (Kind::Cancelled, None, None) => None,
        (Kind::Cancelled, ..) => Some("it was cancelled and ran, or is dead".to_string()),
        (Kind::Doomed, Some(last), Some(reason)) => doom(last, reason),
        (Kind::Doomed, ..) => Some("it is not among the dead letters".to_string()),
        (_, _, Some(reason)) => Some(format!("it is dead: {reason}")),
        (_, _, None) if !done => Some(format!("it is lost after {} runs", runs.len())),
        _ => None,
    }
}

/// A worker may be killed while it runs the last attempt, or between its grant and its beginning.
fn doom(last: &Run, reason: &str) -> Option<String> {
    let attempt = last.began.attempt;
    let as_expected = match last.ended {
        Some(_) if attempt + 1 == ATTEMPTS => reason == "lease ended",
        Some(_) => attempt == ATTEMPTS && reason == format!("{} failed at attempt {attempt}", last.began.id),
        None => attempt == ATTEMPTS && reason == "lease ended",
    };
    (!as_expected)
        .then(|| format!("after attempt {attempt} its reason is {reason:?}; its last run: {last:?}"))
}

/// Whether a run came before its time: the first before what the service answered, others before the ladder allows.
fn early(planned: &Planned, runs: &[Run]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (before, run) in [None].into_iter().chain(runs.iter().map(Some)).zip(runs) {
        let Mark { due, granted, at, delivery, .. } = run.began;
        let earliest_us = match before.map(|run| (run.began, run.ended)) {
            None => planned.due * 1000,
            Some((cut, None)) => cut.granted * 1000,
            Some((_, Some(done))) if done.what == What::Done => done.at,
            Some((_, Some(failed))) => {
                let step = usize::from(failed.attempt - 1).min(LADDER.len() - 1);
                failed.at + LADDER[step] * 1000
            }
        };
        if due * 1000 < earliest_us || granted < due || *at < due * 1000 {
            let when = format!("due at {due} ms, granted at {granted} ms, begun at {at} µs");
            wrong
                .push(format!("delivery {delivery}, {when}, came before {earliest_us} µs, after {before:?}"));
        }
    }
    wrong
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["kind", "jobs", "runs", "done", "dead", "never run", "cut off", "done twice"];
        for (width, name) in [9, 6, 6, 6, 5, 10, 8, 11].into_iter().zip(names) {
            write!(f, "{name:>width$}")?;
        }
        writeln!(f, "{:>30}", "late ms: least, median, most")?;
        for (kind, row) in &self.rows {
            let Row { jobs, runs, done, dead, untouched, cut, twice, late_us } = row;
            write!(
                f,
                "{:>9}{jobs:>6}{runs:>6}{done:>6}{dead:>5}{untouched:>10}{cut:>8}{twice:>11}",
                format!("{kind:?}")
            )?;
            let mut late = late_us.clone();
            late.sort_unstable();
            let ms = |at: usize| {
                late.get(at).map_or(String::from("-"), |us| format!("{}.{}", us / 1000, us % 1000 / 100))
            };
            let last = late.len().saturating_sub(1);
            writeln!(f, "{:>12}{:>9}{:>9}", ms(0), ms(last / 2), ms(last))?;
        }
        Ok(())
    }
}
