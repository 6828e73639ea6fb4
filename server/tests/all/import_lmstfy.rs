use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

use delayline_tokio::redis::{Pipeline, cmd, pipe};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::import_source::{Source, connect, import, import_killed_after, listed, many, millis, now, now_ms};
use crate::program::{delayline, run_json, said, signal};
use crate::redis_server::RedisServer;

const DAY: u64 = 86_400;
const JOURNAL: &str = "delayline-import/lmstfy";

/// A timer member as lmstfy's Lua packs it: `Hc0Hc0HHc0`, of lengths and tries in 16 bits, the lower first.
fn member(namespace: &str, queue: &str, tries: u16, id: &str) -> Vec<u8> {
    let mut member = packed(namespace);
    member.extend(packed(queue));
    member.extend(tries.to_le_bytes());
    member.extend(packed(id));
    member
}

/// An element of a ready or dead list: `HHc0`.
fn element(tries: u16, id: &str) -> Vec<u8> {
    [&tries.to_le_bytes()[..], &packed(id)].concat()
}

fn packed(text: &str) -> Vec<u8> {
    [&u16::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat()
}

/// An id of lmstfy's: 26 characters, or 27 with the version before.
fn id(number: u64) -> String {
    format!("01M7XABF4514NXTZ{number:010}")
}

trait Lmstfy {
    fn body(&mut self, namespace: &str, queue: &str, id: &str, body: &[u8], ttl: u64) -> &mut Self;
    fn ready(&mut self, namespace: &str, queue: &str, tries: u16, id: &str) -> &mut Self;
    fn timer(&mut self, namespace: &str, queue: &str, tries: u16, id: &str, due: u64) -> &mut Self;
    fn dead(&mut self, namespace: &str, queue: &str, id: &str) -> &mut Self;
}

impl Lmstfy for Pipeline {
    fn body(&mut self, namespace: &str, queue: &str, id: &str, body: &[u8], ttl: u64) -> &mut Pipeline {
        self.cmd("HSET").arg("m/ns").arg(namespace).arg("").cmd("HSET").arg(format!("m/ns/{namespace}"));
        self.arg(queue).arg("").cmd("SET").arg(format!("j/{namespace}/{queue}/{id}")).arg(body);
        if ttl > 0 { self.arg("EX").arg(ttl) } else { self }
    }

    fn ready(&mut self, namespace: &str, queue: &str, tries: u16, id: &str) -> &mut Pipeline {
        self.cmd("LPUSH").arg(format!("q/{namespace}/{queue}")).arg(element(tries, id))
    }

    fn timer(&mut self, namespace: &str, queue: &str, tries: u16, id: &str, due: u64) -> &mut Pipeline {
        self.cmd("ZADD").arg("timer_set").arg(due).arg(member(namespace, queue, tries, id))
    }

    fn dead(&mut self, namespace: &str, queue: &str, id: &str) -> &mut Pipeline {
        self.cmd("LPUSH").arg(format!("d/{namespace}/{queue}")).arg(element(1, id))
    }
}

#[tokio::test]
async fn jobs_of_every_state_are_moved_with_all_they_have() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let due = now().as_secs() + 3_600;
    let versioned = "101M7XABF4514NXTZ0000000009";
    let mut lmstfy = pipe();
    for number in [3, 1, 2] {
        lmstfy.body("shop", "orders", &id(number), b"\0\xff", DAY).ready("shop", "orders", 5, &id(number));
    }
    let attributes = r#"{"body":"AP8=","attributes":{"flag":"é","zone":"eu"}}"#;
    lmstfy
        .body("shop", "orders", versioned, attributes.as_bytes(), 0)
        .timer("shop", "orders", 7, versioned, due);
    lmstfy.body("shop", "mail", &id(4), b"later", 2 * DAY).timer("shop", "mail", 2, &id(4), due + 1);
    lmstfy.body("other", "mail", &id(5), b"overdue", 0).timer("other", "mail", 65_535, &id(5), due - 7_200);
    lmstfy.body("shop", "mail", &id(6), b"dead", 0).dead("shop", "mail", &id(6));
    lmstfy.body("shop", "mail", &id(7), b"its last try runs", DAY).timer("shop", "mail", 0, &id(7), due);
    // Acknowledged: lmstfy leaves the rest until it meets it.
    lmstfy.timer("shop", "mail", 1, &id(8), due).ready("shop", "mail", 1, &id(9)).dead(
        "shop",
        "mail",
        &id(10),
    );
    source.write(&lmstfy).await;

    let (code, report, said) = import(&to, &["lmstfy", "--from", &source.redis.url()]).await;
    assert_eq!((code, &*said), (Some(0), ""), "{report}");
    let row = |before, moved, gone| json!({ "before": before, "moved": moved, "already_there": 0, "gone": gone, "left": 0, "after": 0 });
    assert_eq!(report["source"]["ready"], row(4, 3, 1));
    assert_eq!(report["source"]["delayed"], row(5, 4, 1));
    assert_eq!(report["source"]["dead"], row(2, 1, 1));
    assert_eq!(report["source"]["total"], row(11, 8, 3));
    let after = json!({ "ready": 4, "delayed": 2, "leased": 0, "dead": 2 });
    assert_eq!((&report["destination"]["after"], &report["destination"]["queues"]), (&after, &json!(3)));
    assert_eq!((&report["left"], &report["notes"]), (&json!([]), &json!([])));

    let keys: Vec<Vec<u8>> = source.ask(&[b"KEYS", b"*"]).await;
    assert!(keys.iter().all(|key| key.starts_with(b"m/ns")), "{keys:?}");

    let delayed = listed(&to, "shop~orders", "delayed").await;
    let job = &delayed[versioned];
    assert_eq!((millis(&job["due"]), &job["max_attempts"]), (due * 1_000, &json!(7)));
    assert_eq!((&job["payload"], &job["encoding"]), (&json!("AP8="), &json!("base64")));
    assert_eq!(
        job["headers"],
        json!({ "lmstfy-attr-flag": "é", "lmstfy-attr-zone": "eu", "lmstfy-ttl": "0" })
    );
    assert_eq!((&job["expires"], &job["backoff"]), (&Value::Null, &json!("none")));

    let job = &listed(&to, "shop~mail", "delayed").await[&id(4)];
    assert_eq!((millis(&job["due"]), &job["max_attempts"]), ((due + 1) * 1_000, &json!(2)));
    let job = run_json(&to, &["job", "shop~mail", &id(4), "--json"]).await;
    let left = millis(&job["expires"]) - now_ms();
    let lately = 2 * DAY - 60..=2 * DAY;
    assert!(lately.contains(&left.div_ceil(1_000)), "{left}");
    assert!(lately.contains(&job["headers"]["lmstfy-ttl"].as_str().unwrap().parse().unwrap()), "{job}");

    let job = &listed(&to, "other~mail", "ready").await[&id(5)];
    assert_eq!((millis(&job["due"]), &job["max_attempts"]), ((due - 7_200) * 1_000, &json!(999)));

    let dead = listed(&to, "shop~mail", "dead").await;
    assert_eq!(dead.keys().collect::<Vec<_>>(), [&id(6), &id(7)]);
    assert_eq!(dead[&id(6)]["reason"], "dead in lmstfy");
    assert_eq!(run_json(&to, &["job", "shop~mail", &id(7), "--json"]).await["expires"], Value::Null);
    assert!(dead[&id(7)]["reason"].as_str().unwrap().starts_with("its last try was running"));

    // In the order of the ready list, which is not that of the ids.
    let consumed = crate::program::said(&to, &["consume", "shop~orders", "--count", "3", "--json"]).await;
    let consumed: Vec<Value> =
        crate::program::lines_of(consumed.as_bytes()).iter().map(|job| job["id"].clone()).collect();
    assert_eq!(consumed, [json!(id(3)), json!(id(1)), json!(id(2))]);
    // One more life, as a dead letter of lmstfy's has when it is respawned.
    crate::program::said(&to, &["dead", "requeue", "shop~mail", &id(6)]).await;
    let job = run_json(&to, &["consume", "shop~mail", "--count", "1", "--json"]).await;
    assert_eq!((&job["id"], &job["payload"]), (&json!(id(6)), &json!("dead")));
    let findings = crate::program::said(&to, &["doctor", "--thorough"]).await;
    assert!(!findings.contains("jobs have") && !findings.contains("counter"), "{findings}");
}

