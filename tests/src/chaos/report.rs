use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::Options;
use super::audit::Audit;
use super::history::{Answer, Asked, Call, Happened, History, Run};
use super::plan::Plan;

const SHOWN: usize = 20;
const STORIES: usize = 5;
/// How long before and after a job's life events are part of its story, in µs.
const AROUND: u64 = 3_000_000;

/// What a run of chaos came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// What begins it again.
    pub command: String,
    /// What is wrong, and what was counted.
    pub audit: Audit,
    /// How long there were faults.
    pub faults: Duration,
    /// How long all took to settle after them.
    pub settled: Duration,
    /// The longest time from the end of a fault to the next accepted job, and to the next run.
    pub recovery: [Duration; 2],
    kinds: Vec<(String, usize)>,
    jobs: usize,
    calls: [usize; 4],
    runs: usize,
    losses: usize,
    stories: String,
}

impl Report {
    pub(super) fn new(
        options: &Options,
        plan: &Plan,
        history: &History,
        faults: Duration,
        settled: Duration,
    ) -> Report {
        let audit = Audit::new(history);
        let ids: Vec<&str> =
            audit.violations.iter().filter_map(|violation| violation.id.as_deref()).collect();
        let mut seen = BTreeSet::new();
        let ids = ids.into_iter().filter(|id| seen.insert(*id)).take(STORIES);
        let stories = ids.map(|id| story(history, id)).collect();
        let accepted = history.jobs.values().flat_map(|job| &job.calls);
        let accepted = accepted
            .filter(|call| matches!(call.what, Asked::Publish(_)) && matches!(call.answer, Answer::Done(_)));
        let accepted: BTreeSet<u64> = accepted.map(|call| call.to).collect();
        let began: BTreeSet<u64> = history.runs.iter().map(|run| run.began).collect();
        let recovery = [&accepted, &began].map(|times| longest(&history.events, times));
        Report {
            command: options.command(),
            faults,
            settled,
            recovery,
            kinds: plan.kinds().into_iter().collect(),
            jobs: history.jobs.len(),
            calls: calls(history),
            runs: history.runs.len(),
            losses: history.losses.len(),
            stories,
            audit,
        }
    }

    /// Writes it down beside what the parts wrote.
    pub(super) fn keep(&self, directory: &Path, history: &History) {
        let lost: String = self.audit.lost.iter().take(SHOWN).map(|id| story(history, id)).collect();
        let text =
            format!("{self}\n\nlost, as allowed:\n{lost}\n\nall that happened:\n{:#?}\n", history.events);
        let path = directory.join("report.txt");
        if let Err(error) = fs::write(&path, text) {
            println!("{} cannot be written: {error}", path.display());
        }
        println!("kept in {}", directory.display());
    }
}

/// How many requests there were, and how many of them repeated what was done, were refused, and were never answered.
fn calls(history: &History) -> [usize; 4] {
    let mut counts = [0; 4];
    for call in history.jobs.values().flat_map(|job| &job.calls) {
        counts[0] += 1;
        let place = match call.answer {
            Answer::Duplicate => 1,
            Answer::NotDone => 2,
            Answer::Unknown => 3,
            Answer::Done(_) | Answer::Missed => continue,
        };
        counts[place] += 1;
    }
    counts
}

/// The longest time from the end of a fault to the next of these times before another fault begins.
fn longest(events: &[Happened], times: &BTreeSet<u64>) -> Duration {
    let waits = events.iter().filter(|event| event.is_end).filter_map(|event| {
        let next = times.range(event.at..).next()?;
        Some(next - event.at)
    });
    Duration::from_micros(waits.max().unwrap_or(0))
}

/// All that is known of a job, and what happened around it, in order.
fn story(history: &History, id: &str) -> String {
    let Some(job) = history.jobs.get(id) else { return format!("{id}: nobody published it\n") };
    let mut lines: Vec<(u64, String)> = Vec::new();
    for Call { what, from, to, answer } in &job.calls {
        lines.push((*from, format!("a client asks: {what:?}")));
        lines.push((*to, format!("a client is told of {what:?}: {answer:?}")));
    }
    for run in history.runs.iter().filter(|run| run.id == id) {
        let Run { consumer, attempt, fence, granted, .. } = run;
        lines.push((granted * 1_000, format!("granted to {consumer}: attempt {attempt}, fence {fence}")));
        lines.push((run.began, format!("{run:?}")));
        if let Some((end, at)) = run.end {
            lines.push((at, format!("{consumer}, fence {fence}: {end:?}")));
        }
    }
    let first = lines.iter().map(|(at, _)| *at).min().unwrap_or(0).saturating_sub(AROUND);
    let last = lines.iter().map(|(at, _)| *at).max().unwrap_or(0) + AROUND;
    let around = history.events.iter().filter(|event| (first..=last).contains(&event.at));
    lines.extend(around.map(|event| (event.at, format!("CHAOS: {}", event.what))));
    for loss in history.losses.iter().filter(|loss| loss.covers(first, last)) {
        lines.push((loss.from, format!("CHAOS: from here on writes may be lost: {}", loss.why)));
        lines.push((loss.to, "CHAOS: until here".to_string()));
    }
    lines.sort();
    let mut text = format!("{id} of queue {}: {} attempts, {job:?}\n", job.queue, job.attempts);
    for (at, line) in lines {
        let _ = writeln!(text, "  {at} µs  {line}");
    }
    let _ = writeln!(
        text,
        "  in the end: dead {:?}, held {}",
        history.dead.get(id),
        history.held.iter().any(|held| held == id)
    );
    text
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            command, audit, faults, settled, recovery: [accepted, began], jobs, runs, losses, ..
        } = self;
        writeln!(f, "{command}")?;
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(f, "{:.1} s of faults: {}", faults.as_secs_f64(), kinds.join(", "))?;
        let [calls, duplicates, refused, unknown] = self.calls;
        writeln!(f, "{calls} requests: {duplicates} duplicates, {refused} not done, {unknown} unknown")?;
        let Audit { acknowledged, done, cut, expired, lost, undone, mistaken, .. } = audit;
        writeln!(
            f,
            "{jobs} jobs, {acknowledged} accepted; {runs} runs, {done} done, {cut} cut off; {expired} expired or done unseen"
        )?;
        writeln!(
            f,
            "{losses} times writes could be lost: {} jobs lost, {} other writes undone",
            lost.len(),
            undone.len()
        )?;
        writeln!(f, "{} acks told of a later delivery's", mistaken.len())?;
        for (what, which) in [("lost", lost), ("undone", undone), ("mistaken", mistaken)] {
            for which in which.iter().take(SHOWN) {
                writeln!(f, "  {what}: {which}")?;
            }
        }
        writeln!(f, "worst recovery: a job accepted after {accepted:?}, a run begun after {began:?}")?;
        writeln!(f, "all settled {settled:?} after the last fault and answer")?;
        if audit.violations.is_empty() {
            return writeln!(f, "nothing is wrong");
        }
        writeln!(f, "{} WRONG:", audit.violations.len())?;
        for violation in audit.violations.iter().take(SHOWN) {
            writeln!(f, "  {violation}")?;
        }
        write!(f, "\n{}", self.stories)
    }
}
