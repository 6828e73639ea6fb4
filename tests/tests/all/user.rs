//! A new user's path: a crate outside of the workspace that depends on the library, and what the compiler says to those
//! who err.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LINES_MAX: usize = 40;

const NO_HANDLER: &str =
    "this is no handler for the jobs of a `Queue<std::string::String>` in a worker with data `()`";
const LABEL: &str = "no handler for a `Queue<std::string::String>`";

/// Mistakes, and the note that tells what to do about each.
const MISTAKES: [(&str, &str); 7] = [
    ("job", "its arguments, at most six, may be `Job<std::string::String>`"),
    (
        "data",
        "`Data<D>` needs `.with_data(..)` of a `D`, called on the worker before this queue is added; here it is `()`",
    ),
    ("argument", "or your own type with `FromContext`"),
    ("send", "its future must be `Send`: what is not, such as an `Rc`"),
    ("answer", "it must return `()`, a `Verdict`, or a `Result` of these"),
    ("error", "whose error is a `Failure`, any `Error + Send + Sync`, or a text"),
    ("blocking", "for a function without `async`, use `delayline_tokio::blocking(handler)`"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A copy of the user's crate, at a place of its own.
struct User(PathBuf);

impl User {
    fn new(name: &str) -> User {
        let (from, to) = (root().join("tests/user"), std::env::temp_dir());
        let user = User(to.join(format!("delayline-user-{name}-{}", std::process::id())));
        fs::create_dir_all(user.0.join("src")).unwrap();
        let manifest = fs::read_to_string(from.join("Cargo.toml")).unwrap();
        let driver = root().join("driver-tokio");
        user.write("Cargo.toml", &manifest.replace("../../driver-tokio", driver.to_str().unwrap()));
        for file in ["src/main.rs", "../../Cargo.lock"] {
            fs::copy(from.join(file), user.0.join(file.trim_start_matches("../"))).unwrap();
        }
        user
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    /// Without the network, if all that is needed is there.
    fn cargo(&self, arguments: &[&str]) -> Output {
        let offline = self.run(&[arguments, &["--offline"]].concat());
        let is_missing = ["--offline", "no matching package", "failed to download"];
        if is_missing.iter().any(|why| said(&offline).contains(why)) { self.run(arguments) } else { offline }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("user");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).current_dir(&self.0).env("CARGO_TARGET_DIR", target);
        // A user's profile, less what only a debugger reads: that takes as long again.
        cargo.env_remove("RUSTFLAGS").env("CARGO_PROFILE_DEV_DEBUG", "false");
        cargo.env("CARGO_TERM_COLOR", "never").output().unwrap()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn a_new_user_is_done_in_forty_lines() {
    let user = User::new("new");
    let lines = |file| fs::read_to_string(root().join("tests/user").join(file)).unwrap().lines().count();
    let added = fs::read_to_string(root().join("tests/user/Cargo.toml")).unwrap();
    let dependencies = added.lines().skip_while(|line| *line != "[dependencies]").count();
    assert!(lines("src/main.rs") + dependencies < LINES_MAX);
    let tested = user.cargo(&["test"]);
    assert!(tested.status.success(), "{}", said(&tested));
    assert!(said(&tested).contains("a_mail_without_an_address_is_dead ... ok"), "{}", said(&tested));
}

#[test]
fn a_mistake_is_shown_where_it_is_and_how_to_mend_it() {
    let user = User::new("erring");
    for (mistake, note) in MISTAKES {
        let code =
            fs::read_to_string(root().join("tests/user/bad").join(mistake).with_extension("rs")).unwrap();
        user.write("src/lib.rs", &code);
        // With the dependencies that the crate above is built with.
        let built = user.cargo(&["build", "--lib"]);
        let said = said(&built);
        assert!(!built.status.success(), "{mistake} compiles");
        let line = 1 + code.lines().position(|line| line.contains(".queue(&names, send)")).unwrap();
        for expected in [NO_HANDLER, LABEL, note, &format!("src/lib.rs:{line}:")] {
            assert!(said.contains(expected), "{mistake} is not told {expected:?}:\n{said}");
        }
    }
}
