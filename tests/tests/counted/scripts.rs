//! What each script of a life costs Redis, alone and in batches of 100, as the headers of the scripts say.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use delayline_core::QueueName;

use crate::counts::{Counts, Group, is_update};
use crate::redis::{Granted, Redis};

/// How far a count may be off, in percent: another build of the same Redis has another compiler behind it.
const TOLERANCE: f64 = 10.0;
/// How far if another version counted.
const WIDE: f64 = 30.0;
/// How many jobs wait beside those that are counted, due as they are.
const BACKLOG: u64 = 2_000;
/// How many rounds are counted, after one that only warms up. Their median counts: what a server does by the clock meets few.
const ROUNDS: usize = 7;
/// How many calls a round are made for single jobs: as many as lie between two times that Redis collects Lua's garbage.
const ALONE: usize = 50;
/// How the line of a header begins.
const LABEL: &str = "-- Instructions: ";

/// What a reserve is called that finds nothing.
const NOTHING: &str = "reserve of nothing";

/// Instructions a job, round by round, by the script and the number of jobs.
type Costs = BTreeMap<String, Vec<f64>>;

#[test]
fn scripts_cost_what_their_headers_say() {
    let mut redis = Redis::start();
    let by = redis.version();
    let mut costs = Costs::new();
    lives(&mut redis, 1, ALONE, &mut costs);
    lives(&mut redis, 100, 3, &mut costs);
    nothing_due(&mut redis, &mut costs);
    let counts = costs.into_iter().map(|(call, rounds)| (call, vec![median(rounds)])).collect();
    let recorded = Group { name: "scripts", by, tolerance: TOLERANCE, wide: WIDE, counts }.hold();
    headers(&recorded);
}

/// Publishes, grants, extends and acknowledges so many batches a round.
fn lives(redis: &mut Redis, batch: u16, batches: usize, costs: &mut Costs) {
    let queue: QueueName = "busy".parse().expect("a name");
    for _ in 0..BACKLOG / 100 {
        redis.publish(&queue, 100);
    }
    for round in 0..=ROUNDS {
        let mut granted: Vec<Granted> = Vec::new();
        let mut note = |script: &str, spent: u64| {
            if round > 0 {
                add(costs, script, batch, spent, batches * usize::from(batch));
            }
        };
        let (spent, ()) = redis.count(|redis| (0..batches).for_each(|_| redis.publish(&queue, batch.into())));
        note("publish", spent);
        let (spent, ()) = redis.count(|redis| {
            granted.extend((0..batches).map(|_| redis.reserve(&queue, batch)));
        });
        note("reserve", spent);
        assert!(granted.iter().all(|(_, ids)| ids.len() == usize::from(batch)), "too few were granted");
        let (spent, ()) = redis.count(|redis| granted.iter().for_each(|held| redis.extend(&queue, held)));
        note("extend", spent);
        let (spent, ()) = redis.count(|redis| granted.drain(..).for_each(|held| redis.settle(&queue, held)));
        note("settle", spent);
    }
}

/// Asks a queue in which nothing is due, for one job and for a hundred.
fn nothing_due(redis: &mut Redis, costs: &mut Costs) {
    let queue: QueueName = "idle".parse().expect("a name");
    redis.publish(&queue, 1);
    let granted = redis.reserve(&queue, 1);
    redis.settle(&queue, granted);
    for want in [1, 100] {
        for round in 0..=ROUNDS {
            let (spent, found) =
                redis.count(|redis| (0..ALONE).any(|_| !redis.reserve(&queue, want).1.is_empty()));
            assert!(!found, "something was due");
            if round > 0 {
                add(costs, NOTHING, want, spent, ALONE);
            }
        }
    }
}

/// Notes what a round has cost, in which so much was done.
fn add(costs: &mut Costs, call: &str, jobs: u16, spent: u64, done: usize) {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let each = spent as f64 / done as f64;
    costs.entry(named(call, jobs)).or_default().push(each);
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2].round()
}

/// Holds the headers to the recorded counts, or writes them.
fn headers(recorded: &Counts) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lua");
    let k = |call: &str, jobs: u16| thousands(recorded[&named(call, jobs)][0]);
    let mut wrong = Vec::new();
    for script in ["publish", "reserve", "extend", "settle"] {
        let mut line = format!("{LABEL}{} k alone, {} k a job of 100", k(script, 1), k(script, 100));
        if script == "reserve" {
            let (one, hundred) = (k(NOTHING, 1), k(NOTHING, 100));
            let _ = write!(line, "; where nothing is due {one} k, {hundred} k if 100 are asked for");
        }
        let path = folder.join(script).with_extension("lua");
        let text = fs::read_to_string(&path).expect("a script");
        let found = text.lines().find(|line| line.starts_with(LABEL));
        if found == Some(&line) {
            continue;
        }
        if is_update() {
            fs::write(&path, with_line(&text, &line)).expect("the header is written");
        } else {
            wrong.push(format!("lua/{script}.lua says {found:?}, not {line:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "tests/counts.txt says otherwise; write the headers anew by `UPDATE_COUNTS=1 tests/run tests/counted`:\n{}",
        wrong.join("\n")
    );
}

/// The script with this line as the last of its header, in the place of the one that it had.
fn with_line(text: &str, line: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(LABEL));
    lines
        .flat_map(|found| {
            let ends = found.starts_with("-- First write: ");
            [Some(found), ends.then_some(line)].into_iter().flatten()
        })
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// As people read it: two digits or three.
fn thousands(count: f64) -> String {
    let digits = usize::from(count < 10_000.0);
    format!("{:.digits$}", count / 1_000.0)
}

fn named(call: &str, jobs: u16) -> String {
    format!("{call}, {jobs}")
}

#[test]
fn a_header_has_one_such_line() {
    let text = "-- Does things.\n-- Calls: 3\n-- First write: HSET\nlocal a = 1\n";
    let once = with_line(text, "-- Instructions: 5.0 k alone");
    assert_eq!(
        once,
        "-- Does things.\n-- Calls: 3\n-- First write: HSET\n-- Instructions: 5.0 k alone\nlocal a = 1\n"
    );
    assert_eq!(with_line(&once, "-- Instructions: 6.0 k alone"), once.replace('5', "6"));
    assert_eq!([940.0, 9_960.0, 12_345.0].map(thousands), ["0.9", "10.0", "12"]);
}
