use std::collections::BTreeMap;
use std::fmt::Display;

use bytes::Bytes;
use delayline_core::{
    CancelOutcome, JobId, Keyspace, PublishOutcome, QueueConfig, QueueName, RescheduleOutcome,
};

use crate::destination::Destination;
use crate::meta::{Lo, Meta};
use crate::queue::Queue;
use crate::session::{Answer, Past};
use crate::store::Store;
use crate::zset::Zset;

/// What a key holds, as a Redis would hold it after the same commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dumped {
    /// A hash: values by field.
    Hash(BTreeMap<Bytes, Bytes>),
    /// A sorted set: members and scores in order.
    Zset(Vec<(Bytes, u64)>),
    /// A string.
    Text(Bytes),
    /// A list, head first.
    List(Vec<Bytes>),
    /// A stream: ids and fields in order. The ids are the store's own: only their order is Redis's.
    Stream(Vec<(String, Vec<(Bytes, Bytes)>)>),
}

impl Store {
    /// Everything in the store, by key. A key that would hold nothing is not there.
    pub fn dump(&self, keys: &Keyspace) -> BTreeMap<String, Dumped> {
        let mut dump = self.dump_without_meta(keys);
        for (name, queue) in self.parts.iter().flat_map(|part| &part.queues) {
            dump.hash(&keys.queue_keys(name)[2], meta_fields(&queue.meta));
        }
        dump.0
    }

    /// Everything but what queues count and remember, which may be thousands of sessions.
    pub fn dump_of_jobs(&self, keys: &Keyspace) -> BTreeMap<String, Dumped> {
        self.dump_without_meta(keys).0
    }

    fn dump_without_meta(&self, keys: &Keyspace) -> Dump {
        let mut dump = Dump::default();
        if let Some((layout, shards, born)) = self.opened {
            let mut fields = Fields::default();
            fields.put("layout", format!("{layout}.0"));
            fields.put("shards", shards.count());
            fields.put("born", born);
            dump.hash(keys.config(), fields);
        }
        for (shard, part) in keys.shards().iter().zip(&self.parts) {
            let [agenda, names, lease] = &keys.shard_keys(shard);
            dump.zset(agenda, part.agenda.iter().map(|(name, at)| (format!("q{name}"), at.0)));
            dump.hash(names, part.names.iter().map(|name| (name.to_string(), "")).collect());
            if let Some((engine, until)) = part.lease {
                dump.0.insert(lease.clone(), Dumped::Text(format!("{engine} {until}").into()));
            }
            for (name, queue) in &part.queues {
                dump.queue(keys, name, queue);
            }
        }
        for (key, destination) in &self.destinations {
            dump.0.insert(key.clone(), destination.dumped());
        }
        dump
    }
}

#[derive(Default)]
struct Dump(BTreeMap<String, Dumped>);

impl Dump {
    fn queue(&mut self, keys: &Keyspace, name: &QueueName, queue: &Queue) {
        let [_, _, _, pool, due, leased, state, dead, exp, waiting, big] = &keys.queue_keys(name);
        self.hash(pool, queue.pool.iter().map(|(id, record)| (id.to_string(), record.clone())).collect());
        self.jobs(due, &queue.due);
        self.jobs(leased, &queue.leased);
        let broken = queue.broken.iter().map(|(id, text)| (id.to_string(), text.clone()));
        let sound = queue.state.iter().map(|(id, state)| (id.to_string(), state.to_string().into()));
        self.hash(state, sound.chain(broken).collect());
        self.jobs(dead, &queue.dead);
        self.jobs(exp, &queue.exp);
        self.zset(waiting, queue.waiting.iter().map(|(engine, at)| (engine.to_string(), at.0)));
        self.zset(big, queue.big.iter().map(|(id, len)| (id.to_string(), len as u64)));
    }

    fn jobs(&mut self, key: &str, zset: &Zset<JobId>) {
        self.zset(key, zset.iter().map(|(id, at)| (id.to_string(), at.0)));
    }

    fn zset(&mut self, key: &str, members: impl Iterator<Item = (String, u64)>) {
        let members: Vec<(Bytes, u64)> = members.map(|(member, score)| (member.into(), score)).collect();
        if !members.is_empty() {
            self.0.insert(key.to_owned(), Dumped::Zset(members));
        }
    }

    fn hash(&mut self, key: &str, fields: Fields) {
        if !fields.0.is_empty() {
            self.0.insert(key.to_owned(), Dumped::Hash(fields.0));
        }
    }
}

#[derive(Default)]
struct Fields(BTreeMap<Bytes, Bytes>);

