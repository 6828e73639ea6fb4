//! What the scripts' headers say is true.

use std::collections::BTreeSet;

use delayline_core::wire::Value;
use delayline_core::{Command, Keyspace, Prefix, QueueConfig, Reply, Settlement, Shard, Shards, UnixMicros};
use delayline_lua::Script;
use delayline_tests::{Connection, Flavour, Options, RedisServer, words};

use crate::rig::{Rig, START, batch};
use crate::scenario::{self, Scenario};

const REMOVES: [&str; 8] =
    ["zrem", "hdel", "unlink", "zremrangebyscore", "zremrangebyrank", "zpopmin", "ping", "select"];
const GROWS: [&str; 8] = ["hset", "zadd", "hincrby", "hsetnx", "set", "rpush", "xadd", "hmset"];

#[test]
fn the_sha1_is_what_servers_compute() {
    for flavour in Flavour::all() {
        let server = start(&flavour);
        let mut connection = server.connect();
        for script in delayline_lua::all() {
            let loaded = connection.ask(&["SCRIPT", "LOAD", &script.source()]);
            assert_eq!(shown(&loaded), script.sha1(), "{} on {}", script.name, flavour.name);
        }
    }
}

#[test]
fn the_keys_of_the_header_are_the_keyspaces() {
    let keys = Keyspace::new(&Prefix::default(), Shards::default());
    let (queue, shard) = (keys.queue_keys(&"a".parse().expect("a name")), keys.shard_keys(Shard(0)));
    for script in delayline_lua::all() {
        let actual: Vec<&str> = match script.name {
            "open" => vec![keys.config()],
            "peek" => shard.iter().map(String::as_str).collect(),
            _ => queue.iter().map(String::as_str).collect(),
        };
        let named = listed(script, "-- Keys: ");
        let only_some = |name: &str| name.starts_with("12 ") || name.starts_with("4 and on");
        let named: Vec<_> = named.into_iter().filter(|name| !only_some(name)).collect();
        let suffixes: Vec<_> = actual
            .iter()
            .enumerate()
            .map(|(i, key)| format!("{} {}", i + 1, key.rsplit(':').next().unwrap_or_default()))
            .collect();
        assert_eq!(named, suffixes, "{}", script.name);
        let used = indices(&script.source(), "KEYS[");
        let declared = actual.len() + usize::from(script.name == "tend");
        assert!(used.iter().all(|&i| i <= declared), "{} uses {used:?}", script.name);
    }
}

#[test]
fn the_arguments_of_the_header_are_those_that_are_sent() {
    let mut rig = Rig::plain();
    for Scenario { script: name, prepare, .. } in scenario::all() {
        let script = script(name);
        let declared = declared_args(script);
        let highest = indices(&script.source(), "ARGV[").into_iter().max().unwrap_or(0);
        assert!(highest <= declared, "{name}: ARGV[{highest}] is used, the header ends at {declared}");
        rig.store.clear();
        let command = prepare(&mut rig);
        let (fixed, variable) = sent_args(&rig, &command);
        assert_eq!(fixed, declared, "{name} is sent {fixed} arguments and {variable} for what it lists");
    }
}

#[test]
fn scripts_use_nothing_that_is_forbidden() {
    for script in delayline_lua::all() {
        for word in [
            "tostring(",
            "cjson",
            "struct.",
            "bit.",
            "'EXPIRE",
            "'PEXPIRE",
            "'PX'",
            "'EX'",
            "'DEL'",
            "setresp",
        ] {
            assert!(!script.source().contains(word), "{}: {word}", script.name);
        }
    }
}

#[test]
fn the_first_write_is_what_the_header_says() {
    for flavour in Flavour::all() {
        let mut rig = Rig::new(start(&flavour));
        let mut monitor = rig.server.connect();
        monitor.ask(&["MONITOR"]);
        for Scenario { script: name, name: state, writes, prepare, .. } in scenario::all() {
            rig.store.clear();
            let command = prepare(&mut rig);
            learn(&mut rig, name);
            let first = first_write(&mut rig, &mut monitor, &command);
            let header = header_line(script(name), "-- First write: ");
            let context = format!("{name} ({state}) on {}: {first:?}, header {header:?}", flavour.name);
            match first {
                None => assert!(!writes, "{context}"),
                Some(first) if header.contains("refused whole") => {
                    assert!(writes && GROWS.contains(&first.as_str()), "{context}");
                }
                Some(first) => {
                    assert!(writes && header.contains("runs at maxmemory"), "{context}");
                    assert!(REMOVES.contains(&first.as_str()), "{context}");
                }
            }
        }
    }
}

