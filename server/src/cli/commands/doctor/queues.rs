//! What is in the queues, looked at by plain reads in pages: no command takes long, whatever there is.

mod config;
mod fault;
mod field;
mod job;
mod judge;
mod mend;
mod names;
mod queue;
mod session;
mod shard;

use std::collections::BTreeSet;

use delayline_core::{Keyspace, Prefix, UnixMicros};
use delayline_tokio::QueueName;
use delayline_tokio::redis::{Cmd, ToRedisArgs, cmd};

use self::config::Config;
use self::judge::Judge;
pub(super) use self::judge::Mode;
use self::names::Names;
use self::queue::{Patient, Seized};
use self::shard::Ring;
use super::finding::Finding;
use super::wire::{self, Wire};

const CHECK: &str = "queues";
/// How much is looked at unless all is: jobs and sessions of a queue, queues of a shard, keys of the Redis.
const SAMPLE: u64 = 500;
const QUEUES: usize = 1_000;
const KEYS: u64 = 100_000;
/// Repairs are looked at again: what one of them brings to light is mended by the next round.
const ROUNDS: usize = 3;
const LAST_TIME: u64 = 9_999_999_999_999;

/// What HSCAN and ZSCAN answer: the next cursor, then names and values.
type Pairs = (u64, Vec<(Vec<u8>, Vec<u8>)>);

/// Looks into the queues of a deployment.
pub(super) struct Survey {
    judge: Judge,
    prefix: Prefix,
    thorough: bool,
    keys: Option<Keyspace>,
    names: Names,
    /// The queues that the shards name.
    queues: BTreeSet<QueueName>,
    /// Whether there are more than were looked at.
    unseen: bool,
    /// Why it cannot look on.
    denied: Option<String>,
}

impl Survey {
    /// Begins with what fixes the number of shards: a client that connects would fix another one.
    pub(super) async fn begin(wire: &mut Wire, prefix: &Prefix, mode: Mode, thorough: bool) -> Survey {
        let mut survey = Survey {
            judge: Judge::new(mode),
            prefix: prefix.clone(),
            thorough,
            keys: None,
            names: Names::default(),
            queues: BTreeSet::new(),
            unseen: false,
            denied: None,
        };
        if let Err(why) = survey.open(wire).await {
            survey.denied = Some(why);
        }
        survey
    }

    async fn open(&mut self, wire: &mut Wire) -> Result<(), String> {
        let limit = if self.thorough { u64::MAX } else { KEYS };
        self.names = Names::scan(wire, &self.prefix, limit).await?;
        let now = wire.now().await?;
        let config = config::examine(wire, &mut self.judge, &self.prefix, &self.names, now).await?;
        let Config::Fixed(shards) = config else { return Ok(()) };
        let keys = Keyspace::new(&self.prefix, shards);
        self.queues = self.names.queues().cloned().collect();
        let limit = if self.thorough { usize::MAX } else { QUEUES };
        for shard in shards.iter() {
            let (named, more) = Ring { keys: &keys, shard, limit }.examine(wire, &mut self.judge).await?;
            self.queues.extend(named);
            self.unseen |= more;
        }
        self.keys = Some(keys);
        Ok(())
    }

    /// Why a client had better not connect.
    pub(super) fn forbids_clients(&self) -> Option<&'static str> {
        (self.judge.left() > 0).then_some("keys that all queues share are broken")
    }

    /// Looks at each queue.
    pub(super) async fn finish(mut self, wire: &mut Wire) -> Vec<Finding> {
        let mut seized = Seized::default();
        if let Some(keys) = self.keys.take()
            && let Err(why) = self.walk(wire, &keys, &mut seized).await
        {
            self.denied = Some(why);
        }
        self.told(&seized)
    }

    async fn walk(&mut self, wire: &mut Wire, keys: &Keyspace, seized: &mut Seized) -> Result<(), String> {
        let (limit, sample) = if self.thorough { (usize::MAX, u64::MAX) } else { (QUEUES, SAMPLE) };
        self.unseen |= self.queues.len() > limit;
        for name in self.queues.iter().take(limit) {
            let patient = Patient::new(name, keys, sample);
            for round in 0..ROUNDS {
                let mut again = Seized::default();
                let changed = patient.examine(wire, &mut self.judge, &mut again).await?;
                if round == 0 {
                    seized.add(&again);
                }
                if !changed {
                    break;
                }
            }
        }
        Ok(())
    }

    fn told(self, seized: &Seized) -> Vec<Finding> {
        let mut all = Vec::new();
        if let Some(why) = &self.denied {
            let mend = if wire::is_denied(why) {
                "allow this user what only the doctor needs: +scan +hscan +zscan +hlen +hexists +exists +type +rename +dbsize"
            } else {
                "run it again; if it says the same, mend what the other checks found"
            };
            all.push(Finding::warning(CHECK, format!("could not be looked into: {why}"), mend));
        } else {
            all.push(Finding::ok(CHECK, self.looked_at(seized)));
        }
        if let Some(first) = self.names.aside.first() {
            let mend = "look at what is in them, then UNLINK them: delayline does not read them";
            let detail =
                format!("keys of a wrong type were set aside: {}, as {first}", self.names.aside.len());
            all.push(Finding::warning(CHECK, detail, mend));
        }
        all.extend(self.judge.findings());
        all
    }

    fn looked_at(&self, seized: &Seized) -> String {
        let Seized { queues, jobs, of_jobs, sessions, ended } = seized;
        let sample = self.unseen || self.names.unseen > 0 || jobs < of_jobs;
        let sample = if sample { ": a sample, --thorough looks at all" } else { "" };
        format!(
            "looked at {jobs} of {of_jobs} jobs in {queues} queues, {sessions} sessions ({ended} ended){sample}"
        )
    }
}

/// A call of one of the scripts here, on these keys.
fn script(source: &str, keys: &[String], arguments: &[impl ToRedisArgs]) -> Cmd {
    let mut eval = cmd("EVAL");
    eval.arg(source).arg(keys.len()).arg(keys).arg(arguments);
    eval
}

/// A number as scripts write it, of those that they can hold exactly.
fn whole(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number < 1 << 53 && number.to_string() == text).then_some(number)
}

/// A score that is a time: a whole number of milliseconds, of at most 13 digits.
fn time(score: &[u8]) -> Option<u64> {
    whole(std::str::from_utf8(score).ok()?).filter(|at| *at <= LAST_TIME)
}

/// The name under which a key of the shard is kept out of the way, as the scripts have it.
fn aside(tag: &str, key: &str, now: UnixMicros) -> String {
    format!("{tag}broken:{}:{}", now.0, key.strip_prefix(tag).unwrap_or(key))
}
