//! Which seeds a run explores: others at each commit, the same ones at each run of a commit.

use std::env;
use std::process::Command;

/// How many hexadecimal digits of the commit make a base: no range of seeds from it overflows.
const DIGITS: usize = 11;

/// The first seed: `DELAYLINE_SEED_BASE`, else drawn from the commit that is checked out, else 0.
///
/// # Panics
/// If `DELAYLINE_SEED_BASE` is no number.
pub fn base() -> u64 {
    number("DELAYLINE_SEED_BASE").or_else(of_commit).unwrap_or(0)
}

/// The one seed that is to be run again: `DELAYLINE_SEED`.
///
/// # Panics
/// If it is no number.
pub fn only() -> Option<u64> {
    number("DELAYLINE_SEED")
}

/// A number that the environment sets.
///
/// # Panics
/// If it is set and is none.
pub fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text:?}")))
}

fn of_commit() -> Option<u64> {
    let mut git = Command::new("git");
    let git = git.args(["rev-parse", "--verify", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let answer = git.output().ok().filter(|output| output.status.success())?;
    u64::from_str_radix(str::from_utf8(&answer.stdout).ok()?.get(..DIGITS)?, 16).ok()
}