#[tokio::test]
async fn what_cannot_be_moved_is_told_and_left_where_it_is() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let due = now().as_secs() + 3_600;
    let mut lmstfy = pipe();
    lmstfy.cmd("ZADD").arg("timer_set").arg(due).arg(b"\x05\0ns\xff");
    lmstfy.cmd("ZADD").arg("timer_set").arg("12.5").arg(member("ns", "q", 1, &id(1)));
    lmstfy.cmd("LPUSH").arg("q/ns/q").arg("no element");
    for number in 1..=5 {
        lmstfy.body("ns", "q", &id(number), b"x", 0);
    }
    lmstfy.ready("ns", "q", 1, &id(2)).cmd("LPUSH").arg("q/ns/q").arg("").ready("ns", "q", 1, &id(3));
    lmstfy.body("ns", "q", "1not-json-not-json-not-json", b"{", 0).ready(
        "ns",
        "q",
        1,
        "1not-json-not-json-not-json",
    );
    lmstfy.timer("ns", "q", 1, &id(4), due + 11 * 366 * DAY);
    lmstfy.body("ns", "q", &id(5), b"x", 60).timer("ns", "q", 1, &id(5), due);
    lmstfy.body("n s", "q", &id(6), b"x", 0).timer("n s", "q", 1, &id(6), due);
    lmstfy.body("ns", "q", &id(7), &vec![b'x'; (1 << 20) + 1], 0).timer("ns", "q", 1, &id(7), due);
    lmstfy.cmd("HSET").arg("j/ns/q/x").arg("a").arg("b").dead("ns", "q", "x");
    lmstfy.cmd("SET").arg("q/ns/string").arg("no list");
    source.write(&lmstfy).await;
    let words = ["lmstfy", "--from", &source.redis.url(), "--live"];

    let before = source.dump().await;
    let (code, dry, _) = import(&to, &[&words[..], &["--dry-run"]].concat()).await;
    assert_eq!((code, &dry["dry_run"]), (Some(0), &json!(true)));
    assert!(source.dump().await == before, "a dry run changes nothing");
    let (mut keys, names) = (connect(&to).await, cmd("DBSIZE"));
    assert_eq!(names.query_async::<u64>(&mut keys).await.unwrap(), 0, "a dry run makes nothing");

    let (code, report, told) = import(&to, &words).await;
    assert_eq!(code, Some(1), "{report}");
    assert!(told.contains("\"code\":\"partly\"") && told.contains("10 of 12"), "{told}");
    assert_eq!(report["left"], dry["left"]);
    assert_eq!(dry["source"]["ready"]["moved"], 2);
    let left: BTreeMap<String, u64> = report["left"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| (left["reason"].as_str().unwrap().to_owned(), left["count"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("it is cut short", 3),
        ("it is due at no second", 1),
        ("it is due in over 10 years", 1),
        ("it expires before it is due", 1),
        ("its body is no string", 1),
        ("its body is not the JSON of version 1", 1),
        ("its body is over the limit of 1048576 bytes", 1),
        ("namespace \"n s\" is not valid: use 1 to 255 of A-Z a-z 0-9 . _ -", 1),
    ];
    assert_eq!(left, expected.map(|(reason, count)| (reason.to_owned(), count)).into());
    let cut =
        report["left"].as_array().unwrap().iter().find(|left| left["reason"] == "it is cut short").unwrap();
    assert!(cut["samples"].as_array().unwrap().contains(&json!("05006e73ff (5 bytes)")), "{cut}");

    let mut after = source.dump().await;
    for gone in [&b"j/ns/q/"[..], b"j/ns/q/"].iter().zip([2, 3]) {
        let key = [gone.0, id(gone.1).as_bytes()].concat();
        assert!(before.contains_key(&key) && !after.contains_key(&key));
    }
    after.remove(&b"q/ns/q"[..]);
    assert!(after.iter().all(|(key, value)| before.get(key) == Some(value)), "what is left is untouched");
    let list: Vec<Vec<u8>> = source.ask(&[b"LRANGE", b"q/ns/q", b"0", b"-1"]).await;
    assert_eq!(list, [element(1, "1not-json-not-json-not-json"), b"".to_vec(), b"no element".to_vec()]);
    assert_eq!(listed(&to, "ns~q", "ready").await.into_keys().collect::<Vec<_>>(), [id(2), id(3)]);
}

#[tokio::test]
async fn a_namespace_is_moved_alone_and_within_one_redis() {
    let mut source = Source::start().await;
    let mut lmstfy = pipe();
    for (namespace, number) in [("a", 1), ("b", 2), ("ab", 3)] {
        for (number, queue) in [(number, "q"), (number + 10, "other")] {
            let id = id(number);
            lmstfy.body(namespace, queue, &id, b"x", 0);
            lmstfy.timer(namespace, queue, 3, &id, now().as_secs() + 50);
            lmstfy.body(namespace, queue, &[&id[..25], "r"].concat(), b"x", 0);
            lmstfy.ready(namespace, queue, 3, &[&id[..25], "r"].concat());
        }
    }
    source.write(&lmstfy).await;
    // Where --redis says, if nothing else is said.
    let (code, report, _) = import(&source.redis, &["lmstfy", "--namespace", "a"]).await;
    assert_eq!(
        (code, &report["source"]["total"]["before"], &report["source"]["total"]["after"]),
        (Some(0), &json!(4), &json!(0))
    );
    let mut queues = said(&source.redis, &["queues"]).await.lines().map(str::to_owned).collect::<Vec<_>>();
    queues.sort();
    assert_eq!(queues, ["a~other", "a~q"]);
    assert_eq!(source.ask::<u64>(&[b"ZCARD", b"timer_set"]).await, 4);
    let (code, report, _) = import(&source.redis, &["lmstfy", "--live"]).await;
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(8)));
    assert!(source.is_free_of_imports().await);
}