impl Fields {
    fn put(&mut self, name: impl Display, value: impl Display) {
        self.0.insert(name.to_string().into(), value.to_string().into());
    }

    fn maybe(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
}

impl<V: Into<Bytes>> FromIterator<(String, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(fields: I) -> Fields {
        Fields(fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

fn meta_fields(meta: &Meta) -> Fields {
    let mut fields = Fields::default();
    fields.maybe("born", meta.born);
    fields.maybe("cfgver", (meta.cfgver > 0).then_some(meta.cfgver));
    config_fields(&meta.config, &mut fields);
    fields.maybe("paused", meta.paused.then_some(1));
    fields.maybe("gate", meta.gate.as_ref());
    fields.maybe("forward_error", meta.forward_error.as_ref());
    fields.maybe("fence", meta.fence);
    match meta.lo {
        Lo::Unset => {}
        Lo::Empty => fields.put("lo", ""),
        Lo::At(at) => fields.put("lo", at),
    }
    fields.maybe("w", meta.waited.then_some(1));
    fields.maybe("mean", meta.mean);
    fields.maybe("exp", meta.exp);
    fields.maybe("big", meta.big);
    for (name, count) in meta.counters.named() {
        fields.maybe(name, (count > 0).then_some(count));
    }
    for (lane, past) in &meta.lanes {
        fields.put(lane, past_text(past));
    }
    fields.maybe("sessions", meta.sessions);
    if let Some((at, from)) = &meta.sweep {
        fields.put("sweep", format_args!("{at} {}", from.map_or(String::new(), |lane| lane.to_string())));
    }
    fields
}

fn config_fields(config: &QueueConfig, fields: &mut Fields) {
    fields.maybe("attempts", config.attempts);
    fields.maybe("backoff", config.backoff.as_ref());
    fields.maybe("retention", config.retention_ms);
    fields.maybe("expire", config.bury_expired.then_some("dead"));
    fields.maybe("max_jobs", config.max_jobs);
    fields.maybe("max_bytes", config.max_bytes);
    fields.maybe("forward", config.forward.as_ref());
    fields.maybe("push", config.push.as_ref());
}

fn past_text(past: &Past) -> String {
    let answer = match &past.answer {
        Answer::Published { since, outcomes } => {
            let letters: String = outcomes.iter().map(|outcome| published(*outcome)).collect();
            format!("{since} {letters}")
        }
        Answer::Granted { fence, lease_end, ids } => {
            let ids: Vec<&str> = ids.iter().map(JobId::as_str).collect();
            format!("{fence} {lease_end} {}", ids.join(" "))
        }
        Answer::Cancelled(outcomes) => outcomes.iter().map(|outcome| cancelled(*outcome)).collect(),
        Answer::Rescheduled(outcomes) => {
            let letters: String = outcomes.iter().map(|(outcome, _)| rescheduled(*outcome)).collect();
            let dues = outcomes.iter().map(|(_, due)| i128::from(due.0));
            let before = std::iter::once(0).chain(dues.clone());
            let steps: Vec<String> =
                dues.zip(before).map(|(due, before)| (due - before).to_string()).collect();
            format!("{letters} {}", steps.join(" "))
        }
    };
    format!("{} {} {answer}", past.sequence, past.keep_until)
}

fn published(outcome: PublishOutcome) -> char {
    match outcome {
        PublishOutcome::New => 'n',
        PublishOutcome::Replaced => 'r',
        PublishOutcome::Duplicate => 'd',
        PublishOutcome::Full => 'f',
    }
}

fn cancelled(outcome: CancelOutcome) -> char {
    match outcome {
        CancelOutcome::Cancelled => 'o',
        CancelOutcome::Leased => 'l',
        CancelOutcome::Dead => 'd',
        CancelOutcome::Gone => 'g',
    }
}

fn rescheduled(outcome: RescheduleOutcome) -> char {
    match outcome {
        RescheduleOutcome::Moved => 'o',
        RescheduleOutcome::Leased => 'l',
        RescheduleOutcome::Dead => 'd',
        RescheduleOutcome::Gone => 'g',
        RescheduleOutcome::Expires => 'x',
    }
}

impl Destination {
    fn dumped(&self) -> Dumped {
        match self {
            Destination::List(bodies) => Dumped::List(bodies.clone()),
            Destination::Stream(entries) => {
                let entries = entries.iter();
                Dumped::Stream(
                    entries
                        .map(|entry| (format!("{}-{}", entry.id.0, entry.id.1), entry.fields.clone()))
                        .collect(),
                )
            }
        }
    }
}
