//! Runs every group of tests, whatever failed before it, and ends with one table: `run BUILT [GROUP...] [-- ARGUMENT...]`.
//!
//! `BUILT` is the file of what cargo said when it built the tests, a JSON message a line. A group is a program of tests, and
//! `doc` is all examples in documentation. Arguments after `--` go to each of them, as `cargo test -- ...` has it.

mod group;
mod outcome;
mod table;

use std::fs;
use std::process::ExitCode;

use group::Group;
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
    let (built, named) = words.split_first().ok_or("usage: run BUILT [GROUP...] [-- ARGUMENT...]")?;
    let built = fs::read_to_string(built).map_err(|why| format!("{built}: {why}"))?;
    let mut groups = group::all(&built)?;
    for name in named {
        if !groups.iter().any(|group| group.name() == name) {
            let names: Vec<&str> = groups.iter().map(Group::name).collect();
            return Err(format!("there is no group {name:?}, only {}", names.join(", ")));
        }
    }
    groups.retain(|group| named.is_empty() || named.iter().any(|name| name == group.name()));
    let mut table = Table::default();
    for group in groups {
        table.add(group.name(), group.run(&arguments));
    }
    Ok(table)
}