/// What the test writes, and where it must be after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Expected {
    Ready,
    Delayed(u64),
    Dead,
}

/// Jobs of all states in three queues.
async fn write_many(source: &mut Source, count: u64) -> BTreeMap<(String, String), Expected> {
    let (mut expected, now) = (BTreeMap::new(), now().as_secs());
    for chunk in (0..count).collect::<Vec<_>>().chunks(2_000) {
        let mut lmstfy = pipe();
        for &number in chunk {
            let (queue, id) = (["orders", "mail", "sync"][usize::try_from(number % 3).unwrap()], id(number));
            let body = format!("{{\"number\":{number},\"to\":\"somebody@example.org\"}}");
            lmstfy.body("shop", queue, &id, body.as_bytes(), if number % 2 == 0 { 0 } else { 30 * DAY });
            let state = match number % 10 {
                0..4 => {
                    let due = now + 3_600 + number % 1_000;
                    lmstfy.timer("shop", queue, 3, &id, due);
                    Expected::Delayed(due * 1_000)
                }
                4..8 => {
                    lmstfy.ready("shop", queue, 3, &id);
                    Expected::Ready
                }
                8 => {
                    lmstfy.timer("shop", queue, 0, &id, now + 60);
                    Expected::Dead
                }
                _ => {
                    lmstfy.dead("shop", queue, &id);
                    Expected::Dead
                }
            };
            expected.insert((format!("shop~{queue}"), id), state);
        }
        source.write(&lmstfy).await;
    }
    expected
}

