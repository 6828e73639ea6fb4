//! The simulator over many seeds, and the proof that its alarm rings.

use std::ops::Range;

use delayline_tests::sim::{Switches, run};

const SEEDS: Range<u64> = 0..5_000;
const ALARM_SEEDS: Range<u64> = 0..20;

#[test]
fn no_seed_breaks_a_promise() {
    let seeds = std::env::var("DELAYLINE_SEEDS").ok().and_then(|range| {
        let (from, to) = range.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let seeds: Range<u64> = seeds.unwrap_or(SEEDS);
    let middle = seeds.start + (seeds.end - seeds.start) / 2;
    let halves = [seeds.start..middle, middle..seeds.end];
    let steps: u64 = std::thread::scope(|scope| {
        let halves = halves.map(|half| scope.spawn(move || half.map(steps_of).sum::<u64>()));
        halves.into_iter().map(|half| half.join().expect("no seed fails")).sum()
    });
    println!("{} seeds, {steps} steps", seeds.end - seeds.start);
    assert!(steps > 0);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..20 {
        let [first, second] =
            [(); 2].map(|()| run(seed, Switches::default(), false).map(|report| report.trace));
        assert_eq!(
            first.expect("no promise is broken"),
            second.expect("no promise is broken"),
            "seed {seed}"
        );
    }
}

#[test]
fn a_store_without_sessions_is_found_out() {
    let switches = Switches { ignore_sessions: true };
    let rang = ALARM_SEEDS.into_iter().find_map(|seed| run(seed, switches, false).err());
    let rang = rang.expect("some oracle rings within 20 seeds");
    println!("rang within {} seeds: {}", ALARM_SEEDS.end, rang.violation.oracle);
}

fn steps_of(seed: u64) -> u64 {
    run(seed, Switches::default(), false).unwrap_or_else(|failure| panic!("{failure}")).steps
}
