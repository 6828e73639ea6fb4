use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Instant;

use delayline_tokio::redis::{Pipeline, cmd, pipe};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::import_source::{Source, connect, import, import_killed_after, listed, many, millis, now_ms};
use crate::program::{delayline, lines_of, run_json, said, signal};
use crate::redis_server::RedisServer;

/// An element of Redisson 3.21.1 and later: `Bc0Lc0`.
fn new(random: u64, payload: &[u8]) -> Vec<u8> {
    [&[8], &*old(random, payload)].concat()
}

/// One of Redisson before: `dLc0`.
fn old(random: u64, payload: &[u8]) -> Vec<u8> {
    [&random.to_le_bytes(), &u64::try_from(payload.len()).unwrap().to_le_bytes(), payload].concat()
}

/// Adds an element as `offer` does.
fn offer(redisson: &mut Pipeline, queue: &str, element: &[u8], due: u64) {
    redisson.cmd("ZADD").arg(format!("redisson_delay_queue_timeout:{queue}")).arg(due).arg(element);
    redisson.cmd("RPUSH").arg(format!("redisson_delay_queue:{queue}")).arg(element);
}

fn payload(number: u64) -> Vec<u8> {
    format!("{{\"number\":{number}}}").into_bytes()
}

/// The payloads of jobs, which are JSON, with their due times.
fn by_payload(jobs: BTreeMap<String, Value>) -> BTreeMap<u64, u64> {
    let count = jobs.len();
    let jobs: BTreeMap<u64, u64> = jobs
        .into_values()
        .map(|job| {
            let payload: Value = match &job["payload"] {
                Value::String(text) => serde_json::from_str(text).unwrap(),
                payload => payload.clone(),
            };
            (payload["number"].as_u64().unwrap(), millis(&job["due"]))
        })
        .collect();
    assert_eq!(jobs.len(), count, "a job is there twice");
    jobs
}

#[tokio::test]
async fn elements_of_both_formats_are_moved_with_their_due_times() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let (due, mut redisson) = (now_ms() + 3_600_000, pipe());
    offer(&mut redisson, "{orders}", &new(1, &payload(1)), due + 1);
    offer(&mut redisson, "{orders}", &old(2, &payload(2)), due);
    // Whose random number begins as an element of the other format does.
    offer(&mut redisson, "{orders}", &old(8, &payload(3)), due + 2);
    // Equal payloads are different jobs.
    offer(&mut redisson, "{orders}", &new(4, &payload(4)), due);
    offer(&mut redisson, "{orders}", &new(5, &payload(5)), now_ms() - 60_000);
    for number in [8, 6, 7] {
        redisson.cmd("RPUSH").arg("orders").arg(payload(number));
    }
    source.write(&redisson).await;
    let words = ["redisson", "--from", &source.redis.url(), "--queue", "orders"];

    let before = source.dump().await;
    let (code, dry, _) = import(&to, &[&words[..], &["--dry-run"]].concat()).await;
    assert_eq!((code, &dry["source"]["total"]["moved"]), (Some(0), &json!(8)));
    assert!(source.dump().await == before, "a dry run changes nothing");

    let (code, report, told) = import(&to, &words).await;
    assert_eq!((code, &*told), (Some(0), ""), "{report}");
    let row = |count| json!({ "before": count, "moved": count, "already_there": 0, "gone": 0, "left": 0, "after": 0 });
    assert_eq!((&report["source"]["ready"], &report["source"]["delayed"]), (&row(3), &row(5)));
    let delayed = by_payload(listed(&to, "orders", "delayed").await);
    assert_eq!(delayed, BTreeMap::from([(1, due + 1), (2, due), (3, due + 2), (4, due)]));
    assert_eq!(source.ask::<u64>(&[b"DBSIZE"]).await, 0);
    let consumed = said(&to, &["consume", "orders", "--count", "4", "--json"]).await;
    let order: Vec<String> =
        lines_of(consumed.as_bytes()).iter().map(|job| job["payload"].to_string()).collect();
    for (job, number) in order.iter().zip([5, 8, 6, 7]) {
        assert!(job.contains(&number.to_string()), "{order:?}");
    }
}

