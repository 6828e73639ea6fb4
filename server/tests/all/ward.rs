use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use delayline_tokio::redis::{self, Cmd, Connection, FromRedisValue, cmd};
use delayline_tokio::{Client, QueueConfig, Reason, State, Verdict};
use serde_json::Value;

use crate::program::delayline;
use crate::redis_server::RedisServer;

const GUIDE: &str = include_str!("../../../docs/production.md");
/// What all keys of the only shard begin with.
pub(crate) const TAG: &str = "{dl:0.0}:";
/// The keys of a queue.
pub(crate) const KEYS: [&str; 9] =
    ["meta", "pool", "due", "leased", "state", "dead", "exp", "waiting", "big"];
/// The jobs of the queue that all others are copies of. All but the dead and the delayed can be delivered.
pub(crate) const JOBS: [&str; 8] =
    ["held", "dead", "again", "ready", "large", "expiring", "delayed", "other"];

/// A Redis whose queues are sick, and doctors who look at it.
pub(crate) struct Ward {
    pub(crate) server: RedisServer,
    pub(crate) redis: Connection,
    /// What was done to which queue.
    pub(crate) damage: BTreeMap<String, String>,
}

impl Ward {
    /// A Redis with one sound queue, `sound`, which has a job in every place.
    pub(crate) async fn new() -> Ward {
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

    pub(crate) fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        command
            .query(&mut self.redis)
            .unwrap_or_else(|error| panic!("{error}: {:?}", command.args_iter().count()))
    }

    pub(crate) fn does(&mut self, words: &[impl AsRef<[u8]>]) {
        let (name, words) = words.split_first().unwrap();
        let mut command = cmd(str::from_utf8(name.as_ref()).unwrap());
        for word in words {
            command.arg(word.as_ref());
        }
        let _: redis::Value = self.ask(&command);
    }

    /// A copy of the sound queue, which these commands then damage. `K` is the key, `Q` the queue.
    pub(crate) fn damaged(&mut self, what: String, key_of: &str, commands: &[&[&[u8]]]) {
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
    pub(crate) async fn doctor(&self, words: &[&str]) -> (Option<i32>, Vec<Value>) {
        let output =
            delayline(Some(&self.server), &[&["doctor", "--json"], words].concat()).output().await.unwrap();
        let findings =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), findings)
    }

    /// All keys and what they hold, whatever order the server has it in.
    pub(crate) fn dump(&mut self) -> BTreeMap<String, Vec<String>> {
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
    pub(crate) async fn is_mended(&mut self) {
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

pub(crate) fn key(queue: &str, key: &str) -> String {
    format!("{TAG}{queue}:{key}")
}

/// The queue that a finding is about.
pub(crate) fn sick(finding: &Value) -> Option<String> {
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

pub(crate) fn wrong(findings: &[Value]) -> Vec<&Value> {
    findings.iter().filter(|finding| finding["status"] == "error").collect()
}

/// The words that make a key one of each type.
pub(crate) fn types() -> [(&'static str, Vec<&'static [u8]>); 6] {
    [
        ("string", vec![b"SET", b"K", b"x"]),
        ("empty string", vec![b"SET", b"K", b""]),
        ("list", vec![b"RPUSH", b"K", b"x", b"ready"]),
        ("set", vec![b"SADD", b"K", b"x", b"ready"]),
        ("stream", vec![b"XADD", b"K", b"*", b"ready", b"x"]),
        ("hash", vec![b"HSET", b"K", b"ready", b"x"]),
    ]
}
