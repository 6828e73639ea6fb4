//! Random sequences of commands on two stores: the same replies, the same wake-ups, the same keys.
//!
//! What is drawn follows from the replies of the store in memory, so the server is told of a whole sequence at once. If it
//! shows anything else, the sequence is run again on both, step by step, with a look at all keys after each.

use std::ops::Range;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use delayline_core::Reply;
use delayline_embedded::Bug;
use delayline_tests::{Contents, Dump, Flavour, report, seeds, sound};

use crate::coverage::Coverage;
use crate::mirror::{Done, Mirror, Told, in_order, keys_differing};
use crate::twin::{InMemory, Twin, on_server};
use crate::world::{Step, World};

const SEQUENCES: u64 = 2_000;
const STEPS: usize = 200;
const DUMP_EVERY: usize = 20;
const COVERING: u64 = 400;
const REPLAY: &str = "cargo test -p delayline-tests --test all conformance";
const LONGEST_LINE: usize = 900;
const SHOWN: usize = 12;
/// A quarter of the sequences for each supported server; the usual one has those that nobody else has.
const PARTS: u64 = 4;
const THREADS: usize = 2;

/// The seeds that a server is to agree with the store in memory on.
struct Part {
    flavour: Flavour,
    seeds: Range<u64>,
}

#[test]
fn the_store_in_memory_behaves_as_servers_do() {
    let (parts, began) = (parts(), Instant::now());
    let total: u64 = parts.iter().map(|part| part.seeds.end - part.seeds.start).sum();
    let (left, coverage) = (Mutex::new(parts), Mutex::new(Coverage::default()));
    let next = || left.lock().ok().and_then(|mut left| left.pop());
    thread::scope(|scope| {
        let work = || {
            while let Some(part) = next() {
                let seen = compare(&part);
                coverage.lock().expect("no panic while it is held").add(seen);
            }
        };
        let threads = [(); THREADS].map(|()| scope.spawn(work));
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let missing = coverage.into_inner().expect("no panic while it was held").missing();
    assert!(total < COVERING || missing.is_empty(), "{total} sequences never drew {missing:?}");
    report(&format!("conformance: {total} sequences of {STEPS} steps in {:?}", began.elapsed()));
}

#[test]
fn a_planted_bug_is_found() {
    let mut mirror = Mirror::new(Flavour::usual());
    let found = (0..20).any(|seed| {
        let world = World::new(seed);
        let wrong = InMemory::planted(&world, Bug::SessionIgnored);
        tell(world, wrong, &mut Coverage::default()).is_ok_and(|told| mirror.differs(&told).is_some())
    });
    assert!(found, "twenty sequences did not tell a store that forgets its sessions from one that does not");
}

#[test]
fn a_planted_bug_is_shown_step_by_step() {
    let shown = (0..20).find_map(|seed| {
        let mut world = World::new(seed);
        let (mut right, mut wrong) = (InMemory::new(&world), InMemory::planted(&world, Bug::SessionIgnored));
        sequence(&mut world, &mut right, &mut wrong).err()
    });
    assert!(shown.is_some_and(|shown| shown.contains("left") && shown.contains("right")));
}

/// One seed on every server if `DELAYLINE_SEED` names it, else `DELAYLINE_CONFORMANCE` seeds, each on one of them.
fn parts() -> Vec<Part> {
    let flavours = Flavour::all();
    if let Some(seed) = seeds::only() {
        return flavours.into_iter().map(|flavour| Part { flavour, seeds: seed..seed + 1 }).collect();
    }
    let count = seeds::number("DELAYLINE_CONFORMANCE").unwrap_or(SEQUENCES) / PARTS;
    let base = seeds::base();
    println!("conformance: {} seeds from {base} on", count * PARTS);
    let flavour = |part| flavours.get(part).unwrap_or(&flavours[0]).clone();
    (0..PARTS)
        .map(|part| {
            let start = base + part * count;
            Part { flavour: flavour(usize::try_from(part).unwrap_or(0)), seeds: start..start + count }
        })
        .collect()
}

/// Runs all of a part's seeds, until one differs; what was drawn.
fn compare(Part { flavour, seeds }: &Part) -> Coverage {
    let mut mirror = Mirror::new(flavour.clone());
    let mut coverage = Coverage::default();
    let began = Instant::now();
    for seed in seeds.clone() {
        let world = World::new(seed);
        let memory = InMemory::new(&world);
        let told = tell(world, memory, &mut coverage);
        if let Some(difference) = told.map_or_else(Some, |told| mirror.differs(&told)) {
            let mut world = World::new(seed);
            let (mut left, mut right) = (InMemory::new(&world), on_server(&mirror.server, &world));
            let difference = sequence(&mut world, &mut left, &mut right).err().unwrap_or(difference);
            let name = flavour.name;
            panic!("memory and {name} differ: DELAYLINE_SEED={seed} {REPLAY}\n{difference}");
        }
    }
    let (count, took) = (seeds.end - seeds.start, began.elapsed());
    #[allow(clippy::cast_precision_loss)]
    let pace = (count * STEPS as u64) as f64 / took.as_secs_f64();
    println!(
        "memory and {}: {count} sequences of {STEPS} steps in {took:?}: {pace:.0} steps/s",
        flavour.name
    );
    coverage
}

/// A whole sequence on the store in memory, and all it showed; or what is wrong with its keys.
fn tell(mut world: World, mut memory: InMemory, coverage: &mut Coverage) -> Result<Told, String> {
    let mut told = Told { shards: world.shards, done: vec![Done::Cleared], heard: Vec::new() };
    for number in 1..=STEPS {
        world.pass();
        told.done.push(match world.step() {
            Step::Lose(queue, id) => {
                memory.lose(&queue, &id);
                Done::Lost(queue, id)
            }
            Step::Damage(queue, damage) => {
                memory.damage(&queue, &damage);
                coverage.when(true, "damaged");
                Done::Damaged(queue, damage)
            }
            Step::Run(command) => {
                let reply = in_order(memory.execute(world.now, &command));
                coverage.command(&command);
                coverage.reply(&reply);
                coverage.edits(&command, &reply);
                world.learn(&command, &reply);
                Done::Ran(world.now, command, reply)
            }
        });
        told.heard.extend(memory.heard());
        if number.is_multiple_of(DUMP_EVERY) && !world.is_mending() {
            let dump = memory.dump();
            coverage.when(holds_field(&dump, b"sweep"), "swept");
            world.broken(&dump).map_or(Ok(()), Err)?;
            told.done.push(Done::Held(world.now.floor_ms(), dump));
        }
    }
    coverage.when(told.heard.iter().any(|(channel, _)| channel.ends_with("head")), "heard head");
    coverage.when(told.heard.iter().any(|(channel, _)| !channel.ends_with("head")), "heard wake");
    Ok(told)
}

/// The world's steps on both stores, with a look at all keys after each, until they differ.
pub(crate) fn sequence(world: &mut World, left: &mut impl Twin, right: &mut impl Twin) -> Result<(), String> {
    let mut history = Vec::new();
    for number in 0..STEPS {
        world.pass();
        let step = world.step();
        history.push(cut(format!("{number} at {}: {step:?}", world.now.0)));
        let compared = carry_out(&step, world, left, right).and_then(|()| keys_agree(world, left, right));
        compared.map_err(|difference| {
            format!("{}\n{difference}", history[history.len().saturating_sub(SHOWN)..].join("\n"))
        })?;
    }
    Ok(())
}

fn carry_out(
    step: &Step,
    world: &mut World,
    left: &mut impl Twin,
    right: &mut impl Twin,
) -> Result<(), String> {
    match step {
        Step::Lose(queue, id) => {
            left.lose(queue, id);
            right.lose(queue, id);
        }
        Step::Damage(queue, damage) => {
            left.damage(queue, damage);
            right.damage(queue, damage);
        }
        Step::Run(command) => {
            let [one, other] =
                [left.execute(world.now, command), right.execute(world.now, command)].map(in_order);
            if one != other || matches!(one, Reply::Broken(_) | Reply::Refused(_)) {
                return Err(format!("  left  {one:?}\n  right {other:?}"));
            }
            world.learn(command, &one);
        }
    }
    let (one, other) = (left.heard(), right.heard());
    if one == other { Ok(()) } else { Err(format!("  left heard  {one:?}\n  right heard {other:?}")) }
}

fn keys_agree(world: &World, left: &mut impl Twin, right: &mut impl Twin) -> Result<(), String> {
    if world.is_mending() {
        return Ok(());
    }
    let now = world.now.floor_ms();
    let (one, other) = (sound(left.dump(), now), sound(right.dump(), now));
    if one != other {
        return Err(keys_differing(&one, &other));
    }
    world.broken(&other).map_or(Ok(()), |broken| Err(format!("  {broken}\n  {other:?}")))
}

fn holds_field(dump: &Dump, field: &[u8]) -> bool {
    dump.values().any(|contents| matches!(contents, Contents::Hash(fields) if fields.contains_key(field)))
}

fn cut(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(LONGEST_LINE) {
        line.replace_range(end.., "…");
    }
    line
}