#[tokio::test]
async fn what_is_no_element_is_told_and_left_where_it_is() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let (due, mut redisson) = (now_ms() + 3_600_000, pipe());
    let mut cut = new(1, &payload(1));
    cut.pop();
    offer(&mut redisson, "{shop}:orders", &cut, due);
    offer(&mut redisson, "{shop}:orders", b"\xac\xed\0\x05", due);
    offer(&mut redisson, "{shop}:orders", &new(2, &payload(2)), due);
    offer(&mut redisson, "{shop}:orders", &new(3, &vec![b'x'; (1 << 20) + 1]), due);
    redisson.cmd("ZADD").arg("redisson_delay_queue_timeout:{shop}:orders").arg("inf").arg(new(4, b"x"));
    // In one of the two only: the sorted set says what is delivered.
    redisson.cmd("ZADD").arg("redisson_delay_queue_timeout:{shop}:orders").arg(due).arg(new(5, &payload(5)));
    redisson.cmd("RPUSH").arg("redisson_delay_queue:{shop}:orders").arg(new(6, &payload(6)));
    source.write(&redisson).await;
    let before = source.dump().await;
    let words = ["redisson", "--from", &source.redis.url(), "--queue", "{shop}:orders"];
    let (code, _, told) = import(&to, &words).await;
    assert!(code == Some(2) && told.contains("--to"), "{told}");
    assert!(source.dump().await == before);

    let (code, report, told) = import(&to, &[&words[..], &["--to", "shop~orders"]].concat()).await;
    assert!(code == Some(1) && told.contains("4 of 6"), "{told} {report}");
    let left: BTreeMap<&str, u64> = report["left"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| (left["reason"].as_str().unwrap(), left["count"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("it is due at no time", 1),
        ("it is neither of the two formats of RDelayedQueue", 2),
        ("its body is over the limit of 1048576 bytes", 1),
    ];
    assert_eq!(left, expected.into());
    assert!(
        report["notes"][0].as_str().unwrap().starts_with("1 elements of redisson_delay_queue:"),
        "{report}"
    );
    assert_eq!(by_payload(listed(&to, "shop~orders", "delayed").await), BTreeMap::from([(2, due), (5, due)]));
    let list: Vec<Vec<u8>> =
        source.ask(&[b"LRANGE", b"redisson_delay_queue:{shop}:orders", b"0", b"-1"]).await;
    assert_eq!(list.len(), 4);
    assert_eq!((&*list[0], &*list[1], &list[3]), (&*cut, &b"\xac\xed\0\x05"[..], &new(6, &payload(6))));
    let keys: Vec<String> = source.ask(&[b"KEYS", b"*"]).await;
    assert_eq!(keys.len(), 2, "{keys:?}");
}

#[tokio::test]
async fn what_is_due_stays_with_redissons_consumers_if_that_is_asked_for() {
    let mut source = Source::start().await;
    let mut redisson = pipe();
    offer(&mut redisson, "{q}", &new(1, &payload(1)), now_ms() + 60_000);
    redisson.cmd("RPUSH").arg("q").arg(payload(2));
    source.write(&redisson).await;
    let (code, report, _) = import(&source.redis, &["redisson", "--queue", "q", "--delayed-only"]).await;
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(1)));
    assert_eq!(source.ask::<u64>(&[b"LLEN", b"q"]).await, 1);
    let (code, report, _) = import(&source.redis, &["redisson", "--queue", "q"]).await;
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(1)));
    assert_eq!(run_json(&source.redis, &["stats", "q", "--json"]).await["sizes"]["ready"], 1);
    assert!(source.is_free_of_imports().await);
}

/// Elements of both formats, in an order of their own in the list, and some that are due.
async fn write_many(source: &mut Source, count: u64) -> BTreeMap<u64, Option<u64>> {
    let (mut expected, due) = (BTreeMap::new(), now_ms() + 3_600_000);
    for chunk in (0..count).collect::<Vec<_>>().chunks(2_000) {
        let mut redisson = pipe();
        for &number in chunk {
            let (random, payload) = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15), payload(number));
            let due = due + number.wrapping_mul(7_919) % 1_000_000;
            match number % 5 {
                4 => {
                    redisson.cmd("RPUSH").arg("orders").arg(&payload);
                    expected.insert(number, None);
                }
                kind => {
                    let element = if kind % 2 == 0 { new(random, &payload) } else { old(random, &payload) };
                    offer(&mut redisson, "{orders}", &element, due);
                    expected.insert(number, Some(due));
                }
            }
        }
        source.write(&redisson).await;
    }
    expected
}

async fn found(redis: &RedisServer) -> BTreeMap<u64, Option<u64>> {
    let ready = by_payload(listed(redis, "orders", "ready").await).into_keys().map(|number| (number, None));
    let delayed = by_payload(listed(redis, "orders", "delayed").await).into_iter();
    ready.chain(delayed.map(|(number, due)| (number, Some(due)))).collect()
}

#[tokio::test]
async fn an_import_that_is_killed_again_and_again_moves_each_element_once() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let count = many(4_000);
    let expected = write_many(&mut source, count).await;
    let from = source.redis.url();
    let words = ["redisson", "--from", &from, "--queue", "orders"];
    let mut kills = 0;
    for tenth in [1, 4, 7, 9] {
        kills += u32::from(
            import_killed_after(
                &to,
                &words,
                &["orders"],
                count * tenth / 10,
                &mut source,
                "delayline-import:{orders}",
            )
            .await,
        );
    }
    assert!(kills >= 2, "killed {kills} times with elements on their way");
    let begun = Instant::now();
    let (code, report, told) = import(&to, &words).await;
    assert_eq!((code, &*told), (Some(0), ""), "{report}");
    let row = &report["source"]["total"];
    assert_eq!((&row["left"], &row["after"]), (&json!(0), &json!(0)));
    println!(
        "after {kills} kills {} of {count} jobs were left, moved in {:?}",
        row["before"],
        begun.elapsed()
    );
    assert!(found(&to).await == expected, "something is lost, doubled or early");
    assert_eq!(source.ask::<u64>(&[b"DBSIZE"]).await, 0);
}

