//! What the doctor finds in queues, and mends: every key and every field is given bad values, a queue for each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use delayline_tokio::redis::{self, Cmd, Connection, FromRedisValue, cmd};
use delayline_tokio::{Client, QueueConfig, Reason, State, Verdict};
use serde_json::Value;

use crate::program::delayline;
use crate::redis_server::RedisServer;

const GUIDE: &str = include_str!("../../../docs/production.md");
const TAG: &str = "{dl:0.0}:";
const KEYS: [&str; 9] = ["meta", "pool", "due", "leased", "state", "dead", "exp", "waiting", "big"];
/// The jobs of the queue that all others are copies of. All but the dead and the delayed can be delivered.
const JOBS: [&str; 8] = ["held", "dead", "again", "ready", "large", "expiring", "delayed", "other"];
const NUMBERS: [&str; 8] = ["", "-1", "x", "1e9", "99999999999999999999", "1.5", " 1", "\u{e9}\0"];

struct Ward {
    server: RedisServer,
    redis: Connection,
    /// What was done to which queue.
    damage: BTreeMap<String, String>,
}

impl Ward {
    /// A Redis with one sound queue, `sound`, which has a job in every place.
    async fn new() -> Ward {
        let server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "no"]).await;
        let client = Client::connect(&server.url()).await.unwrap();
        let queue = client.bytes("sound").unwrap();
        let kept = Some(864_000_000);
        queue.configure(QueueConfig { retention_ms: kept, ..QueueConfig::default() }, None).await.unwrap();
        let hour = Duration::from_secs(3600);
        for (id, lease, verdict) in [
            ("held", hour, None),
            ("dead", hour, Some(Verdict::Bury { reason: Reason::new("broken") })),
            ("again", hour, Some(Verdict::Nack { after_ms: Some(0), reason: Reason::new("once") })),
        ] {
            queue.publish_bytes(id).id(id).await.unwrap();
            let job = queue.take().lease(lease).await.unwrap().remove(0);
            if let Some(verdict) = verdict {
                client.settle(job.lease, verdict).await.unwrap();
            }
        }
        for id in ["ready", "other"] {
            queue.publish_bytes(id).id(id).lost_delay(Duration::from_secs(1)).await.unwrap();
        }
        let mut bits = 88_172_645_463_325_252_u64;
        let noise = (0..6000).map(|_| {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            bits.to_le_bytes()[0]
        });
        queue.publish_bytes(noise.collect::<Vec<u8>>()).id("large").await.unwrap();
        queue.publish_bytes("expiring").id("expiring").ttl(hour).await.unwrap();
        queue.publish_bytes("delayed").id("delayed").delay(hour).await.unwrap();
        client.close().await;
        let redis = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        let mut ward = Ward { server, redis, damage: BTreeMap::new() };
        let now: (u64, u64) = ward.ask(&cmd("TIME"));
        ward.does(&["ZADD", &key("sound", "waiting"), &(now.0 * 1000).to_string(), "AAAAAAAAAAA"]);
        ward.does(&["HSET", &key("sound", "meta"), "w", "1"]);
        ward
    }

    fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        command
            .query(&mut self.redis)
            .unwrap_or_else(|error| panic!("{error}: {:?}", command.args_iter().count()))
    }

    fn does(&mut self, words: &[impl AsRef<[u8]>]) {
        let (name, words) = words.split_first().unwrap();
        let mut command = cmd(str::from_utf8(name.as_ref()).unwrap());
        for word in words {
            command.arg(word.as_ref());
        }
        let _: redis::Value = self.ask(&command);
    }

    /// A copy of the sound queue, which these commands then damage. `K` is the key, `Q` the queue.
    fn damaged(&mut self, what: String, key_of: &str, commands: &[&[&[u8]]]) {
        let name = format!("q{:04}", self.damage.len());
        for key_name in KEYS {
            self.does(&["COPY", &key("sound", key_name), &key(&name, key_name)]);
        }
        self.does(&["HSET", &format!("{TAG}queues"), &name, ""]);
        let at: String = self.ask(cmd("ZSCORE").arg(format!("{TAG}agenda")).arg("qsound"));
        self.does(&["ZADD", &format!("{TAG}agenda"), &at, &format!("q{name}")]);
        let (whole, member) = (key(&name, key_of), format!("q{name}"));
        for words in commands {
            let words: Vec<&[u8]> = words
                .iter()
                .map(|word| match *word {
                    b"K" => whole.as_bytes(),
                    b"Q" => member.as_bytes(),
                    b"N" => name.as_bytes(),
                    word => word,
                })
                .collect();
            self.does(&words);
        }
        self.damage.insert(name, what);
    }

    /// What a doctor found, and its exit code.
    async fn doctor(&self, words: &[&str]) -> (Option<i32>, Vec<Value>) {
        let output =
            delayline(Some(&self.server), &[&["doctor", "--json"], words].concat()).output().await.unwrap();
        let findings =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), findings)
    }

    /// All keys and what they hold, whatever order the server has it in.
    fn dump(&mut self) -> BTreeMap<String, Vec<String>> {
        let keys: Vec<String> = self.ask(cmd("KEYS").arg("*"));
        let mut all = BTreeMap::new();
        for key in keys {
            let kind: String = self.ask(cmd("TYPE").arg(&key));
            let read = match &*kind {
                "hash" => vec!["HGETALL", &key],
                "zset" => vec!["ZRANGE", &key, "0", "-1", "WITHSCORES"],
                "list" => vec!["LRANGE", &key, "0", "-1"],
                "set" => vec!["SMEMBERS", &key],
                "stream" => vec!["XRANGE", &key, "-", "+"],
                _ => vec!["GET", &key],
            };
            let value: redis::Value = self.ask(cmd(read[0]).arg(&read[1..]));
            let mut parts = match value {
                redis::Value::Array(parts) if kind != "stream" => parts
                    .chunks(if kind == "hash" || kind == "zset" { 2 } else { 1 })
                    .map(|pair| format!("{pair:?}"))
                    .collect(),
                value => vec![format!("{value:?}")],
            };
            parts.sort();
            all.insert(key, parts);
        }
        all
    }

    /// What is wrong is named, a dry run changes nothing, and a repair mends it all.
    async fn is_mended(&mut self) {
        let (code, findings) = self.doctor(&["--thorough"]).await;
        assert_eq!(code, Some(1), "{findings:#?}");
        let named: BTreeSet<String> = findings.iter().filter_map(sick).collect();
        findings.iter().filter(|finding| sick(finding).is_some()).for_each(is_in_the_guide);
        let unnoticed: Vec<_> = self.damage.iter().filter(|(name, _)| !named.contains(*name)).collect();
        assert!(unnoticed.is_empty(), "{unnoticed:#?}");
        let healthy: Vec<_> = named.iter().filter(|name| !self.damage.contains_key(*name)).collect();
        assert!(healthy.is_empty(), "{healthy:?}: {findings:#?}");

        let before = self.dump();
        let (code, findings) = self.doctor(&["--repair", "--dry-run"]).await;
        assert_eq!(code, Some(1), "{findings:#?}");
        assert!(
            findings
                .iter()
                .filter(|finding| sick(finding).is_some())
                .all(|finding| finding["changes"].is_array())
        );
        assert!(before == self.dump(), "a dry run changes something");

        let (code, findings) = self.doctor(&["--repair"]).await;
        assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
        let mended: BTreeSet<String> = findings.iter().filter_map(sick).collect();
        assert!(mended.is_subset(&named), "{mended:?}: {findings:#?}");
        let (code, findings) = self.doctor(&["--thorough"]).await;
        assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
        let (code, findings) = self.doctor(&["--repair"]).await;
        assert!(code == Some(0) && findings.iter().all(|finding| sick(finding).is_none()), "{findings:#?}");
        self.is_delivered().await;
        let (code, findings) = self.doctor(&["--thorough"]).await;
        assert_eq!(code, Some(0), "after all was delivered: {:#?}", wrong(&findings));
    }

    /// Every job is delivered now, or waits for its time, or is held, or is dead for a reason, or is counted as lost.
    async fn is_delivered(&mut self) {
        let client = Client::connect(&self.server.url()).await.unwrap();
        for (name, what) in self.damage.clone() {
            let queue = client.bytes(&*name).unwrap();
            let mut delivered = BTreeSet::new();
            loop {
                let jobs = queue.take().count(100).await.unwrap_or_else(|error| panic!("{what}: {error}"));
                if jobs.is_empty() {
                    break;
                }
                for job in jobs {
                    delivered.insert(job.lease.id.to_string());
                    client.settle(job.lease, Verdict::Ack).await.unwrap();
                }
            }
            let lost = queue.stats(0).await.unwrap().counters.lost;
            let mut gone = 0;
            for id in JOBS {
                if delivered.contains(id) {
                    continue;
                }
                let at = |ward: &mut Ward, place: &str| -> Option<f64> {
                    ward.ask(cmd("ZSCORE").arg(key(&name, place)).arg(id))
                };
                let is_dead = at(self, "dead").is_some();
                if is_dead {
                    let state: Vec<u8> = self.ask(cmd("HGET").arg(key(&name, "state")).arg(id));
                    let state = State::parse(&state).unwrap_or_else(|| panic!("{what}: {id}"));
                    assert!(!state.reason.as_str().is_empty(), "{what}: {id} is dead for no reason");
                } else if at(self, "leased").is_some() {
                    assert_eq!(id, "held", "{what}");
                } else if at(self, "due").is_some() {
                    assert_eq!(id, "delayed", "{what}");
                } else {
                    gone += 1;
                }
            }
            assert!(
                gone <= lost,
                "{what}: {gone} jobs vanished, {lost} are counted; {delivered:?} were delivered"
            );
            assert!(gone == 0 || what.contains("pool"), "{what}: {gone} jobs were lost");
        }
        client.close().await;
    }
}

