//! Planted bugs: comparing a store that has one with the sound store in memory finds it.

use delayline_embedded::Bug;
use delayline_tests::{Options, RedisServer, patched};

use crate::conformance::sequence;
use crate::twin::{InMemory, Twin, on_server};
use crate::world::World;

/// In how many sequences each bug is found. Most show in the first; the slowest is a lower bound that is lost, in the
/// 50th.
const SEQUENCES: u64 = 100;

/// Which sessions are swept when is Redis's to decide, so that they are not compared: the simulator finds it.
const NOT_COMPARED: [Bug; 2] = [Bug::SessionsNotSwept, Bug::UnboundedSweep];

#[test]
fn a_bug_in_the_store_in_memory_is_found() {
    for bug in compared() {
        let found = found(bug, |world| InMemory::planted(world, bug));
        println!("{bug}: {found}");
    }
}

#[test]
fn a_bug_in_the_scripts_is_found() {
    let server = RedisServer::start(Options::default());
    for bug in compared() {
        let found = found(bug, |world| {
            let mut store = on_server(&server, world);
            store.plant(Some(bug));
            store
        });
        println!("{bug}: {found}");
    }
}

#[test]
fn every_bug_has_patches_that_fit_the_scripts() {
    for bug in Bug::ALL {
        for (script, source) in patched(bug) {
            assert_ne!(script.written(), source, "{bug} leaves {} as it is", script.name);
        }
    }
}

fn compared() -> impl Iterator<Item = Bug> {
    Bug::ALL.into_iter().filter(|bug| !NOT_COMPARED.contains(bug))
}

/// How many sequences it takes to find a wrong answer, wake-up or key. A script that fails has shown nothing, unless that is
/// the bug.
fn found<T: Twin>(bug: Bug, mut broken: impl FnMut(&World) -> T) -> u64 {
    for seed in 0..SEQUENCES {
        let mut world = World::new(seed);
        let (mut sound, mut broken) = (InMemory::new(&world), broken(&world));
        if let Err(difference) = sequence(&mut world, &mut sound, &mut broken) {
            let failed = ["  right Broken(", "  right Refused("].iter().any(|text| difference.contains(text));
            let fails = bug == Bug::ErrorAfterLease;
            assert_eq!(failed, fails, "{bug}, seed {seed}: the broken store fails\n{difference}");
            return seed + 1;
        }
    }
    panic!("{SEQUENCES} sequences did not show {bug}");
}
