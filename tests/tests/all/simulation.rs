//! The simulator: seeds of this commit, plans that once failed, the same plans on a real server, and the proof that its
//! alarm rings.

use std::fs;
use std::path::{Path, PathBuf};

use delayline_tests::sim::{self, Bug, Mistake, Plan, Search};
use delayline_tests::{RedisServer, RedisStore, report, seeds};

/// So many seeds of each commit; `DELAYLINE_SEEDS` says otherwise.
const SEEDS: u64 = 20_000;
/// So many plans on a real server; `DELAYLINE_PLANS` says otherwise.
const PLANS: u64 = 200;
/// Enough seeds to reach every rare path.
const REACHING: u64 = 5_000;
/// In so many seeds each planted bug is found.
const ALARM: u64 = 3_000;
/// In so many plans on a real server each of [`IN_LUA`] is found.
const LUA_ALARM: u64 = 200;

/// Planted bugs that no plan shows, and why; conformance finds each.
const HARMLESS: [(Bug, &str); 4] = [
    (Bug::UnboundedTend, "plans have fewer jobs than a tend's limit"),
    (Bug::EditIgnoresChanges, "nobody edits jobs in plans"),
    (Bug::EditForgetsAttempts, "nobody edits jobs in plans"),
    (Bug::GateIgnored, "no queue of a plan has a gate"),
];

/// A plan in which 3,000 processes ask a queue for one thing each.
const VISITED: &str = "what-a-script-reads-is-bounded.plan";

/// Planted in the scripts of a real server: those that a few plans show.
const IN_LUA: [Bug; 12] = [
    Bug::AckWithoutFenceCheck,
    Bug::AgendaLate,
    Bug::AttemptNotCounted,
    Bug::CancelLeavesGhost,
    Bug::CancelsLeased,
    Bug::DeadLetterLost,
    Bug::EarlyPromotion,
    Bug::LeaseForgotten,
    Bug::NackWithoutDelay,
    Bug::SessionIgnored,
    Bug::UnboundedMove,
    Bug::WrongLeaseEnd,
];

#[test]
fn no_seed_breaks_a_promise() {
    let count = seeds::number("DELAYLINE_SEEDS").unwrap_or(SEEDS);
    let from = seeds::only().unwrap_or_else(seeds::base);
    let range = from..from + if seeds::only().is_some() { 1 } else { count };
    println!("seeds {range:?}");
    let found = Search { threads: 2, ..Search::default() }.all(range);
    let summary = found.unwrap_or_else(|failed| panic!("{failed}"));
    report(&summary.to_string());
    let missed = summary.missed();
    assert!(count < REACHING || seeds::only().is_some() || missed.is_empty(), "never reached: {missed:?}");
}

#[test]
fn plans_that_failed_once_do_not_fail_again() {
    let plans = kept();
    assert!(!plans.is_empty(), "there are plans under tests/plans");
    for file in plans {
        let text = fs::read_to_string(&file).expect("a readable plan");
        let plan: Plan = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if let Err(failure) = sim::run(&plan, None, None) {
            let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            panic!(
                "{failure}\nreplay: cargo run --release -p delayline-tests --bin sim -- --plan tests/plans/{name} --trace"
            );
        }
    }
}

#[test]
fn the_same_plans_keep_their_promises_on_a_real_server() {
    let count = seeds::number("DELAYLINE_PLANS").unwrap_or(PLANS);
    let from = seeds::only().unwrap_or_else(seeds::base);
    let range = from..from + if seeds::only().is_some() { 1 } else { count };
    println!("plans of seeds {range:?}");
    let found = Search { threads: 2, redis: true, ..Search::default() }.all(range);
    let summary = found.unwrap_or_else(|failed| panic!("{failed}"));
    report(&format!("on a real server: {}", summary.totals()));
}

#[test]
fn a_plan_goes_the_same_way_in_memory_and_on_a_real_server() {
    let server = RedisServer::plain();
    for seed in 0..10 {
        let plan = Plan::draw(seed);
        let store = RedisStore::new(&server, sim::shards(&plan));
        let [memory, redis] = [sim::run(&plan, None, None), sim::run_on(store, &plan, None)];
        let trace = |report: Result<sim::Report, _>| report.map(|report| report.trace).ok();
        assert_eq!(trace(memory), trace(redis), "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    for bug in Mistake::all() {
        let search = Search { threads: 2, bug: Some(bug), ..Search::default() };
        let found = search.all(0..ALARM).err();
        if let Some((_, why)) = HARMLESS.iter().find(|(harmless, _)| Mistake::from(*harmless) == bug) {
            assert!(found.is_none(), "{bug} is said to break no promise: {why}");
            continue;
        }
        let found = found.unwrap_or_else(|| panic!("{ALARM} seeds do not show {bug}"));
        println!("{bug:<26} seed {:>4}: {}", found.seed, found.failure.violation.oracle);
    }
}

#[test]
fn bugs_planted_in_the_scripts_are_found() {
    for bug in IN_LUA {
        let search = Search { threads: 2, redis: true, bug: Some(bug.into()) };
        let found = search.all(0..LUA_ALARM).err();
        let found = found.unwrap_or_else(|| panic!("{LUA_ALARM} plans on a real server do not show {bug}"));
        println!("{bug:<26} seed {:>4}: {}", found.seed, found.failure.violation.oracle);
    }
}

#[test]
fn a_script_that_reads_more_than_it_may_is_found() {
    let server = RedisServer::plain();
    let text = fs::read_to_string(folder().join(VISITED)).expect("a readable plan");
    let plan: Plan = text.parse().expect("a plan");
    let run_with = |bug| {
        let mut store = RedisStore::new(&server, sim::shards(&plan));
        store.plant(bug);
        sim::run_on(store, &plan, None)
    };
    let sound = run_with(None);
    assert!(sound.is_ok(), "{sound:?}");
    let failure = run_with(Some(Bug::UnboundedSweep)).expect_err("a sweep of all sessions is found");
    assert!(failure.violation.what.contains("entries are read"), "{failure}");
}

#[test]
fn a_failing_plan_is_shrunk_to_one_that_can_be_read() {
    let search = Search { threads: 1, bug: Some(Bug::DeadLetterLost.into()), ..Search::default() };
    let found = search.all(0..ALARM).expect_err("the bug is found");
    let small = search.shrunk(&found);
    assert!(small.acts.len() <= 10 && small.blows.len() <= 3, "{small}");
    let read: Plan = small.to_string().parse().expect("a plan's text is a plan");
    let again = sim::run(&read, Some(Bug::DeadLetterLost.into()), None).expect_err("it fails still");
    assert_eq!(again.violation.oracle, found.failure.violation.oracle);
    assert!(sim::run(&read, None, None).is_ok(), "the sound store keeps its promises");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plans")
}

fn kept() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "plan"));
    files.sort();
    files
}