fn key(queue: &str, key: &str) -> String {
    format!("{TAG}{queue}:{key}")
}

/// The queue that a finding is about.
fn sick(finding: &Value) -> Option<String> {
    let told = finding["check"] == "queues" && finding["status"] != "ok" && finding["status"] != "warning";
    let queue = finding["detail"].as_str()?.strip_prefix("queue ").filter(|_| told)?;
    Some(queue.split_once(':')?.0.to_owned())
}

/// The first column of the guide's table has the words of each finding; `…` stands for any.
#[track_caller]
fn is_in_the_guide(finding: &Value) {
    let detail = finding["detail"].as_str().unwrap();
    let rows = GUIDE.split("**What `doctor` finds in queues**").nth(1).unwrap().lines();
    let firsts = rows.filter_map(|row| row.strip_prefix("| `")?.split(" |").next());
    let mut phrases = firsts.flat_map(|first| first.split('`')).filter(|phrase| phrase.len() > 3);
    let fits = |phrase: &str| phrase.split('…').all(|part| detail.contains(part.trim_start_matches("jobs ")));
    assert!(phrases.any(fits), "the guide does not tell: {detail}");
}

fn wrong(findings: &[Value]) -> Vec<&Value> {
    findings.iter().filter(|finding| finding["status"] == "error").collect()
}

