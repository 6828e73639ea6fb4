//! The corpus of every fuzz target, and what mutation makes of it in a second.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delayline_tests::Random;
use delayline_tests::fuzz::TARGETS;

const SEEDS_MIN: usize = 5;
const CORPORA_MAX: u64 = 300 << 10;
const MUTANTS: u32 = 3_000;
const TIME: Duration = Duration::from_secs(2);
const LONGEST: usize = 4_096;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = entries(&folder().join("corpus").join(target));
    files.sort();
    let read = |path: PathBuf| fs::read(&path).map(|bytes| (path.clone(), bytes)).expect("a readable file");
    files.into_iter().map(read).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("a readable folder").path()).collect()
}

fn names(folder: &str) -> BTreeSet<String> {
    let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    entries(&self::folder().join(folder)).into_iter().map(stem).collect()
}

/// Runs an input, and says how to run it again if it fails.
fn run(target: &str, function: fn(&[u8]), input: &[u8], from: &str) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| function(input))) else { return };
    let kept = std::env::temp_dir().join(format!("delayline-fuzz-{target}"));
    let kept =
        fs::write(&kept, input).map_or_else(|error| error.to_string(), |()| kept.display().to_string());
    eprintln!("{target} fails with {from}");
    eprintln!("replay: cargo +nightly fuzz run {target} --fuzz-dir tests/fuzz {kept}");
    resume_unwind(panic);
}

fn replay(target: &str) {
    let (_, function) = TARGETS.into_iter().find(|(name, _)| *name == target).expect("a target");
    let seeds = corpus(target);
    assert!(seeds.len() >= SEEDS_MIN, "{target} has {} seeds", seeds.len());
    for (path, input) in &seeds {
        run(target, function, input, &path.display().to_string());
    }
    run(target, function, &[], "nothing");
    let (mut random, begun) = (Random::new(seeds.len() as u64), Instant::now());
    for count in 0..MUTANTS {
        if begun.elapsed() > TIME {
            break;
        }
        let mutant = mutated(&mut random, &seeds);
        run(target, function, &mutant, &format!("mutant {count}"));
    }
}

fn mutated(random: &mut Random, seeds: &[(PathBuf, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = random.pick(seeds).1.clone();
    for _ in 0..random.number(1..=6) {
        let at = place(random, bytes.len());
        let other = &random.pick(seeds).1;
        match random.number(0..=6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, low_byte(random)),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at < bytes.len() => bytes[at] = low_byte(random),
            4 if at < bytes.len() => bytes[at] ^= 1 << random.number(0..=7),
            5 => {
                let from = place(random, other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let until = (at + place(random, 32)).min(bytes.len());
                let part = bytes[at..until].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

fn place(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.number(0..=len as u64)).unwrap_or(0)
}

fn low_byte(random: &mut Random) -> u8 {
    random.any().to_le_bytes()[0]
}

#[test]
fn the_targets_are_those_of_the_fuzz_crate_and_their_corpora_are_small() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_string()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
    let bytes: u64 =
        TARGETS.iter().flat_map(|(name, _)| corpus(name)).map(|(_, input)| input.len() as u64).sum();
    assert!(bytes <= CORPORA_MAX, "the corpora have {bytes} bytes: minimise them");
}

#[test]
fn engines_survive_what_is_in_the_corpus() {
    replay("engine");
}

#[test]
fn the_service_survives_what_is_in_the_corpus() {
    replay("http");
}

#[test]
fn leases_survive_what_is_in_the_corpus() {
    replay("lease");
}

#[test]
fn names_survive_what_is_in_the_corpus() {
    replay("names");
}

#[test]
fn records_survive_what_is_in_the_corpus() {
    replay("record");
}

#[test]
fn recordings_survive_what_is_in_the_corpus() {
    replay("recording");
}

#[test]
fn replies_survive_what_is_in_the_corpus() {
    replay("reply");
}

#[test]
fn spans_survive_what_is_in_the_corpus() {
    replay("span");
}

#[test]
fn states_survive_what_is_in_the_corpus() {
    replay("state");
}