const QUEUES: [&str; 3] = ["shop~mail", "shop~orders", "shop~sync"];

async fn found(redis: &RedisServer) -> BTreeMap<(String, String), Expected> {
    let mut found = BTreeMap::new();
    for queue in QUEUES {
        for state in ["ready", "delayed", "dead"] {
            let listed = listed(redis, queue, state).await;
            let dues: Vec<u64> = listed.values().map(|job| millis(&job["due"])).collect();
            assert!(
                state != "ready" || dues.is_sorted_by(|a, b| a < b),
                "not in the order of the ready list"
            );
            for (id, job) in listed {
                let due = millis(&job["due"]);
                assert!(state == "delayed" || due <= now_ms(), "{job}");
                let is = match state {
                    "ready" => Expected::Ready,
                    "delayed" => Expected::Delayed(due),
                    _ => Expected::Dead,
                };
                assert!(found.insert((queue.to_owned(), id), is).is_none(), "{job}");
            }
        }
    }
    found
}

#[tokio::test]
async fn an_import_that_is_killed_again_and_again_moves_each_job_once() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let count = many(6_000);
    let expected = write_many(&mut source, count).await;
    let from = source.redis.url();
    let words = ["lmstfy", "--from", &from, "--live"];
    let mut kills = 0;
    for tenth in [1, 3, 6, 8] {
        kills += u32::from(
            import_killed_after(&to, &words, &QUEUES, count * tenth / 10, &mut source, JOURNAL).await,
        );
    }
    assert!(kills >= 2, "killed {kills} times with jobs on their way");
    for queue in QUEUES {
        assert!(
            said(&to, &["stats", queue]).await.contains("paused"),
            "{queue} is paused until all is moved"
        );
    }
    let begun = Instant::now();
    let (code, report, told) = import(&to, &words).await;
    assert_eq!((code, &*told), (Some(0), ""), "{report}");
    let (row, took) = (&report["source"]["total"], begun.elapsed());
    assert_eq!((&row["left"], &row["after"], &row["gone"]), (&json!(0), &json!(0), &json!(0)));
    println!("after {kills} kills {} of {count} jobs were left, moved in {took:?}", row["before"]);
    assert!(found(&to).await == expected, "something is lost, doubled, early or somewhere else");
    assert!(source.is_free_of_imports().await);
    assert_eq!(source.ask::<u64>(&[b"DBSIZE"]).await, 2, "only the names of namespaces and queues");
}

