use std::fmt;

use crate::outcome::Outcome;

/// What came of all groups.
#[derive(Default)]
pub(crate) struct Table(Vec<(String, Outcome)>);

impl Table {
    /// Adds a line for a group, unless it had nothing to run.
    pub(crate) fn add(&mut self, name: &str, outcome: Outcome) {
        if !outcome.is_empty() {
            self.0.push((name.to_owned(), outcome));
        }
    }

    pub(crate) fn failed(&self) -> usize {
        self.sum(|outcome| outcome.failed.len())
    }

    fn sum(&self, of: impl Fn(&Outcome) -> usize) -> usize {
        self.0.iter().map(|(_, outcome)| of(outcome)).sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for (name, outcome) in &self.0 {
            outcome.failed.iter().try_for_each(|failed| writeln!(f, "failed: {name}: {failed}"))?;
        }
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("group".len());
        writeln!(f, "{:width$}  passed  failed  skipped  seconds  why", "group")?;
        for (name, outcome) in &self.0 {
            let (passed, failed, skipped) = (outcome.passed(), outcome.failed.len(), outcome.skipped());
            let (seconds, mut why) = (outcome.took.as_secs_f64(), outcome.why.iter());
            write!(f, "{name:width$}  {passed:>6}  {failed:>6}  {skipped:>7}  {seconds:>7.1}")?;
            writeln!(f, "{}", why.next().map(|why| format!("  {why}")).unwrap_or_default())?;
            let indent = width + "  passed  failed  skipped  seconds".len();
            why.try_for_each(|why| writeln!(f, "{:indent$}  {why}", ""))?;
        }
        let (passed, skipped) = (self.sum(Outcome::passed), self.sum(Outcome::skipped));
        writeln!(f, "\n{passed} passed, {} failed, {skipped} skipped", self.failed())
    }
}
