//! Ten thousand jobs through the service and three workers, while a worker is killed and Redis is restarted.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use delayline_core::{Keyspace, Prefix, QueueName, Shard, Shards};
use delayline_tests::{Http, Random, RedisServer, until, words};
use serde_json::Value;

use crate::audit::Audit;
use crate::deployment::Deployment;
use crate::plan::{Kind, Plan, plan};
use crate::quiet::quiet;

const QUEUE: &str = "orders";
const PATIENCE: Duration = Duration::from_secs(180);
const FIRST: [(Kind, u64); 4] =
    [(Kind::Ladder, 10), (Kind::Doomed, 5), (Kind::Moved, 6), (Kind::Cancelled, 6)];
const SECOND: [(Kind, u64); 2] = [(Kind::Ladder, 10), (Kind::Doomed, 5)];

#[test]
fn ten_thousand_jobs_are_accounted_for() {
    let _quiet = quiet();
    let (mut random, started) = (Random::new(3), Instant::now());
    let mut deployment = Deployment::start(QUEUE);
    let http = deployment.http;
    let mut first = plan(1..=5_000, &FIRST, &mut random);
    publish(http, &mut first, &mut random);
    change(http, &mut first, &mut random);
    until("some thousand runs", PATIENCE, || (deployment.marks().len() > 4_000).then_some(()));
    deployment.replace_worker();
    let mut second = plan(5_001..=10_000, &SECOND, &mut random);
    thread::scope(|scope| {
        scope.spawn(|| publish(http, &mut second, &mut random));
        deployment.redis.stop();
        deployment.redis.restart();
    });
    let all: Plan = first.into_iter().chain(second).collect();
    until("an empty queue", PATIENCE, || is_idle(http).then_some(()));
    let dead = dead_letters(http);
    let audit = Audit::new(&all, &deployment.marks(), &dead);
    println!("{audit}in {:?}", started.elapsed());
    assert!(audit.wrong.is_empty(), "{} wrong:\n{}", audit.wrong.len(), audit.wrong.join("\n"));
    settle_accounts(http, &audit, &dead);
    purge(http, dead.len());
    // A last acknowledgement need not have told the agenda that all is done: then who tends the shard finds out in time.
    until("a queue that is on no agenda", PATIENCE, || is_off_the_agenda(&deployment.redis).then_some(()));
    nothing_is_left(&deployment.stop());
}

/// Publishes all in one streamed batch; what the service could not vouch for, again under the same id.
fn publish(http: Http, plan: &mut Plan, random: &mut Random) {
    let mut missing: BTreeSet<String> = plan.keys().cloned().collect();
    for _ in 0..10 {
        let lines: String = missing.iter().map(|id| plan[id].line(id, random)).collect();
        let answer = http.ask("POST", &path("/batch"), "application/x-ndjson", &lines);
        assert_eq!(answer.status, 200, "{}", answer.body);
        for (id, line) in std::mem::take(&mut missing).into_iter().zip(answer.body.lines()) {
            let outcome: Value = serde_json::from_str(line).expect("a line of JSON");
            match (outcome["status"].as_str(), plan.get_mut(&id)) {
                (Some("created"), Some(planned)) => planned.due = millis(&outcome["due"]),
                (Some("duplicate"), _) => {}
                _ => {
                    println!("published again: {line}");
                    missing.insert(id);
                }
            }
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("{} jobs could not be published", missing.len());
}

/// Cancels and moves what is planned to be. What runs before it is reached stays what it was.
fn change(http: Http, plan: &mut Plan, random: &mut Random) {
    for (id, planned) in plan {
        let path = path(&format!("/jobs/{id}"));
        let answer = match planned.kind {
            Kind::Cancelled => http.ask("DELETE", &path, "application/json", ""),
            Kind::Moved => {
                let delay = random.pick(&[1_000, 9_000]);
                http.ask("PATCH", &path, "application/json", &format!("{{\"delay\":\"{delay}ms\"}}"))
            }
            _ => continue,
        };
        match answer.status {
            200 if planned.kind == Kind::Moved => planned.due = millis(&json(&answer.body)["due"]),
            200 => {}
            404 | 409 => planned.kind = Kind::Plain,
            status => panic!("{id}: {status} {}", answer.body),
        }
    }
}

fn is_idle(http: Http) -> bool {
    let queue = show(http);
    ["ready", "delayed", "leased"].iter().all(|state| queue["sizes"][state] == 0)
}

fn dead_letters(http: Http) -> BTreeMap<String, String> {
    let mut dead = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let answer = http.ask("GET", &path(&format!("/dead?count=256{cursor}")), "application/json", "");
        assert_eq!(answer.status, 200, "{}", answer.body);
        let page = json(&answer.body);
        for job in page["jobs"].as_array().expect("jobs") {
            dead.insert(text(&job["id"]), text(&job["reason"]));
        }
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return dead,
        }
    }
}

/// The queue's own counters say the same.
fn settle_accounts(http: Http, audit: &Audit, dead: &BTreeMap<String, String>) {
    let queue = show(http);
    let counter = |name: &str| usize::try_from(queue["counters"][name].as_u64().expect(name)).expect("few");
    println!("counters: {}", queue["counters"]);
    assert_eq!(counter("published"), 10_000);
    assert_eq!(counter("acked"), audit.done());
    assert_eq!(counter("died"), dead.len());
    assert_eq!(counter("cancelled"), audit.of(Kind::Cancelled));
    assert!(counter("ended") >= audit.cut(), "a run that was cut off ends with its lease");
    assert!(audit.cut() > 0, "the worker was killed while it ran jobs");
}

fn purge(http: Http, dead: usize) {
    let answer = http.ask("POST", &path("/dead/purge"), "application/json", "{\"all\":true}");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let purged = json(&answer.body);
    assert_eq!((purged["purged"].as_u64(), purged["left"].as_u64()), (Some(dead as u64), Some(0)));
}

fn is_off_the_agenda(redis: &RedisServer) -> bool {
    let [agenda, ..] = Keyspace::new(&Prefix::default(), Shards::default()).shard_keys(Shard(0));
    redis.connect().ask(&["EXISTS", &agenda]) == delayline_core::wire::Value::Int(0)
}

fn nothing_is_left(redis: &RedisServer) {
    let keys = Keyspace::new(&Prefix::default(), Shards::default());
    let [_, queues, lease] = keys.shard_keys(Shard(0));
    let [_, _, meta, ..] = keys.queue_keys(&QUEUE.parse::<QueueName>().expect("a name"));
    let kept = BTreeSet::from([keys.config().to_string(), queues, lease, meta]);
    let found = words(redis.connect().ask(&["KEYS", "*"])).into_iter().map(|key| format!("{key:?}"));
    let left: Vec<String> =
        found.filter(|found| !kept.iter().any(|kept| found.contains(&format!("\"{kept}\"")))).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

fn path(rest: &str) -> String {
    format!("/v1/queues/{QUEUE}{rest}")
}

fn show(http: Http) -> Value {
    let answer = http.ask("GET", &path(""), "application/json", "");
    assert_eq!(answer.status, 200, "{}", answer.body);
    json(&answer.body)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_string()
}

fn millis(value: &Value) -> u64 {
    let time: jiff::Timestamp = text(value).parse().expect("a time");
    u64::try_from(time.as_millisecond()).expect("a time after 1970")
}
