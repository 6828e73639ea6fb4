//! What a good client sees while the service is attacked. `DELAYLINE_ATTACK_SECONDS` says for how long each time, 2 unless it
//! is set, with a fifth of the attackers; with it, there are all of them.

use std::path::PathBuf;
use std::time::Duration;

use delayline_tests::attack::{self, Attack, Options, Report, Security};
use delayline_tests::{block_on, measure, raise_descriptors, report, seeds};

use crate::quiet::quiet;

const SECONDS: u64 = 2;
const PART: usize = 5;
/// How long the good client's requests may take, but for one in a hundred. By hand, with an optimized service, it is 50 ms:
/// here attackers, service and Redis are not optimized, and share what CPUs there are.
const P99: Duration = Duration::from_millis(250);

#[test]
fn with_few_descriptors_a_good_client_is_served_beside_each_attack() {
    each_attack(1_024);
}

#[test]
fn with_many_descriptors_a_good_client_is_served_beside_each_attack() {
    each_attack(65_536);
}

fn each_attack(descriptors: u64) {
    let _quiet = quiet();
    raise_descriptors();
    let seconds = seeds::number("DELAYLINE_ATTACK_SECONDS");
    let part = if seconds.is_some() { 1 } else { PART };
    let length = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_service"));
    let options = Options { program, descriptors, length, part, security: Security::default() };
    report(Report::HEAD);
    for attack in Attack::all() {
        measure("a good client beside attackers", || {
            let told = block_on(attack::run(*attack, &options));
            report(&told.to_string());
            let wrong = told.wrong();
            assert!(wrong.is_empty(), "{attack:?}: {}", wrong.join("; "));
            told.slower_than(P99)
                .map_or_else(|| Ok(format!("{attack:?}")), |slow| Err(format!("{attack:?}: {slow}")))
        });
    }
}
