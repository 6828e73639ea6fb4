use delayline_http::Problem;
use delayline_http::item::Outcome;
use delayline_tokio::{Error, JobId, Published};
use serde::Serialize;

use crate::cli::print;
use crate::failure::Failure;
use crate::service::rejection::problem;

/// What became of the lines so far.
#[derive(Default, Serialize)]
pub(super) struct Tally {
    pub(super) lines: u64,
    pub(super) created: u64,
    pub(super) duplicates: u64,
    pub(super) failed: u64,
    #[serde(skip)]
    pub(super) last_line: u64,
}

/// A line, and what became of it.
pub(super) struct Told {
    pub(super) number: u64,
    pub(super) bytes: usize,
    pub(super) id: Option<JobId>,
    pub(super) published: Result<Published, Refused>,
}

pub(super) enum Refused {
    /// The line describes no job.
    Line(Problem),
    Queue(Error),
}

/// A line's outcome as JSON.
#[derive(Serialize)]
struct Numbered {
    line: u64,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Tally {
    pub(super) fn count(&mut self, told: &Told) {
        self.lines += 1;
        self.last_line = told.number;
        match &told.published {
            Ok(published) if published.duplicate => self.duplicates += 1,
            Ok(_) => self.created += 1,
            Err(_) => self.failed += 1,
        }
    }

    pub(super) fn sum_up(&self, json: bool) -> Result<(), Failure> {
        if json {
            return print::document(self);
        }
        let Tally { lines, created, duplicates, failed, .. } = self;
        print::line(format_args!(
            "{created} of {lines} jobs published, {duplicates} duplicates, {failed} failed"
        ))
    }

    /// Whether all went as it should.
    pub(super) fn judge(&self, allow_duplicates: bool) -> Result<(), Failure> {
        let duplicates = if allow_duplicates { 0 } else { self.duplicates };
        match self.failed + duplicates {
            0 => Ok(()),
            failed => Err(Failure::Partly { failed, all: self.lines, what: "jobs were not published" }),
        }
    }
}

impl Told {
    pub(super) fn is_fine(&self, allow_duplicates: bool) -> bool {
        self.published.as_ref().is_ok_and(|published| allow_duplicates || !published.duplicate)
    }

    /// Why it makes no sense to go on.
    pub(super) fn trouble(&self) -> Option<Failure> {
        match &self.published {
            Err(Refused::Queue(error)) => {
                Some(Failure::from(error.clone())).filter(|failure| failure.exit_code() == 3)
            }
            _ => None,
        }
    }

    /// Says that it was refused.
    pub(super) fn complain(self, json: bool) {
        let Told { number, id, published, .. } = self;
        let published = published.map_err(|refused| match refused {
            Refused::Line(problem) => problem,
            Refused::Queue(error) => problem(error),
        });
        if json {
            return print::complaint(&Numbered {
                line: number,
                outcome: Outcome::of(id.as_ref(), published),
            });
        }
        let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
        match published {
            Ok(_) => eprintln!("line {number}{id}: the id is in use, and its job is untouched"),
            Err(problem) => eprintln!("line {number}{id}: {}", problem.detail),
        }
    }
}
