//! Random sequences of commands on two stores: the same replies, the same wake-ups, the same keys.

use std::env;
use std::time::Instant;

use delayline_core::Reply;
use delayline_tests::{Dump, Flavour, Options, RedisServer};

use crate::coverage::Coverage;
use crate::twin::{InMemory, Twin, on_server};
use crate::world::{Step, World};

const STEPS: usize = 200;
pub(crate) const DUMP_EVERY: usize = 20;
const COVERING: u64 = 100;
const REPLAY: &str = "cargo test -p delayline-tests --test all conformance";
const LONGEST_LINE: usize = 900;
const SHOWN: usize = 12;

#[test]
fn the_store_in_memory_behaves_as_servers_do() {
    let flavours = Flavour::all();
    let count = flavours.len() as u64;
    for flavour in flavours {
        let (name, server) = (flavour.name, start(flavour));
        compare(&format!("memory and {name}"), count, |world| {
            (InMemory::new(world), on_server(&server, world))
        });
    }
}

fn start(flavour: Flavour) -> RedisServer {
    RedisServer::start(Options { flavour: Some(flavour), ..Options::default() })
}

/// Runs one seed if `DELAYLINE_SEED` names it, else `DELAYLINE_CONFORMANCE` sequences, by default 300 over all servers.
fn compare<A: Twin, B: Twin>(what: &str, divide_by: u64, mut make: impl FnMut(&World) -> (A, B)) {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let count = number("DELAYLINE_CONFORMANCE").unwrap_or(300) / divide_by;
    let seeds = number("DELAYLINE_SEED").map_or(0..count, |seed| seed..seed + 1);
    let mut coverage = Coverage::default();
    let (began, total) = (Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        let mut run = |coverage: &mut Coverage, dump_every| {
            let mut world = World::new(seed);
            let (mut left, mut right) = make(&world);
            sequence(&mut world, coverage, dump_every, &mut left, &mut right)
        };
        if let Err(late) = run(&mut coverage, DUMP_EVERY) {
            let difference = run(&mut Coverage::default(), 1).err().unwrap_or(late);
            panic!("{what} differ: DELAYLINE_SEED={seed} {REPLAY}\n{difference}");
        }
    }
    if total >= COVERING {
        assert!(coverage.missing().is_empty(), "{total} sequences never drew {:?}", coverage.missing());
    }
    println!("{what}: {total} sequences of {STEPS} steps in {:?}", began.elapsed());
}

/// The world's next steps on both stores, until they differ.
pub(crate) fn sequence(
    world: &mut World,
    coverage: &mut Coverage,
    dump_every: usize,
    left: &mut impl Twin,
    right: &mut impl Twin,
) -> Result<(), String> {
    let mut history = Vec::new();
    for number in 0..STEPS {
        world.pass();
        let step = world.step();
        history.push(cut(format!("{number} at {}: {step:?}", world.now.0)));
        let mut compared = carry_out(&step, world, coverage, left, right);
        if compared.is_ok() && (number + 1).is_multiple_of(dump_every) {
            compared = keys_agree(world, coverage, left, right);
        }
        compared.map_err(|difference| {
            format!("{}\n{difference}", history[history.len().saturating_sub(SHOWN)..].join("\n"))
        })?;
    }
    Ok(())
}

fn carry_out(
    step: &Step,
    world: &mut World,
    coverage: &mut Coverage,
    left: &mut impl Twin,
    right: &mut impl Twin,
) -> Result<(), String> {
    match step {
        Step::Lose(queue, id) => {
            left.lose(queue, id);
            right.lose(queue, id);
        }
        Step::Run(command) => {
            let [one, other] =
                [left.execute(world.now, command), right.execute(world.now, command)].map(in_order);
            if one != other || matches!(one, Reply::Broken(_) | Reply::Refused(_)) {
                return Err(format!("  left  {one:?}\n  right {other:?}"));
            }
            coverage.reply(&one);
            world.learn(command, &one);
        }
    }
    let (one, other) = (left.heard(), right.heard());
    coverage.when(one.iter().any(|(channel, _)| channel.ends_with("head")), "heard head");
    coverage.when(one.iter().any(|(channel, _)| !channel.ends_with("head")), "heard wake");
    if one == other { Ok(()) } else { Err(format!("  left heard  {one:?}\n  right heard {other:?}")) }
}

fn keys_agree(
    world: &World,
    coverage: &mut Coverage,
    left: &mut impl Twin,
    right: &mut impl Twin,
) -> Result<(), String> {
    let (one, other) = (left.dump(), right.dump());
    if one != other {
        return Err(differing(&one, &other));
    }
    coverage.when(format!("{one:?}").contains(r#"b"swept""#), "swept");
    world.broken(&other).map_or(Ok(()), |broken| Err(format!("  {broken}\n  {other:?}")))
}

fn cut(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(LONGEST_LINE) {
        line.replace_range(end.., "…");
    }
    line
}

/// The names of queues come in the order of a hash table.
fn in_order(mut reply: Reply) -> Reply {
    if let Reply::Named { queues, .. } = &mut reply {
        queues.sort();
    }
    reply
}

fn differing(left: &Dump, right: &Dump) -> String {
    let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let differing = keys.into_iter().filter(|key| left.get(*key) != right.get(*key));
    let shown = differing
        .take(4)
        .map(|key| format!("  {key}\n    left  {:?}\n    right {:?}\n", left.get(key), right.get(key)));
    shown.collect()
}
