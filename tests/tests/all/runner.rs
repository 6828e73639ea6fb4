//! The runner of all tests: each group runs, whatever failed before it, and a table at the end says what came of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

const HEADING: [&str; 6] = ["group", "passed", "failed", "skipped", "seconds", "why"];

/// Targets, in the order of the table, and what their programs do. `measured` is timed: it runs after the others.
const TARGETS: [(&str, &str); 4] = [("dies", DIES), ("fails", FAILS), ("skips", SKIPS), ("measured", PASSES)];

const DIES: &str = "
echo 'running 2 tests'
echo 'test a ... ok'
sleep 1
kill -9 $$
";

const FAILS: &str = "
cat <<END
running 2 tests
test a ... FAILED
test b ... ok

failures:

---- a stdout ----
assertion failed
    left: 1

failures:
    a

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
END
exit 101
";

const SKIPS: &str = "
echo 'running 2 tests'
echo 'skipped a::b: no workerd: tests/run gets it' >&2
echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'
";

const PASSES: &str = "
echo 'running 3 tests'
echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'
";

/// A directory of programs that say what programs of tests say, and of what cargo says when it has built such.
struct Programs(PathBuf);

impl Programs {
    fn new(name: &str) -> Programs {
        let directory = format!("runner-{name}-{}", std::process::id());
        let programs = Programs(Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory));
        fs::create_dir_all(&programs.0).unwrap();
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let built = TARGETS.map(|(target, does)| {
            let message = json!({
                "reason": "compiler-artifact",
                "manifest_path": manifest,
                "target": { "kind": ["test"], "name": target },
                "profile": { "test": true },
                "executable": programs.write(target, does),
            });
            message.to_string()
        });
        fs::write(programs.0.join("built"), built.join("\n")).unwrap();
        programs
    }

    /// Writes a program that leaves a mark each time it runs. A shell writes it: were it open in this process, it would
    /// be in any that another test starts meanwhile, and what is open for writing cannot be run.
    fn write(&self, target: &str, does: &str) -> PathBuf {
        let path = self.0.join(target);
        let script = format!("#!/bin/sh\necho ran >>\"$0.mark\"\n{does}");
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"printf %s "$1" >"$0" && chmod +x "$0""#]).arg(&path).arg(script);
        let written = shell.status().unwrap();
        assert!(written.success(), "{}: {written}", path.display());
        path
    }

    fn run(&self, targets: &[&str]) -> Output {
        let groups = targets.iter().map(|target| format!("tests/{target}"));
        Command::new(env!("CARGO_BIN_EXE_run")).arg(self.0.join("built")).args(groups).output().unwrap()
    }

    /// Which of them ran, each as often as it did.
    fn marks(&self) -> Vec<&'static str> {
        let marks = TARGETS.iter().flat_map(|(target, _)| {
            let marks = fs::read_to_string(self.0.join(format!("{target}.mark"))).unwrap_or_default();
            vec![*target; marks.lines().count()]
        });
        marks.collect()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The lines of the table, with one blank between words and without the seconds; and the seconds.
fn table(said: &str) -> (Vec<String>, Vec<f64>) {
    let lines = said.lines().skip_while(|line| !line.split_whitespace().eq(HEADING)).skip(1);
    let rows = lines.take_while(|line| !line.is_empty()).map(|line| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let seconds: f64 = words.remove(4).parse().unwrap();
        (words.join(" "), seconds)
    });
    rows.unzip()
}

#[test]
fn every_group_runs_whatever_failed_before_it() {
    let programs = Programs::new("all");
    let targets = TARGETS.map(|(target, _)| target);
    let output = programs.run(&targets);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(programs.marks(), targets, "{said}");
    let (rows, seconds) = table(&said);
    let expected = [
        "tests/dies 0 1 0",
        "tests/fails 1 1 0",
        "tests/skips 1 0 1 no workerd: tests/run gets it",
        "tests/measured 3 0 0",
    ];
    assert_eq!(rows, expected, "{said}");
    assert!(seconds[0] >= 1.0, "{said}");
    for failed in ["tests/dies: it ended with signal: 9", "tests/fails: a\n"] {
        assert!(said.contains(&format!("\nfailed: {failed}")), "{failed:?} is not told:\n{said}");
    }
    assert!(said.ends_with("\n5 passed, 2 failed, 1 skipped\n"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

#[test]
fn a_group_that_is_named_runs_alone_and_the_others_failures_do_not_count() {
    let programs = Programs::new("one");
    let output = programs.run(&["measured"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(programs.marks(), ["measured"], "{said}");
    assert_eq!(table(&said).0, ["tests/measured 3 0 0"], "{said}");
    assert!(said.ends_with("\n3 passed, 0 failed, 0 skipped\n"), "{said}");
    assert!(output.status.success(), "{}\n{said}", output.status);
}