/// The words that make a key one of each type.
fn types() -> [(&'static str, Vec<&'static [u8]>); 6] {
    [
        ("string", vec![b"SET", b"K", b"x"]),
        ("empty string", vec![b"SET", b"K", b""]),
        ("list", vec![b"RPUSH", b"K", b"x", b"ready"]),
        ("set", vec![b"SADD", b"K", b"x", b"ready"]),
        ("stream", vec![b"XADD", b"K", b"*", b"ready", b"x"]),
        ("hash", vec![b"HSET", b"K", b"ready", b"x"]),
    ]
}

#[tokio::test]
async fn a_sound_queue_is_found_sound() {
    let ward = Ward::new().await;
    let (code, findings) = ward.doctor(&["--thorough"]).await;
    assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
    let queues = findings.iter().find(|finding| finding["check"] == "queues").unwrap();
    assert!(queues["detail"].as_str().unwrap().contains("8 of 8 jobs in 1 queues"), "{queues}");
}

#[tokio::test]
async fn a_key_of_any_wrong_type_is_set_aside() {
    let mut ward = Ward::new().await;
    for name in KEYS {
        let is_hash = ["meta", "pool", "state"].contains(&name);
        let sorted: (&str, Vec<&[u8]>) = ("sorted set", vec![b"ZADD", b"K", b"1", b"ready"]);
        for (kind, words) in types().into_iter().chain([sorted]) {
            if kind == if is_hash { "hash" } else { "sorted set" } {
                continue;
            }
            ward.damaged(format!("{name} is a {kind}"), name, &[&[b"UNLINK", b"K"], &words]);
        }
    }
    ward.is_mended().await;
    let aside: Vec<String> = ward.ask(cmd("KEYS").arg("*broken:*"));
    assert_eq!(aside.len(), ward.damage.len(), "{aside:?}");
}

