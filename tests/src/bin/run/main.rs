//! Runs every group of tests, whatever failed before it, and ends with one table: `run BUILT [GROUP...] [-- ARGUMENT...]`.
//!
//! `BUILT` is the file of what cargo said when it built the tests, a JSON message a line. A group is a program of tests, and
//! `doc` is all examples in documentation. Arguments after `--` go to each of them, as `cargo test -- ...` has it.

mod group;
mod outcome;
mod table;

use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use group::Group;
use outcome::Outcome;
use table::Table;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(table) => {
            print!("{table}");
            if table.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("tests/run: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(mut words: Vec<String>) -> Result<Table, String> {
    let arguments = match words.iter().position(|word| word == "--") {
        Some(at) => words.split_off(at).split_off(1),
        None => Vec::new(),
    };
    let (built, wanted) = words.split_first().ok_or("usage: run BUILT [GROUP...] [-- ARGUMENT...]")?;
    let built = fs::read_to_string(built).map_err(|why| format!("{built}: {why}"))?;
    let mut groups = group::all(&built)?;
    for name in wanted {
        if !groups.iter().any(|group| group.name() == name) {
            let names: Vec<&str> = groups.iter().map(Group::name).collect();
            return Err(format!("there is no group {name:?}, only {}", names.join(", ")));
        }
    }
    groups.retain(|group| wanted.is_empty() || wanted.iter().any(|name| name == group.name()));
    let (timed, others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(Group::is_timed);
    let mut table = Table::default();
    // Half of what they do is to wait.
    for (group, outcome) in side_by_side(&others, &arguments) {
        table.add(group.name(), outcome);
    }
    for group in timed {
        table.add(group.name(), group.run(&arguments));
    }
    Ok(table)
}

/// Runs groups two at a time, and answers in their order.
fn side_by_side<'a>(groups: &'a [Group], arguments: &[String]) -> Vec<(&'a Group, Outcome)> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut ran = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(group) = groups.get(number) else { return ran };
            ran.push((number, group, group.run(arguments)));
        }
    };
    let mut ran = thread::scope(|scope| {
        let other = scope.spawn(lane);
        let mut ran = lane();
        ran.extend(other.join().expect("a lane does not panic"));
        ran
    });
    ran.sort_by_key(|(number, ..)| *number);
    ran.into_iter().map(|(_, group, outcome)| (group, outcome)).collect()
}