#[tokio::test]
async fn many_jobs_of_all_states_are_moved() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let count = many(6_000);
    let expected = write_many(&mut source, count).await;
    let begun = Instant::now();
    let (code, report, _) = import(&to, &["lmstfy", "--from", &source.redis.url(), "--live"]).await;
    let took = begun.elapsed();
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(count)));
    let after = &report["destination"]["after"];
    assert_eq!(
        (&after["ready"], &after["delayed"], &after["dead"]),
        (&json!(count * 4 / 10), &json!(count * 4 / 10), &json!(count * 2 / 10))
    );
    let rate = u128::from(count) * 1_000 / took.as_millis().max(1);
    println!("{count} jobs moved in {took:?}: {rate} jobs/s");
    assert!(found(&to).await == expected, "something is lost, doubled, early or somewhere else");
}

/// Consumers wait on the queues all the while, and acknowledge at once what they get.
#[tokio::test]
async fn consumers_that_wait_get_each_job_once_though_the_import_is_killed() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let (count, mut lmstfy) = (3_000, pipe());
    for number in 0..count {
        lmstfy.body("shop", "orders", &id(number), b"x", 0).ready("shop", "orders", 2, &id(number));
    }
    source.write(&lmstfy).await;
    let mut consume = delayline(Some(&to), &["consume", "shop~orders", "--json"]);
    let mut consumer = consume.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(consumer.stdout.take().unwrap()).lines();
    let reading = tokio::spawn(async move {
        let mut ids = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let job: Value = serde_json::from_str(&line).unwrap();
            ids.push(job["id"].as_str().unwrap().to_owned());
        }
        ids
    });
    let from = source.redis.url();
    let words = ["lmstfy", "--from", &from, "--live"];
    for published in [1, 700, 1_300, 2_100] {
        import_killed_after(&to, &words, &["shop~orders"], published, &mut source, JOURNAL).await;
    }
    let (code, report, _) = import(&to, &words).await;
    assert_eq!(code, Some(0), "{report}");
    crate::eventually("all are acknowledged", async || {
        let stats = run_json(&to, &["stats", "shop~orders", "--json"]).await;
        (stats["sizes"]["ready"] == 0 && stats["sizes"]["leased"] == 0).then_some(())
    })
    .await;
    signal("-TERM", &consumer).await;
    consumer.wait().await.unwrap();
    let ids = reading.await.unwrap();
    let once: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), once.len()), (3_000, 3_000), "each job once");
}