#[tokio::test]
async fn many_elements_are_moved() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let count = many(4_000);
    let expected = write_many(&mut source, count).await;
    let begun = Instant::now();
    let (code, report, _) =
        import(&to, &["redisson", "--from", &source.redis.url(), "--queue", "orders"]).await;
    let took = begun.elapsed();
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(count)));
    let rate = u128::from(count) * 1_000 / took.as_millis().max(1);
    println!("{count} jobs moved in {took:?}: {rate} jobs/s");
    assert!(found(&to).await == expected, "something is lost, doubled or early");
}

/// The script by which each client of Redisson moves what is due, as it stands in its source.
const TRANSFER: &str = "\
local expiredValues = redis.call('zrangebyscore', KEYS[2], 0, ARGV[1], 'limit', 0, ARGV[2]);
if #expiredValues > 0 then
  for i, v in ipairs(expiredValues) do
    local randomId, value = struct.unpack('Bc0Lc0', v);
    redis.call('rpush', KEYS[1], value);
    redis.call('lrem', KEYS[3], 1, v);
  end;
  redis.call('zrem', KEYS[2], unpack(expiredValues));
end;";

/// Redisson goes on moving and consuming what is due, in vain or not, while its jobs are moved.
#[tokio::test]
async fn beside_a_redisson_that_still_runs_each_job_runs_once() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let (count, mut redisson) = (4_000, pipe());
    for number in 0..count {
        let payload = format!("{number:06}");
        offer(&mut redisson, "{orders}", &new(number, payload.as_bytes()), now_ms() - 10_000 + number);
    }
    source.write(&redisson).await;
    let mut old_client = connect(&source.redis).await;
    let consuming = tokio::spawn(async move {
        let mut consumed = Vec::new();
        let mut idle = 0;
        while idle < 200 {
            let mut transfer = cmd("EVAL");
            transfer.arg(TRANSFER).arg(3).arg("orders").arg("redisson_delay_queue_timeout:{orders}");
            transfer.arg("redisson_delay_queue:{orders}").arg(now_ms()).arg(3);
            let () = transfer.query_async(&mut old_client).await.unwrap();
            let one: Option<String> = cmd("LPOP").arg("orders").query_async(&mut old_client).await.unwrap();
            idle = if one.is_some() { 0 } else { idle + 1 };
            consumed.extend(one);
        }
        consumed
    });
    let mut consume = delayline(Some(&to), &["consume", "orders", "--json"]);
    let mut consumer = consume.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(consumer.stdout.take().unwrap()).lines();
    let from = source.redis.url();
    let words = ["redisson", "--from", &from, "--queue", "orders"];
    let (code, _, told) = import(&to, &[&words[..], &["--live"]].concat()).await;
    assert!(code == Some(0), "{told}");
    let mut all = consuming.await.unwrap();
    let by_redisson = all.len();
    let moved =
        run_json(&to, &["stats", "orders", "--json"]).await["counters"]["published"].as_u64().unwrap();
    for _ in 0..moved {
        let job: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        all.push(job["payload"].as_str().map_or_else(|| job["payload"].to_string(), str::to_owned));
    }
    signal("-TERM", &consumer).await;
    consumer.wait().await.unwrap();
    println!("{by_redisson} were consumed by Redisson, {moved} were moved");
    all.sort();
    let expected: Vec<String> = (0..count).map(|number| format!("{number:06}")).collect();
    assert!(all == expected, "something is lost or doubled");
    assert!(moved > 0);
}

#[tokio::test]
async fn a_client_that_still_runs_is_noticed() {
    let (mut source, to) = (Source::start().await, RedisServer::start(&[]).await);
    let mut redisson = pipe();
    offer(&mut redisson, "{q}", &new(1, &payload(1)), now_ms() + 60_000);
    source.write(&redisson).await;
    let client = delayline_tokio::redis::Client::open(source.redis.url()).unwrap();
    let mut subscription = client.get_async_pubsub().await.unwrap();
    subscription.subscribe("redisson_delay_queue_channel:{q}").await.unwrap();
    let words = ["redisson", "--from", &source.redis.url(), "--queue", "q"];
    let (code, _, told) = import(&to, &words).await;
    assert!(code == Some(1) && told.contains("still_running"), "{told}");
    let (code, report, _) = import(&to, &[&words[..], &["--live"]].concat()).await;
    assert_eq!((code, &report["source"]["total"]["moved"]), (Some(0), &json!(1)));
}