#[tokio::test]
async fn every_field_of_meta_is_mended() {
    let mut ward = Ward::new().await;
    let counters = [
        "published",
        "granted",
        "acked",
        "nacked",
        "snoozed",
        "released",
        "ended",
        "died",
        "requeued",
        "purged",
        "cancelled",
        "expired",
        "forwarded",
        "lost",
        "unreadable",
        "newer",
    ];
    let others = [
        "born",
        "epoch",
        "cfgver",
        "fence",
        "mean",
        "sessions",
        "swept",
        "broken",
        "exp",
        "big",
        "attempts",
        "retention",
        "max_jobs",
        "max_bytes",
    ];
    for field in counters.into_iter().chain(others) {
        for bad in NUMBERS {
            ward.damaged(
                format!("{field} is {bad:?}"),
                "meta",
                &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for field in ["lo", "w", "paused", "expire", "forward", "backoff", "sweep"] {
        for bad in ["x", "-1", "1e9", "\u{e9}\0", "none of these", "1 1 1", "99999999999999999999"] {
            ward.damaged(
                format!("{field} is {bad:?}"),
                "meta",
                &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for (field, bad) in [
        ("fence", "9007199254740993"),
        ("epoch", "1"),
        ("swept", "9999999999999"),
        ("attempts", "1000"),
        ("lo", "9999999999999"),
        ("exp", "7"),
        ("big", "0"),
        ("published", "0"),
        ("acked", "1"),
        ("published", "1000"),
    ] {
        ward.damaged(
            format!("{field} is {bad:?}"),
            "meta",
            &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
        );
    }
    for field in ["born", "published", "lo", "exp", "big", "w"] {
        ward.damaged(format!("{field} is gone"), "meta", &[&[b"HDEL", b"K", field.as_bytes()]]);
    }
    for bad in ["", "x", "1", "1 x y", "-1 1 1 n", "1 1 1 z", "1 99999999999999999999 1 n"] {
        for verb in ["p0", "r0", "c0"] {
            let field = format!("sAAAAAAAAAAA{verb}");
            ward.damaged(
                format!("{field} is {bad:?}"),
                "meta",
                &[&[b"HSET", b"K", field.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    ward.is_mended().await;
}

#[tokio::test]
async fn every_broken_state_is_rebuilt() {
    let mut ward = Ward::new().await;
    let sound = "L17637000000001230002001000030017637000005000";
    let bad = [
        String::new(),
        "x".into(),
        "\u{e9}\0\u{e9}".into(),
        sound[..20].into(),
        sound.replace('L', "Q"),
        format!("{sound}99"),
        format!("{}zz0", &sound[..44]),
        format!("L{}", "x".repeat(60)),
        format!("{}ff{}0", &sound[..29], &sound[31..45]),
        "W".repeat(2000),
    ];
    for id in JOBS {
        for bad in &bad {
            ward.damaged(
                format!("state of {id} is {bad:?}"),
                "state",
                &[&[b"HSET", b"K", id.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for id in ["held", "dead"] {
        ward.damaged(format!("state of {id} is gone"), "state", &[&[b"HDEL", b"K", id.as_bytes()]]);
    }
    ward.damaged("a state of no job".into(), "state", &[&[b"HSET", b"K", b"nobody", b"x"]]);
    ward.is_mended().await;
}

#[tokio::test]
async fn every_broken_record_and_place_is_mended() {
    let mut ward = Ward::new().await;
    for bad in ["", "x", "0120000", "112", "1zz00000000", "199fff000000", "11200002000000", "\u{e9}\0"] {
        for id in ["ready", "delayed", "again", "expiring", "large"] {
            ward.damaged(
                format!("pool has {bad:?} for {id}"),
                "pool",
                &[&[b"HSET", b"K", id.as_bytes(), bad.as_bytes()]],
            );
        }
    }
    for id in JOBS {
        ward.damaged(format!("pool has no {id}"), "pool", &[&[b"HDEL", b"K", id.as_bytes()]]);
        ward.damaged(format!("due has {id} at inf"), "due", &[&[b"ZADD", b"K", b"inf", id.as_bytes()]]);
        for place in ["due", "leased", "dead"] {
            ward.damaged(
                format!("{place} lacks {id}"),
                place,
                &[&[b"ZADD", b"K", b"1", id.as_bytes()], &[b"ZREM", b"K", id.as_bytes()]],
            );
        }
    }
    for (place, id) in
        [("due", "ready"), ("leased", "held"), ("dead", "dead"), ("exp", "expiring"), ("big", "large")]
    {
        for score in ["inf", "-inf", "-1", "1.5", "1e300", "99999999999999", "0.1"] {
            ward.damaged(
                format!("{place} has {id} at {score}"),
                place,
                &[&[b"ZADD", b"K", score.as_bytes(), id.as_bytes()]],
            );
        }
        for stranger in ["", "no id", "\u{e9}", "a/b", "nobody", &"x".repeat(200)] {
            ward.damaged(
                format!("{place} has {stranger:?}"),
                place,
                &[&[b"ZADD", b"K", b"1", stranger.as_bytes()]],
            );
        }
    }
    for stranger in ["", "no id", "\u{e9}", "a/b", "#", &"x".repeat(200)] {
        ward.damaged(
            format!("pool has {stranger:?}"),
            "pool",
            &[&[b"HSET", b"K", stranger.as_bytes(), b"112000000000x"]],
        );
        ward.damaged(
            format!("waiting has {stranger:?}"),
            "waiting",
            &[&[b"ZADD", b"K", b"1", stranger.as_bytes()]],
        );
    }
    for score in ["inf", "-inf", "-1", "1.5", "1e300", "99999999999999"] {
        ward.damaged(
            format!("waiting since {score}"),
            "waiting",
            &[&[b"ZADD", b"K", score.as_bytes(), b"AAAAAAAAAAB"]],
        );
    }
    ward.damage.retain(|_, what| !is_sound_as_it_is(what));
    ward.is_mended().await;
}

/// A place that lacks a job which is elsewhere.
fn is_sound_as_it_is(what: &str) -> bool {
    let at_home = [
        ("due", &["again", "ready", "large", "expiring", "delayed", "other"][..]),
        ("leased", &["held"]),
        ("dead", &["dead"]),
    ];
    let lacks = what.split_once(" lacks ");
    lacks.is_some_and(|(place, id)| !at_home.iter().any(|(home, ids)| *home == place && ids.contains(&id)))
}

#[tokio::test]
async fn a_queue_that_the_index_or_the_agenda_lost_is_found_again() {
    let mut ward = Ward::new().await;
    let (agenda, queues) = (format!("{TAG}agenda"), format!("{TAG}queues"));
    ward.damaged("not in the index".into(), "meta", &[&[b"HDEL", queues.as_bytes(), b"N"]]);
    ward.damaged("not on the agenda".into(), "meta", &[&[b"ZREM", agenda.as_bytes(), b"Q"]]);
    for late in ["inf", "9999999999998", "1e300"] {
        ward.damaged(
            format!("on the agenda at {late}"),
            "meta",
            &[&[b"ZADD", agenda.as_bytes(), late.as_bytes(), b"Q"]],
        );
    }
    for all in [&["HDEL", &*queues][..], &["ZREM", &*agenda]] {
        ward.damaged(
            format!("{all:?} beside a meta without born"),
            "meta",
            &[
                &[b"HDEL", b"K", b"born"],
                &[all[0].as_bytes(), all[1].as_bytes(), if all[0] == "HDEL" { b"N" } else { b"Q" }],
            ],
        );
    }
    ward.is_mended().await;
}

#[tokio::test]
async fn what_a_shard_keeps_is_mended() {
    let mut ward = Ward::new().await;
    let sorted: (&str, Vec<&[u8]>) = ("sorted set", vec![b"ZADD", b"K", b"1", b"x"]);
    let mut bad: Vec<(String, Vec<Vec<Vec<u8>>>)> = Vec::new();
    let own = |words: &[&[u8]], key: &str| -> Vec<Vec<u8>> {
        words.iter().map(|word| if *word == b"K" { key.as_bytes().to_vec() } else { word.to_vec() }).collect()
    };
    for (name, ought) in [("agenda", "sorted set"), ("queues", "hash"), ("lease", "string")] {
        let key = format!("{TAG}{name}");
        for (kind, words) in types().into_iter().chain([sorted.clone()]) {
            if !kind.contains(ought) {
                bad.push((
                    format!("{name} is a {kind}"),
                    vec![own(&[b"UNLINK", b"K"], &key), own(&words, &key)],
                ));
            }
        }
    }
    for text in [
        "",
        "x",
        "AAAAAAAAAAA",
        "AAAAAAAAAAA x",
        "AAAAAAAAAAA 9999999999999",
        " 1",
        "AAAAAAAAAAA -1",
        "\u{e9}\0 1",
    ] {
        bad.push((
            format!("the lease is {text:?}"),
            vec![own(&[b"SET", b"K", text.as_bytes()], &format!("{TAG}lease"))],
        ));
    }
    for member in ["", "q", "x", "q#", "q\u{e9}", "qa b"] {
        bad.push((
            format!("the agenda has {member:?}"),
            vec![own(&[b"ZADD", b"K", b"1", member.as_bytes()], &format!("{TAG}agenda"))],
        ));
        bad.push((
            format!("the index has {member:?}"),
            vec![own(&[b"HSET", b"K", format!("{member} ").as_bytes(), b""], &format!("{TAG}queues"))],
        ));
    }
    for score in ["inf", "-inf", "-1", "1.5", "1e300", "99999999999999"] {
        bad.push((
            format!("the agenda has sound at {score}"),
            vec![own(&[b"ZADD", b"K", score.as_bytes(), b"qsound"], &format!("{TAG}agenda"))],
        ));
    }
    for (what, commands) in bad {
        for words in &commands {
            ward.does(words);
        }
        let (code, findings) = ward.doctor(&["--repair"]).await;
        assert_eq!(code, Some(0), "{what}: {:#?}", wrong(&findings));
        assert!(findings.iter().any(|finding| finding["status"] == "mended"), "{what}: {findings:#?}");
        let (code, findings) = ward.doctor(&[]).await;
        assert_eq!(code, Some(0), "{what}: {:#?}", wrong(&findings));
    }
}

#[tokio::test]
async fn the_config_of_a_deployment_is_told_from_its_keys() {
    let server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "no"]).await;
    let client = Client::builder().shards(4).connect(&server.url()).await.unwrap();
    for i in 0..20 {
        client.bytes(format!("queue-{i}")).unwrap().publish_bytes("x").await.unwrap();
    }
    client.close().await;
    let redis = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut ward = Ward { server, redis, damage: BTreeMap::new() };
    let config = "{dl}:config";
    let fixed: BTreeMap<String, String> = ward.ask(cmd("HGETALL").arg(config));
    let mut bad: Vec<(String, Vec<Vec<u8>>)> = vec![("gone".into(), vec![])];
    for field in ["shards", "layout"] {
        for value in ["", "x", "0", "-1", "1.5", "99999", "\u{e9}"]
            .into_iter()
            .filter(|value| field == "shards" || *value != "99999")
        {
            bad.push((
                format!("{field} is {value:?}"),
                ["HSET", config, field, value].map(|word| word.as_bytes().to_vec()).into(),
            ));
        }
        bad.push((
            format!("{field} is gone"),
            ["HDEL", config, field].map(|word| word.as_bytes().to_vec()).into(),
        ));
    }
    for (kind, words) in types().into_iter().filter(|(kind, _)| *kind != "hash") {
        let words = words
            .into_iter()
            .map(|word| if word == b"K" { config.as_bytes() } else { word }.to_vec())
            .collect();
        bad.push((format!("it is a {kind}"), words));
    }
    for (what, words) in bad {
        if words.first().is_none_or(|name| !name.starts_with(b"H")) {
            ward.does(&["UNLINK", config]);
        }
        if !words.is_empty() {
            ward.does(&words);
        }
        let before = ward.dump();
        let (code, findings) = ward.doctor(&[]).await;
        assert_eq!(code, Some(1), "{what}: {findings:#?}");
        assert!(
            wrong(&findings)
                .iter()
                .any(|finding| finding["detail"].as_str().unwrap().starts_with("deployment")),
            "{what}: {findings:#?}"
        );
        assert!(before == ward.dump(), "{what}: a doctor that only looks fixes another number of shards");
        let (code, findings) = ward.doctor(&["--repair"]).await;
        assert_eq!(code, Some(0), "{what}: {:#?}", wrong(&findings));
        assert_eq!(ward.ask::<BTreeMap<String, String>>(cmd("HGETALL").arg(config)), fixed, "{what}");
    }
}

#[tokio::test]
async fn what_a_killed_doctor_left_is_removed() {
    let mut ward = Ward::new().await;
    let name = "doctor-0123456789abcdef";
    for kept in KEYS {
        ward.does(&["COPY", &key("sound", kept), &key(name, kept)]);
    }
    ward.does(&["HSET", &key(name, "meta"), "born", "1763700000000000"]);
    ward.does(&["HSET", &format!("{TAG}queues"), name, ""]);
    let (code, findings) = ward.doctor(&[]).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    let (code, findings) = ward.doctor(&["--repair"]).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    assert!(ward.dump().keys().all(|key| !key.contains("doctor-")));
    let (code, findings) = ward.doctor(&[]).await;
    assert_eq!(code, Some(0), "{findings:#?}");
}

/// How often each command was called, within scripts too.
fn calls(ward: &mut Ward) -> u64 {
    let stats: String = ward.ask(cmd("INFO").arg("commandstats"));
    let counts =
        stats.lines().filter_map(|line| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok());
    counts.sum()
}

#[tokio::test]
async fn a_big_deployment_is_looked_at_by_a_bounded_number_of_calls() {
    const QUEUES: u64 = 20;
    const FILL: &str = "for i = 1, 10000 do
        redis.call('HSET', KEYS[1], 'job' .. i, '112000000000' .. string.rep('x', 90))
        redis.call('ZADD', KEYS[2], 1763700000000 + i, 'job' .. i)
    end
    redis.call('HSET', KEYS[3], 'published', 10008)";
    let mut ward = Ward::new().await;
    let keys = ["pool", "due", "meta"].map(|name| key("sound", name));
    ward.ask::<()>(cmd("EVAL").arg(FILL).arg(3).arg(&keys));
    for _ in 0..QUEUES {
        ward.damaged("nothing".into(), "meta", &[]);
    }
    let before = calls(&mut ward);
    let (code, findings) = ward.doctor(&[]).await;
    assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
    let asked = calls(&mut ward) - before;
    println!("{asked} calls for {QUEUES} queues of 10,000 jobs");
    assert!(asked < QUEUES * 2_000, "{asked} calls");
    let told = findings.iter().find(|finding| finding["check"] == "queues").unwrap();
    assert!(told["detail"].as_str().unwrap().contains(" of 210168 jobs in 21 queues"), "{told}");
    assert!(told["detail"].as_str().unwrap().contains("a sample"), "{told}");
}

/// Publishes jobs of all kinds and serves them, until it is told to stop. What fails while the queue is broken is left.
async fn busy(url: String, stop: tokio::sync::watch::Receiver<bool>) -> u64 {
    let client = Client::connect(&url).await.unwrap();
    let queue = client.bytes("busy").unwrap();
    let mut done = 0;
    while !*stop.borrow() {
        for i in 0..20_u64 {
            let body = vec![b'x'; if i == 0 { 9000 } else { 10 }];
            let publish = queue.publish_bytes(body);
            let publish = if i % 3 == 0 { publish.ttl(Duration::from_secs(60)) } else { publish };
            let _ = publish.delay(Duration::from_millis(i % 4)).await;
        }
        for (i, job) in queue.take().count(20).await.unwrap_or_default().into_iter().enumerate() {
            let verdict = match i % 5 {
                0 => Verdict::Nack { after_ms: Some(5), reason: Reason::new("again") },
                1 => Verdict::Bury { reason: Reason::new("enough") },
                2 => Verdict::Snooze { after_ms: 3 },
                _ => Verdict::Ack,
            };
            done += u64::from(client.settle(job.lease, verdict).await.is_ok());
        }
    }
    client.close().await;
    done
}

#[tokio::test]
async fn a_queue_that_is_busy_is_found_sound_and_is_mended_meanwhile() {
    let mut ward = Ward::new().await;
    let (told, stop) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(busy(ward.server.url(), stop));
    crate::eventually("it works", async || {
        let mut redis = redis::Client::open(ward.server.url()).unwrap().get_connection().unwrap();
        let died: Option<u64> = cmd("ZCARD").arg(key("busy", "dead")).query(&mut redis).unwrap();
        died.filter(|died| *died > 20)
    })
    .await;
    for _ in 0..5 {
        let (code, findings) = ward.doctor(&["--thorough"]).await;
        assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
    }
    for (field, bad) in [("acked", "x"), ("lo", "x"), ("exp", "-1"), ("published", "1")] {
        ward.does(&["HSET", &key("busy", "meta"), field, bad]);
    }
    let (code, findings) = ward.doctor(&["--repair"]).await;
    told.send(true).unwrap();
    let done = working.await.unwrap();
    assert!(code == Some(0) && done > 0, "{:#?}", wrong(&findings));
    let (code, findings) = ward.doctor(&["--thorough"]).await;
    assert_eq!(code, Some(0), "{:#?}", wrong(&findings));
}
