//! Chaos on real parts. `DELAYLINE_CHAOS_SECONDS` says for how long in all, 60 unless it is set.

use std::path::PathBuf;

use delayline_tests::chaos::{self, Options};
use delayline_tests::{Append, report as tell, seeds};

use crate::quiet::quiet;

const MODES: u64 = 3;
const SECONDS: u64 = 60;

#[test]
fn a_redis_that_syncs_always_loses_nothing() {
    let report = run(0, Append::Always, false, false);
    assert!(report.audit.lost.is_empty() && report.audit.undone.is_empty());
}

#[test]
fn a_redis_that_syncs_every_second_or_is_emptied_loses_that_and_no_more() {
    run(1, Append::EverySecond, false, true);
}

#[test]
fn a_replica_that_takes_over_lacks_what_it_never_had_and_nothing_else() {
    run(2, Append::Always, true, false);
}

fn run(mode: u64, append: Append, failover: bool, flush: bool) -> chaos::Report {
    let _quiet = quiet();
    let seconds = (seeds::number("DELAYLINE_CHAOS_SECONDS").unwrap_or(SECONDS) / MODES).max(1);
    let program = PathBuf::from(env!("CARGO_BIN_EXE_chaos"));
    let seed = seeds::base().wrapping_add(mode);
    let report = chaos::run(&Options { seconds, seed, append, failover, flush, keep: None, program });
    tell(&report.to_string());
    assert!(report.audit.violations.is_empty(), "{report}");
    report
}