#[tokio::test]
async fn what_a_killed_run_had_taken_is_published_once() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let due = now_ms() + 3_600_000;
    let mut lmstfy = pipe();
    for number in 1..=3 {
        lmstfy.body("ns", "q", &id(number), b"x", 0);
        let entry = [&b"d"[..], &member("ns", "q", 4, &id(number))].concat();
        lmstfy.cmd("ZADD").arg(JOURNAL).arg(due).arg(entry);
    }
    // Its body has expired since.
    lmstfy.cmd("ZADD").arg(JOURNAL).arg(due).arg([b"r", &*member("ns", "q", 4, &id(4))].concat());
    source.write(&lmstfy).await;
    let at = format!("{}", jiff::Timestamp::from_millisecond(i64::try_from(due).unwrap()).unwrap());
    said(&to, &["publish", "ns~q", "x", "--id", &id(2), "--at", &at]).await;
    let (code, report, _) = import(&to, &["lmstfy", "--from", &source.redis.url(), "--live"]).await;
    assert_eq!(code, Some(0), "{report}");
    let row = json!({ "before": 4, "moved": 2, "already_there": 1, "gone": 1, "left": 0, "after": 0 });
    assert_eq!(report["source"]["journal"], row);
    let jobs = listed(&to, "ns~q", "delayed").await;
    assert_eq!(jobs.len(), 3);
    assert!(jobs.values().all(|job| millis(&job["due"]) == due), "{jobs:?}");
    assert!(source.is_free_of_imports().await);
}

#[tokio::test]
async fn an_import_that_broke_off_is_not_gone_on_with_elsewhere() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let mut lmstfy = pipe();
    for number in 0..2_000 {
        lmstfy.body("ns", "q", &id(number), b"x", 0).ready("ns", "q", 2, &id(number));
    }
    source.write(&lmstfy).await;
    let from = source.redis.url();
    let words = ["lmstfy", "--from", &from, "--live"];
    assert!(import_killed_after(&to, &words, &["ns~q"], 1, &mut source, JOURNAL).await);
    let elsewhere = RedisServer::start(&[]).await;
    let (code, _, told) = import(&elsewhere, &words).await;
    assert!(code == Some(1) && told.contains("other_destination") && told.contains("ns~q"), "{told}");
    let mut keys = cmd("KEYS");
    let keys: Vec<String> = keys.arg("*ns~q*").query_async(&mut connect(&elsewhere).await).await.unwrap();
    assert!(keys.is_empty(), "nothing was published there: {keys:?}");
    let (code, report, _) = import(&to, &words).await;
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(listed(&to, "ns~q", "ready").await.len(), 2_000);
}

#[tokio::test]
async fn a_queue_that_was_paused_stays_so_and_one_that_was_resumed_meanwhile_is_told() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let mut lmstfy = pipe();
    lmstfy.body("ns", "q", &id(1), b"x", 0).ready("ns", "q", 2, &id(1));
    lmstfy.body("ns", "other", &id(2), b"x", 0).ready("ns", "other", 2, &id(2));
    source.write(&lmstfy).await;
    said(&to, &["pause", "ns~q", "--create"]).await;
    let words = ["lmstfy", "--from", &source.redis.url(), "--live"];
    let (code, report, _) = import(&to, &words).await;
    assert_eq!(code, Some(0));
    assert!(
        report["notes"][0].as_str().unwrap().contains("ns~q was paused before, and still is"),
        "{report}"
    );
    let paused = async |queue| run_json(&to, &["stats", queue, "--json"]).await["paused"] == json!(true);
    assert!(paused("ns~q").await && !paused("ns~other").await);

    // A run was killed between publishing a job and taking it off the journal; the queue was resumed since.
    let stats = run_json(&to, &["stats", "ns~other", "--json"]).await;
    let mut broken = pipe();
    let entry = [&b"r"[..], &member("ns", "other", 2, &id(3))].concat();
    broken.body("ns", "other", &id(3), b"x", 0).cmd("ZADD").arg(JOURNAL).arg(1).arg(entry);
    let born = cmd("HGET").arg("{dl:0.0}:ns~other:meta").arg("born").to_owned();
    let born: u64 = born.query_async(&mut connect(&to).await).await.unwrap();
    broken.cmd("HSET").arg("delayline-import-queues/lmstfy").arg("ns~other").arg(format!("paused {born} 1"));
    source.write(&broken).await;
    let (code, report, _) = import(&to, &words).await;
    assert_eq!(code, Some(0), "{stats}");
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.contains("ns~other was resumed") && note.contains("1 jobs"), "{report}");
    assert!(!paused("ns~other").await);
}

