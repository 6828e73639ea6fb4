use std::env;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde::Deserialize;

use crate::outcome::Outcome;

/// Those that time what they see: they run last, one after the other, each alone on the machine.
const TIMED: [&str; 2] = ["tests/edge", "tests/measured"];

/// Tests that one program runs.
pub(crate) struct Group {
    name: String,
    program: OsString,
    arguments: &'static [&'static str],
    directory: PathBuf,
}

/// What cargo says of something that it has built.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The groups among what cargo has built, and the documentation's examples, which it builds when it runs them.
pub(crate) fn all(messages: &str) -> Result<Vec<Group>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the tests have no workspace")?;
    let mut groups = Vec::new();
    for line in messages.lines() {
        let message: Message = serde_json::from_str(line).map_err(|why| format!("{why}: {line}"))?;
        groups.extend(Group::of(message, root));
    }
    groups.push(Group {
        name: "doc".to_owned(),
        program: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        arguments: &["test", "--workspace", "--doc", "--no-fail-fast", "--"],
        directory: root.to_owned(),
    });
    // Those of this crate take the longest.
    groups.sort_by_key(|group| (!group.name.starts_with("tests/"), group.name.clone()));
    Ok(groups)
}

impl Group {
    fn of(message: Message, root: &Path) -> Option<Group> {
        let Message { manifest_path, target, profile, executable } = message;
        let (program, target) = (executable?, target?);
        profile.filter(|profile| profile.test)?;
        let directory = manifest_path?.parent()?.to_owned();
        let package = directory.strip_prefix(root).ok()?.display().to_string();
        let is_library = target.kind.iter().any(|kind| kind.ends_with("lib"));
        let name = if is_library { package } else { format!("{package}/{}", target.name) };
        Some(Group { name, program: program.into(), arguments: &[], directory })
    }

    /// The package's directory, and the program in it where that is not the library's own tests.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it must be alone on the machine.
    pub(crate) fn is_timed(&self) -> bool {
        TIMED.contains(&&*self.name)
    }

    /// Runs all its tests, or those that the arguments name, and prints each line as it comes, after the group's name.
    pub(crate) fn run(&self, arguments: &[String]) -> Outcome {
        let mut command = Command::new(&self.program);
        command.args(self.arguments).args(arguments).current_dir(&self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut outcome = Outcome::default();
        let (name, begun) = (&self.name, Instant::now());
        match command.spawn() {
            Ok(mut child) => {
                let (said, noted) = (child.stdout.take(), child.stderr.take());
                let noted = thread::scope(|scope| {
                    let noted = scope.spawn(|| passed_on(noted, |line| eprintln!("{name}: {line}")));
                    let said = passed_on(said, |line| println!("{name}: {line}"));
                    for line in &said {
                        outcome.hear(line);
                    }
                    noted.join().unwrap_or_default()
                });
                for line in &noted {
                    outcome.note(line);
                }
                match child.wait() {
                    Ok(status) => outcome.end(status),
                    Err(why) => outcome.broken(&why.to_string()),
                }
            }
            Err(why) => outcome.broken(&format!("{} cannot be run: {why}", self.program.display())),
        }
        outcome.took = begun.elapsed();
        outcome
    }
}

/// The lines of a stream, each of which is shown when it comes.
fn passed_on(stream: Option<impl Read>, show: impl Fn(&str)) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(stream) = stream else { return lines };
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
        show(&text);
        lines.push(text);
        line.clear();
    }
    lines
}
