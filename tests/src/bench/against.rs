use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::bed::Bed;
use super::report::Theirs;
use super::rounds::{Base, Rounds, Sample};

/// This program and that of another commit, each asked for one round at a time, by turns, as a process of its own.
pub(super) struct Against {
    name: &'static str,
    /// The bench and its options.
    words: Vec<String>,
    programs: [(&'static str, PathBuf); 2],
}

impl Against {
    pub(super) fn new(name: &'static str, words: Vec<String>, other: &Path) -> Against {
        let this = std::env::current_exe().expect("the path of this program");
        Against { name, words, programs: [("this", this), ("against", other.to_owned())] }
    }
}

impl Rounds for Against {
    fn name(&self) -> &'static str {
        self.name
    }

    fn round(&mut self, _: &mut Bed, round: usize, jobs: usize) -> Vec<Sample> {
        let mut found: [Vec<Sample>; 2] = Default::default();
        for turn in 0..2 {
            let at = (turn + round) % 2;
            let (of, program) = &self.programs[at];
            found[at] = once(program, &self.words, jobs).samples(of);
        }
        let [this, against] = found;
        // Side by side, as they are compared.
        let mut against = against.into_iter().map(Some).collect::<Vec<_>>();
        let mut all = Vec::new();
        for sample in this {
            let same = |other: &Option<Sample>| {
                other
                    .as_ref()
                    .is_some_and(|other| (&other.case, &other.figure) == (&sample.case, &sample.figure))
            };
            let other = against.iter_mut().find(|other| same(other)).and_then(Option::take);
            all.extend([Some(Sample { base: Base::Of("against"), ..sample }), other].into_iter().flatten());
        }
        all.extend(against.into_iter().flatten());
        all
    }
}

fn once(program: &Path, words: &[String], jobs: usize) -> Theirs {
    let mut command = Command::new(program);
    command
        .args(words)
        .args(["--json", "--rounds", "1", "--most-rounds", "1", "--jobs"])
        .arg(jobs.to_string());
    command.stderr(Stdio::inherit());
    let output = command.output().unwrap_or_else(|why| panic!("{} cannot be run: {why}", program.display()));
    assert!(output.status.success(), "{}: {}", program.display(), output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{}: {why}", program.display()))
}