#[tokio::test]
async fn a_server_that_still_runs_is_noticed() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let mut lmstfy = pipe();
    lmstfy.body("ns", "q", &id(1), b"x", 0).timer("ns", "q", 2, &id(1), now().as_secs() + 50);
    source.write(&lmstfy).await;
    let mut server = connect(&source.redis).await;
    let pumping = tokio::spawn(async move {
        loop {
            let mut due = cmd("ZRANGEBYSCORE");
            due.arg("timer_set").arg(0).arg(1);
            let () = due.query_async(&mut server).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let words = ["lmstfy", "--from", &source.redis.url()];
    let (code, _, told) = import(&to, &words).await;
    assert!(code == Some(1) && told.contains("still_running") && told.contains("--live"), "{told}");
    assert_eq!(source.ask::<u64>(&[b"ZCARD", b"timer_set"]).await, 1);
    pumping.abort();
    let _ = pumping.await;
    // Nobody but who is stopped has touched it since.
    let (code, report, _) = import(&to, &words).await;
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(1)));
}

#[tokio::test]
async fn large_bodies_are_moved_a_few_at_a_time() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    for number in 0..20_u8 {
        let mut lmstfy = pipe();
        let body: Vec<u8> =
            (0..1_u32 << 20).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[1] ^ number).collect();
        lmstfy.body("ns", "q", &id(number.into()), &body, 0);
        if number < 10 {
            lmstfy.ready("ns", "q", 1, &id(number.into()));
        } else {
            lmstfy.dead("ns", "q", &id(number.into()));
        }
        source.write(&lmstfy).await;
    }
    let (code, report, _) = import(&to, &["lmstfy", "--from", &source.redis.url(), "--live"]).await;
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(20)));
    said(&to, &["dead", "purge", "ns~q", "--all"]).await;
    let findings = said(&to, &["doctor", "--thorough"]).await;
    assert!(!findings.contains("jobs have") && !findings.contains("belie"), "{findings}");
    assert_eq!(listed(&to, "ns~q", "ready").await.len(), 10);
}

#[tokio::test]
async fn one_import_runs_at_a_time() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let mut lmstfy = pipe();
    lmstfy.body("ns", "q", &id(1), b"x", 0).ready("ns", "q", 2, &id(1));
    lmstfy.cmd("SET").arg("delayline-import-lock/lmstfy").arg("another").arg("EX").arg(600);
    source.write(&lmstfy).await;
    let words = ["lmstfy", "--from", &source.redis.url(), "--live"];
    let (code, _, told) = import(&to, &words).await;
    assert!(code == Some(1) && told.contains("\"importing\""), "{told}");
    assert_eq!(source.ask::<u64>(&[b"LLEN", b"q/ns/q"]).await, 1);
    // One that was killed holds it for some seconds at most.
    let _: u64 = source.ask(&[b"PEXPIRE", b"delayline-import-lock/lmstfy", b"1500"]).await;
    let (code, report, _) = import(&to, &words).await;
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(1)));
}

#[tokio::test]
async fn one_that_is_told_to_stop_leaves_nothing_behind() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let expected = write_many(&mut source, 6_000).await;
    let from = source.redis.url();
    let mut command = delayline(Some(&to), &["import", "lmstfy", "--from", &from, "--live", "--json"]);
    let import_process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut connection = connect(&to).await;
    crate::eventually("some are published", async || {
        let mut keys = cmd("EXISTS");
        let there: u64 = keys.arg("{dl:0.0}:shop~mail:pool").query_async(&mut connection).await.unwrap();
        (there > 0).then_some(())
    })
    .await;
    signal("-TERM", &import_process).await;
    let output = crate::program::ended(import_process).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{report}");
    assert!(source.is_free_of_imports().await);
    for queue in said(&to, &["queues"]).await.lines() {
        assert_eq!(run_json(&to, &["stats", queue, "--json"]).await["paused"], false);
    }
    let (code, ..) = import(&to, &["lmstfy", "--from", &from, "--live"]).await;
    assert_eq!(code, Some(0));
    assert!(found(&to).await == expected);
}
