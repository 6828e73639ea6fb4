use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::time::Duration;

/// What came of a group.
#[derive(Default)]
pub(crate) struct Outcome {
    /// How many tests passed, those that were skipped too: the harness knows no difference.
    ended_well: usize,
    ignored: usize,
    /// The names of those that failed, or what else went wrong.
    pub(crate) failed: Vec<String>,
    /// The names of those that did nothing.
    skipped: BTreeSet<String>,
    /// What they, and parts of others, lacked.
    pub(crate) why: BTreeSet<String>,
    pub(crate) took: Duration,
    listed: Vec<String>,
    has_result: bool,
}

impl Outcome {
    pub(crate) fn passed(&self) -> usize {
        self.ended_well.saturating_sub(self.skipped.len())
    }

    pub(crate) fn skipped(&self) -> usize {
        self.skipped.len() + self.ignored
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ended_well + self.ignored + self.failed.len() == 0
    }

    /// Reads a line of what the harness prints. Failures come twice: with what the tests said, then as a list of names.
    pub(crate) fn hear(&mut self, line: &str) {
        if line == "failures:" {
            self.listed.clear();
        } else if let Some(name) = line.strip_prefix("    ") {
            self.listed.push(name.to_owned());
        } else if let Some(result) = line.strip_prefix("test result: ") {
            let count = |what: &str| {
                let before = result.split_once(what).and_then(|(before, _)| before.split(' ').next_back());
                before.and_then(|count| count.parse::<usize>().ok()).unwrap_or(0)
            };
            self.has_result = true;
            self.ended_well += count(" passed");
            self.ignored += count(" ignored");
            let failed = count(" failed");
            self.listed.resize_with(failed, || "a test without a name".to_owned());
            self.failed.append(&mut self.listed);
        }
    }

    /// Reads a line of what a test wrote past the harness: `skipped TEST: why`, or `left out: why` for a part of one.
    pub(crate) fn note(&mut self, line: &str) {
        if let Some((test, why)) = line.strip_prefix("skipped ").and_then(|rest| rest.split_once(": ")) {
            self.skipped.insert(test.to_owned());
            self.why.insert(why.to_owned());
        } else if let Some(why) = line.strip_prefix("left out: ") {
            self.why.insert(why.to_owned());
        }
    }

    /// The program has ended; if badly, then because of a test that failed, or for a reason of its own.
    pub(crate) fn end(&mut self, status: ExitStatus) {
        if !self.has_result || (!status.success() && self.failed.is_empty()) {
            self.broken(&format!("it ended with {status} and told no result"));
        }
    }

    pub(crate) fn broken(&mut self, why: &str) {
        self.failed.push(why.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(said: &str, noted: &str, code: i32) -> Outcome {
        use std::os::unix::process::ExitStatusExt as _;
        let mut outcome = Outcome::default();
        said.lines().for_each(|line| outcome.hear(line));
        noted.lines().for_each(|line| outcome.note(line));
        outcome.end(ExitStatus::from_raw(code));
        outcome
    }

    #[test]
    fn failures_are_counted_and_named_once() {
        let said = "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n---- b::c stdout ----\n    left: 1\n\n\
                    failures:\n    b::c\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out\n";
        let outcome = outcome(said, "", 101 << 8);
        assert_eq!((outcome.passed(), outcome.skipped()), (1, 1));
        assert_eq!(outcome.failed, ["b::c"]);
    }

    #[test]
    fn a_test_that_says_it_was_skipped_has_not_passed() {
        let said = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let noted =
            "skipped a::b: no workerd: tests/run gets it\nskipped a::b: again\nleft out: bun is missing\n";
        let outcome = outcome(said, noted, 0);
        assert_eq!((outcome.passed(), outcome.skipped(), outcome.failed.len()), (2, 1, 0));
        assert_eq!(outcome.why.len(), 3);
    }

    #[test]
    fn a_program_that_dies_has_failed() {
        assert_eq!(outcome("running 3 tests\ntest a ... ok\n", "", 6).failed.len(), 1);
        let said = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(outcome(said, "", 101 << 8).failed.len(), 1);
    }
}
