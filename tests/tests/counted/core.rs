//! Wheel, records, wire, engine: each step is run by a program that is built as what is released, and has nothing in it but
//! the core.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::callgrind::{Counted, count};
use crate::counts::Group;

/// How far a count may be off, in percent. Libraries of the system (malloc, memcpy) differ by as much.
const TOLERANCE: f64 = 3.0;
/// How far if another compiler counted.
const WIDE: f64 = 15.0;

#[test]
fn steps_of_the_core_cost_what_was_recorded() {
    let micro = built();
    let listed = said(&mut Command::new(&micro));
    let out = micro.with_extension("callgrind");
    let counts: BTreeMap<String, Vec<f64>> = listed
        .lines()
        .map(|line| {
            let (name, steps) = line.split_once('\t').expect("a step and how often it is counted");
            let steps: u64 = steps.parse().expect("a number");
            let [once, twice] =
                [steps, 2 * steps].map(|steps| count(&micro, &[name, &steps.to_string()], &out));
            (name.to_owned(), difference(once, twice, steps))
        })
        .collect();
    assert!(counts.len() > 9, "{counts:?}");
    Group { name: "core", by: compiler(), tolerance: TOLERANCE, wide: WIDE, counts }.hold();
}

/// What one step costs if so many more cost that much more: instructions, and allocations to two digits.
fn difference(once: Counted, twice: Counted, steps: u64) -> Vec<f64> {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let a_step = |more: u64| more as f64 / steps as f64;
    let instructions = a_step(twice.instructions - once.instructions).round();
    vec![instructions, (a_step(twice.allocations - once.allocations) * 100.0).round() / 100.0]
}

/// The program `micro`, as it would be released.
fn built() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "-p", "delayline-micro", "--bin", "micro"]).current_dir(root);
    said(command.args(["--message-format", "json-render-diagnostics"]))
        .split("\"executable\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .map(PathBuf::from)
        .expect("cargo says where the program is")
}

/// The compiler's version, and for which machine it compiles.
fn compiler() -> String {
    let told = said(Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV"));
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown");
    format!("rustc {} {}", field("release: "), field("host: "))
}

fn said(command: &mut Command) -> String {
    let ended = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}
