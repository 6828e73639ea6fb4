//! What must be true of a queue's keys whatever was done to it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use delayline_core::{Keyspace, QueueName, UnixMs};
use delayline_tests::{Contents, Dump};

/// The keys of one queue, and when the agenda has it.
struct Queue<'a> {
    at: Option<u64>,
    meta: BTreeMap<Bytes, Bytes>,
    pool: BTreeSet<&'a Bytes>,
    state: BTreeSet<&'a Bytes>,
    due: BTreeMap<&'a Bytes, u64>,
    leased: BTreeMap<&'a Bytes, u64>,
    dead: BTreeMap<&'a Bytes, u64>,
    exp: BTreeMap<&'a Bytes, u64>,
    big: BTreeMap<&'a Bytes, u64>,
    waiting: BTreeMap<&'a Bytes, u64>,
}

/// What is wrong, or nothing. `steady` says that the clock never went back: if it did, what was due may be ahead again,
/// and only the poll finds it.
pub(crate) fn broken(
    dump: &Dump,
    keys: &Keyspace,
    name: &QueueName,
    now: UnixMs,
    steady: bool,
) -> Option<String> {
    let queue = Queue::new(dump, keys, name);
    let wrong = queue.places().or_else(|| queue.counts()).or_else(|| queue.bounds(now.0, steady));
    wrong.map(|what| format!("{name}: {what}"))
}

impl<'a> Queue<'a> {
    fn new(dump: &'a Dump, keys: &Keyspace, name: &QueueName) -> Queue<'a> {
        let names = keys.queue_keys(name);
        let [agenda, _, meta, pool, due, leased, state, dead, exp, waiting, big] =
            names.each_ref().map(|key| dump.get(key));
        let member = Bytes::from(format!("q{name}"));
        Queue {
            at: scores(agenda).get(&member).copied(),
            meta: fields(meta).map(|(field, value)| (field.clone(), value.clone())).collect(),
            pool: fields(pool).map(|(id, _)| id).collect(),
            state: fields(state).map(|(id, _)| id).collect(),
            due: scores(due),
            leased: scores(leased),
            dead: scores(dead),
            exp: scores(exp),
            big: scores(big),
            waiting: scores(waiting),
        }
    }

    fn number(&self, field: &str) -> u64 {
        self.text(field).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.meta.get(field.as_bytes()).and_then(|text| std::str::from_utf8(text).ok())
    }

    /// Every job is in one place, and has what that place needs.
    fn places(&self) -> Option<String> {
        let all: Vec<&Bytes> =
            self.due.keys().chain(self.leased.keys()).chain(self.dead.keys()).copied().collect();
        let ids: BTreeSet<&Bytes> = all.iter().copied().collect();
        let lives = |id: &&Bytes| self.due.contains_key(id) || self.leased.contains_key(id);
        let stateless = self.leased.keys().chain(self.dead.keys()).find(|id| !self.state.contains(*id));
        let checks = [
            (all.len() == ids.len(), "a job is in two places".to_string()),
            (stateless.is_none(), format!("{stateless:?} has no state")),
            (self.pool.is_subset(&ids), "a record belongs to no job".to_string()),
            (self.state.is_subset(&ids), "a state belongs to no job".to_string()),
            (self.exp.keys().all(lives), "an expiry belongs to no living job".to_string()),
            (self.big.keys().all(|id| ids.contains(id)), "a size belongs to no job".to_string()),
        ];
        checks.into_iter().find_map(|(holds, what)| (!holds).then_some(what))
    }

    /// The counters agree with the places.
    fn counts(&self) -> Option<String> {
        let ended = ["acked", "cancelled", "expired", "purged", "forwarded", "lost"];
        let counted = self.number("published").wrapping_sub(ended.iter().map(|name| self.number(name)).sum());
        let jobs = self.due.len() + self.leased.len() + self.dead.len();
        let checks = [
            ("jobs", counted, jobs),
            ("exp", self.number("exp"), self.exp.len()),
            ("big", self.number("big"), self.big.len()),
        ];
        let wrong = checks.into_iter().find(|(_, counted, held)| *counted != *held as u64);
        wrong.map(|(name, counted, held)| format!("{name} are counted as {counted} and are {held}"))
    }

    /// Nothing still to come happens before the agenda has it, nor a lease ends before `lo`; who waits is known to wait.
    fn bounds(&self, now: u64, steady: bool) -> Option<String> {
        let first = |scores: &BTreeMap<&Bytes, u64>| scores.values().min().copied();
        let retention = Some(self.number("retention")).filter(|ms| *ms > 0);
        let events = [
            self.due.values().filter(|due| **due > now).min().copied(),
            first(&self.leased),
            first(&self.exp),
            retention.and_then(|ms| Some(first(&self.dead)? + ms)),
        ];
        let event = events.into_iter().flatten().min();
        let lo = self.text("lo").and_then(|text| text.parse::<u64>().ok());
        let late = event.is_some_and(|event| self.at.is_none_or(|at| at > event.max(now)));
        let forgotten = first(&self.leased).is_some_and(|end| lo.is_none_or(|lo| lo > end));
        let checks = [
            (!late || !steady, format!("the agenda has {:?} where {event:?} is next", self.at)),
            (!forgotten, format!("lo is {lo:?} and a lease ends at {:?}", first(&self.leased))),
            (self.waiting.is_empty() || self.text("w") == Some("1"), "waiting without w".to_string()),
        ];
        checks.into_iter().find_map(|(holds, what)| (!holds).then_some(what))
    }
}

fn fields(contents: Option<&Contents>) -> impl Iterator<Item = (&Bytes, &Bytes)> {
    let fields = contents.and_then(|contents| match contents {
        Contents::Hash(fields) => Some(fields),
        _ => None,
    });
    fields.into_iter().flatten()
}

fn scores(contents: Option<&Contents>) -> BTreeMap<&Bytes, u64> {
    match contents {
        Some(Contents::Sorted(entries)) => entries.iter().map(|(member, score)| (member, *score)).collect(),
        _ => BTreeMap::new(),
    }
}
