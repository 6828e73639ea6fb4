//! Random sequences of commands on two stores: the same replies, the same wake-ups, the same keys.

use std::env;
use std::time::Instant;

use delayline_core::{Command, JobId, QueueName, Reply, UnixMicros};
use delayline_tests::{Dump, Flavour, Options, RedisServer, RedisStore};

use crate::coverage::Coverage;
use crate::world::{ENGINES, Step, World};

const STEPS: usize = 200;
const DUMP_EVERY: usize = 20;
const COVERING: u64 = 100;
const SHOWN: usize = 12;

/// A store that a sequence runs on.
trait Twin {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply;
    fn lose(&mut self, queue: &QueueName, id: &JobId);
    fn heard(&mut self) -> Vec<(String, String)>;
    fn dump(&mut self) -> Dump;
}

impl Twin for RedisStore {
    fn execute(&mut self, now: UnixMicros, command: &Command) -> Reply {
        self.execute(Some(now), command)
    }

    fn lose(&mut self, queue: &QueueName, id: &JobId) {
        let pool = self.keys().queue_keys(queue)[3].clone();
        self.connection().ask(&["HDEL", &pool, id.as_str()]);
    }

    fn heard(&mut self) -> Vec<(String, String)> {
        self.heard()
    }

    fn dump(&mut self) -> Dump {
        self.dump()
    }
}

#[test]
fn all_servers_behave_alike() {
    let mut servers: Vec<_> =
        Flavour::all().into_iter().map(|flavour| (flavour.name, start(flavour))).collect();
    let (_, usual) = servers.remove(0);
    for (name, other) in &servers {
        compare(&format!("redis and {name}"), 3, |world| (on_server(&usual, world), on_server(other, world)));
    }
}

fn start(flavour: Flavour) -> RedisServer {
    RedisServer::start(Options { flavour: Some(flavour), ..Options::default() })
}

fn on_server(server: &RedisServer, world: &World) -> RedisStore {
    let mut store = RedisStore::new(server, world.shards);
    store.clear();
    ENGINES[..2].iter().for_each(|&engine| store.subscribe(engine));
    store
}

/// Runs one seed if `DELAYLINE_SEED` names it, else `DELAYLINE_CONFORMANCE` sequences, by default 300 over all servers.
fn compare<A: Twin, B: Twin>(what: &str, divide_by: u64, mut make: impl FnMut(&World) -> (A, B)) {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let count = number("DELAYLINE_CONFORMANCE").unwrap_or(300) / divide_by;
    let seeds = number("DELAYLINE_SEED").map_or(0..count, |seed| seed..seed + 1);
    let mut coverage = Coverage::default();
    let (began, total) = (Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        let mut world = World::new(seed);
        let (mut left, mut right) = make(&world);
        if let Err(difference) = sequence(&mut world, &mut coverage, &mut left, &mut right) {
            panic!(
                "{what} differ: DELAYLINE_SEED={seed} cargo test -p delayline-tests --test all conformance\n{difference}"
            );
        }
    }
    if total >= COVERING {
        assert!(coverage.missing().is_empty(), "{total} sequences never drew {:?}", coverage.missing());
    }
    println!("{what}: {total} sequences of {STEPS} steps in {:?}", began.elapsed());
}

fn sequence(
    world: &mut World,
    coverage: &mut Coverage,
    left: &mut impl Twin,
    right: &mut impl Twin,
) -> Result<(), String> {
    let mut history = Vec::new();
    for number in 0..STEPS {
        world.pass();
        let step = world.step();
        history.push(format!("{number} at {}: {step:?}", world.now.0));
        let fail = |what: String| {
            Err(format!("{}\n{what}", history[history.len().saturating_sub(SHOWN)..].join("\n")))
        };
        match &step {
            Step::Lose(queue, id) => {
                left.lose(queue, id);
                right.lose(queue, id);
            }
            Step::Run(command) => {
                let replies =
                    [left.execute(world.now, command), right.execute(world.now, command)].map(in_order);
                if replies[0] != replies[1] || matches!(replies[0], Reply::Broken(_) | Reply::Refused(_)) {
                    return fail(format!("  left  {:?}\n  right {:?}", replies[0], replies[1]));
                }
                coverage.reply(&replies[0]);
                world.learn(command, &replies[0]);
            }
        }
        let heard = (left.heard(), right.heard());
        if heard.0 != heard.1 {
            return fail(format!("  left heard  {:?}\n  right heard {:?}", heard.0, heard.1));
        }
        coverage.when(heard.0.iter().any(|(channel, _)| channel.ends_with("head")), "heard head");
        coverage.when(heard.0.iter().any(|(channel, _)| !channel.ends_with("head")), "heard wake");
        if (number + 1) % DUMP_EVERY == 0 || env::var_os("DELAYLINE_SEED").is_some() {
            let dumps = (left.dump(), right.dump());
            let difference = differing(&dumps.0, &dumps.1);
            coverage.when(format!("{:?}", dumps.0).contains(r#"b"swept""#), "swept");
            if !difference.is_empty() {
                return fail(difference);
            }
        }
    }
    Ok(())
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
