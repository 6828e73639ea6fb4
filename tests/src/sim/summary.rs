use std::collections::BTreeMap;
use std::fmt;
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
    wall_ms: u64,
    marks: BTreeMap<String, u64>,
}

/// What ranges of seeds came to: how much was run, how fast, and which rare paths were reached.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    parts: Vec<Part>,
    took_ms: u64,
}

impl Part {
    pub(super) fn of(seeds: Range<u64>) -> Part {
        Part {
            seeds: (seeds.start, seeds.end),
            steps: 0,
            virtual_ms: 0,
            accepted: 0,
            settled_percent: 0,
            wall_ms: 0,
            marks: BTreeMap::new(),
        }
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

    pub(super) fn took(&mut self, time: Duration) {
        self.wall_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    }
}

impl Summary {
    pub(super) fn new(parts: Vec<Part>, took: Duration) -> Summary {
        Summary { parts, took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }
    }

    /// The parts in a file; none if it is not there. Their time is that of all threads together.
    pub(super) fn read(file: &Path) -> io::Result<Summary> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Summary::default()),
            text => text?,
        };
        let parts: Result<Vec<Part>, _> = text.lines().map(serde_json::from_str).collect();
        let parts = parts?;
        Ok(Summary { took_ms: parts.iter().map(|part| part.wall_ms).sum(), parts })
    }

    pub(super) fn has(&self, seeds: &Range<u64>) -> bool {
        self.parts.iter().any(|part| part.seeds.0 <= seeds.start && seeds.end <= part.seeds.1)
    }

    pub(super) fn with(mut self, other: Summary) -> Summary {
        self.took_ms += other.parts.iter().map(|part| part.wall_ms).sum::<u64>();
        self.parts.extend(other.parts);
        self
    }

    /// The rare paths that no run reached.
    pub fn missed(&self) -> Vec<&'static str> {
        PATHS.into_iter().filter(|path| self.times(path) == 0).collect()
    }

    /// How much was run, and how fast.
    pub fn totals(&self) -> String {
        let sum = |of: fn(&Part) -> u64| self.parts.iter().map(of).sum::<u64>();
        let (steps, virtual_ms, ms) =
            (sum(|part| part.steps), sum(|part| part.virtual_ms), self.took_ms.max(1));
        format!(
            "{} seeds, {} jobs, {steps} steps, {} simulated hours; settled in at most {} % of the time there was\n\
             {}.{:03} s: {} steps/s, {}.{:02} simulated hours a second",
            sum(|part| part.seeds.1 - part.seeds.0),
            sum(|part| part.accepted),
            virtual_ms / 3_600_000,
            self.parts.iter().map(|part| part.settled_percent).max().unwrap_or(0),
            ms / 1000,
            ms % 1000,
            steps * 1000 / ms,
            virtual_ms / ms * 1000 / 3_600_000,
            virtual_ms / ms * 1000 / 36_000 % 100,
        )
    }

    fn times(&self, path: &str) -> u64 {
        self.parts.iter().filter_map(|part| part.marks.get(path)).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for path in PATHS {
            writeln!(f, "{:>10}  {path}", self.times(path))?;
        }
        let missed = self.missed();
        if !missed.is_empty() {
            writeln!(f, "never reached: {}", missed.join(", "))?;
        }
        write!(f, "{}", self.totals())
    }
}