#[test]
fn at_maxmemory_scripts_are_refused_whole_or_run_to_the_end() {
    for flavour in Flavour::all() {
        let mut rig = Rig::new(start(&flavour));
        for Scenario { script: name, name: state, writes, prepare, .. } in scenario::all() {
            let context = format!("{name} ({state}) on {}", flavour.name);
            let (before, reply, after) = run_scenario(&mut rig, prepare, true);
            let (_, unlimited_reply, unlimited) = run_scenario(&mut rig, prepare, false);
            let header = header_line(script(name), "-- First write: ");
            if writes && header.contains("refused whole") {
                let refused = Reply::Refused(delayline_core::Refusal::OutOfMemory);
                assert_eq!((reply, after), (refused, before), "{context}");
            } else {
                assert_eq!((reply, after), (unlimited_reply, unlimited), "{context}");
            }
        }
    }
}

#[test]
fn the_calls_are_as_many_as_the_scenarios_say() {
    let mut rig = Rig::plain();
    let mut wrong = Vec::new();
    for Scenario { script: name, name: state, calls, prepare, .. } in scenario::all() {
        let counted = calls_by_the_servers_clock(&mut rig, name, prepare);
        if counted != calls {
            wrong.push(format!("{name} ({state}) makes {counted} calls, not {calls}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_header_names_the_calls_of_the_first_scenario() {
    let mut seen = BTreeSet::new();
    for Scenario { script: name, calls, .. } in scenario::all() {
        if seen.insert(name) {
            let header = header_line(script(name), "-- Calls: ");
            let named: Option<u64> = header.split([' ', ';']).next().and_then(|text| text.parse().ok());
            assert_eq!(named, Some(calls), "{name}: {header}");
        }
    }
    assert_eq!(seen.len(), delayline_lua::all().len());
}

#[test]
fn a_whole_life_costs_few_calls() {
    let one = calls_of_life(1);
    let hundred = calls_of_life(100);
    println!("a life in batches of 1: {one} calls; in batches of 100: {hundred} for the batch");
    assert!(one <= 26, "{one}");
    assert!(hundred <= 30, "{hundred}");
}

#[test]
fn scripts_read_no_undeclared_global() {
    for script in delayline_lua::all() {
        let unknown = crate::lua_source::undeclared(&script.source());
        assert!(unknown.is_empty(), "{}: {unknown:?}", script.name);
    }
}

#[test]
fn scripts_join_only_text() {
    for script in delayline_lua::all() {
        let numbers = crate::lua_source::joined(&script.source());
        assert!(numbers.is_empty(), "{}: may be a number next to ..: {numbers:?}", script.name);
    }
}

fn calls_of_life(count: u16) -> u64 {
    let mut rig = Rig::plain();
    let warm = rig.granted(1);
    let ack = rig.settle(&warm.0, warm.1, &Settlement::Ack, false);
    rig.run(&ack);
    let reads_of_the_clock = 2;
    reads_of_the_clock
        + calls_of(&mut rig, |rig| {
            let publish = rig.publish(batch("life", count, delayline_core::Due::After { ms: 1_000 }));
            rig.run(&publish);
            rig.advance(1_001);
            let reserve = rig.reserve(count);
            let (jobs, fence) = rig.grants(&reserve);
            assert_eq!(jobs.len(), usize::from(count));
            let ack = rig.settle(&jobs, fence, &Settlement::Ack, false);
            rig.run(&ack);
        })
}

fn start(flavour: &Flavour) -> RedisServer {
    RedisServer::start(Options { flavour: Some(flavour.clone()), ..Options::default() })
}

/// Makes the server know the script, so that the next call is one EVALSHA.
fn learn(rig: &mut Rig, name: &str) {
    rig.store.connection().ask(&["SCRIPT", "LOAD", &script(name).source()]);
}

/// Brings the queue into its state so that it ends now, and runs the command as production does.
fn calls_by_the_servers_clock(rig: &mut Rig, name: &str, prepare: fn(&mut Rig) -> Command) -> u64 {
    rig.store.clear();
    rig.reset();
    prepare(rig);
    let spent = rig.now.0 - START;
    rig.store.clear();
    rig.reset();
    rig.now = UnixMicros(rig.server_time().0 - spent);
    let command = prepare(rig);
    learn(rig, name);
    calls_of(rig, |rig| {
        rig.store.execute(None, &command);
    })
}

fn calls_of(rig: &mut Rig, run: impl FnOnce(&mut Rig)) -> u64 {
    let mut other = rig.server.connect();
    other.ask(&["CONFIG", "RESETSTAT"]);
    run(rig);
    let info = shown(&other.ask(&["INFO", "commandstats"]));
    let counted = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
    let ours = counted.filter(|(name, _)| !name.starts_with("config") && *name != "info");
    ours.filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok()).sum()
}

type Outcome = (delayline_tests::Dump, Reply, delayline_tests::Dump);

/// What a scenario's command answers and leaves, on a server whose memory is full or not.
fn run_scenario(rig: &mut Rig, prepare: fn(&mut Rig) -> Command, full: bool) -> Outcome {
    rig.store.clear();
    rig.reset();
    let command = prepare(rig);
    let before = rig.store.dump();
    if full {
        rig.store.connection().ask(&["CONFIG", "SET", "maxmemory", "1"]);
    }
    let reply = rig.run(&command);
    rig.store.connection().ask(&["CONFIG", "SET", "maxmemory", "0"]);
    (before, reply, rig.store.dump())
}

/// The first command that a script runs and that is not a read, from what MONITOR shows.
fn first_write(rig: &mut Rig, monitor: &mut Connection, command: &Command) -> Option<String> {
    rig.store.connection().ask(&["ECHO", "begin"]);
    rig.run(command);
    rig.store.connection().ask(&["ECHO", "end"]);
    let (mut inside, mut first) = (false, None);
    loop {
        let line = shown(&monitor.receive().expect("a line of MONITOR"));
        if line.contains("\"begin\"") {
            inside = true;
        } else if line.contains("\"end\"") {
            return first;
        } else if inside && first.is_none() && line.contains(" lua] ") {
            let name = line.split('"').nth(1).unwrap_or_default().to_lowercase();
            first = (GROWS.contains(&name.as_str()) || REMOVES.contains(&name.as_str())).then_some(name);
        }
    }
}

fn script(name: &str) -> &'static Script {
    delayline_lua::all().into_iter().find(|script| script.name == name).expect("a script of this name")
}

fn header_line(script: &Script, label: &str) -> String {
    let line = script.header().find_map(|line| line.strip_prefix(label));
    line.unwrap_or_else(|| panic!("{}: no {label}", script.name)).to_string()
}

/// The header's text from `label` to the next label, cut at commas and semicolons.
fn listed(script: &Script, label: &str) -> Vec<String> {
    section(script, label).split([',', ';']).map(|part| part.trim().to_string()).collect()
}

fn section(script: &Script, label: &str) -> String {
    let lines = script.header().skip_while(|line| !line.starts_with(label));
    let more = |line: &&str| line.starts_with("--   ");
    let first = script.header().find_map(|line| line.strip_prefix(label)).unwrap_or_default();
    lines.skip(1).take_while(more).fold(first.to_string(), |text, line| text + " " + line[2..].trim())
}

/// The highest argument that the header numbers: 1, 2, 3 and so on in order of their appearance.
fn declared_args(script: &Script) -> usize {
    let text = section(script, "-- Args: ");
    text.split_whitespace().fold(0, |last, word| if word.parse() == Ok(last + 1) { last + 1 } else { last })
}

/// How many arguments a command has that its header numbers, and how many for its jobs.
fn sent_args(rig: &Rig, command: &Command) -> (usize, usize) {
    let count = |command: &Command| {
        let words = delayline_tests::encoded(rig.store.keys(), command, Some(rig.now));
        let keys: usize = String::from_utf8_lossy(&words[2]).parse().expect("the number of keys");
        words.len() - 3 - keys
    };
    let all = count(command);
    let fixed = count(&without_jobs(command.clone()));
    (fixed, all - fixed)
}

fn without_jobs(mut command: Command) -> Command {
    match &mut command {
        Command::Publish { jobs, .. } => jobs.clear(),
        Command::Settle { leases, .. } => leases.clear(),
        Command::Extend { leases, .. } => leases.clear(),
        Command::Cancel { ids, .. } => ids.clear(),
        Command::Reschedule { jobs, .. } => jobs.clear(),
        Command::Requeue { dead, .. } | Command::Purge { dead, .. } => {
            dead.ids = dead.ids.take().map(|_| vec![]);
        }
        Command::Configure { config, .. } => *config = QueueConfig::default(),
        _ => {}
    }
    command
}

fn indices(source: &str, name: &str) -> Vec<usize> {
    source.split(name).skip(1).filter_map(|rest| rest.split(']').next()?.parse().ok()).collect()
}

pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{:?}", words(other.clone())),
    }
}
