use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{PATHS, Report};

/// What some seeds in a row came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    seeds: (u64, u64),
    steps: u64,
    virtual_ms: u64,
    accepted: u64,
    /// The most of the time for settling that a run took, in percent.
    settled_percent: u64,
    pub(super) wall_ms: u64,
    marks: BTreeMap<String, u64>,
}

/// Parts, as they were run.
#[derive(Debug, Default)]
pub(super) struct Summary(Vec<Part>);

impl Part {
    pub(super) fn of(seeds: Range<u64>) -> Part {
        let seeds = (seeds.start, seeds.end);
        Part { seeds, steps: 0, virtual_ms: 0, accepted: 0, settled_percent: 0, wall_ms: 0, marks: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, report: &Report) {
        self.steps += report.steps;
        self.virtual_ms += report.virtual_ms;
        self.accepted += report.accepted;
        self.settled_percent = self.settled_percent.max(report.settled_percent);
        for (path, times) in report.marks.reached() {
            *self.marks.entry(path.to_owned()).or_default() += times;
        }
    }
}

impl Summary {
    /// The parts in a file; none if it is not there.
    pub(super) fn read(file: &Path) -> io::Result<Summary> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Summary::default()),
            text => text?,
        };
        let parts: Result<Vec<Part>, _> = text.lines().map(serde_json::from_str).collect();
        Ok(Summary(parts?))
    }

    pub(super) fn has(&self, seeds: &Range<u64>) -> bool {
        self.0.iter().any(|part| part.seeds.0 <= seeds.start && seeds.end <= part.seeds.1)
    }

    pub(super) fn add(&mut self, part: Part) {
        self.0.push(part);
    }

    pub(super) fn extend(&mut self, other: Summary) {
        self.0.extend(other.0);
    }

    /// How much was run.
    pub(super) fn counted(&self) -> String {
        let sum = |of: fn(&Part) -> u64| self.0.iter().map(of).sum::<u64>();
        format!(
            "{} seeds, {} jobs, {} steps, {} simulated hours, settled in at most {} % of the time there was",
            sum(|part| part.seeds.1 - part.seeds.0),
            sum(|part| part.accepted),
            sum(|part| part.steps),
            sum(|part| part.virtual_ms) / 3_600_000,
            self.0.iter().map(|part| part.settled_percent).max().unwrap_or(0),
        )
    }

    /// How much was run, how fast, and which rare paths were reached and which were not.
    pub(super) fn told(&self, took: Duration) -> String {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let sum = |of: fn(&Part) -> u64| self.0.iter().map(of).sum::<u64>();
        let (steps, virtual_ms) = (sum(|part| part.steps), sum(|part| part.virtual_ms));
        let times = |path: &str| self.0.iter().filter_map(|part| part.marks.get(path)).sum::<u64>();
        let reached = PATHS.iter().map(|path| (times(path), path)).filter(|(times, _)| *times > 0);
        let reached: Vec<String> = reached.map(|(times, path)| format!("  {times:>10}  {path}")).collect();
        let missed: Vec<&str> = PATHS.into_iter().filter(|path| times(path) == 0).collect();
        format!(
            "{}\n{}\nnever reached: {}\n{} ms: {} steps/s, {} simulated hours a second",
            self.counted(),
            reached.join("\n"),
            if missed.is_empty() { "none of them".to_owned() } else { missed.join(", ") },
            ms,
            steps * 1000 / ms,
            virtual_ms / ms * 1000 / 3_600_000,
        )
    }
}
