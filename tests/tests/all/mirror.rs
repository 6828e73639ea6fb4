//! A server that is told what the store in memory has done, many commands at a time, and has to show the same.

use std::collections::BTreeMap;

use delayline_core::wire::{Value, decode};
use delayline_core::{Command, JobId, QueueName, Reply, Shards, UnixMicros, UnixMs};
use delayline_embedded::Damage;
use delayline_tests::{
    Dump, Flavour, Options, Pipeline, RedisServer, RedisStore, damaging, dump_words, dumped, sound,
};

use crate::twin::hearing;

/// What the store in memory did.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    /// It carried a command out, and answered this.
    Ran(UnixMicros, Box<Command>, Reply),
    /// It lost the record of a job.
    Lost(QueueName, JobId),
    /// Somebody else wrote over a value of it.
    Damaged(QueueName, Damage),
    /// It held this, at this time.
    Held(UnixMs, Dump),
    /// Everything was forgotten.
    Cleared,
}

/// All that one or several sequences did, and what was heard of it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) shards: Shards,
    pub(crate) done: Vec<Done>,
    pub(crate) heard: Vec<(String, String)>,
}

/// A server with an open store for each number of shards.
pub(crate) struct Mirror {
    pub(crate) server: RedisServer,
    stores: BTreeMap<u16, RedisStore>,
}

impl Mirror {
    pub(crate) fn new(flavour: Flavour) -> Mirror {
        let server = RedisServer::start(Options { flavour: Some(flavour), ..Options::default() });
        let mut connection = server.connect();
        for script in delayline_lua::all() {
            connection.ask(&["SCRIPT", "LOAD", &script.source()]);
        }
        Mirror { server, stores: BTreeMap::new() }
    }

    /// Does it all in one round trip; the first difference, if there is one.
    pub(crate) fn differs(&mut self, told: &Told) -> Option<String> {
        let store = self.store(told.shards);
        store.heard();
        let mut pipeline = Pipeline::default();
        for done in &told.done {
            match done {
                Done::Ran(time, command, _) => pipeline.command(store.keys(), command, *time),
                Done::Lost(queue, id) => {
                    pipeline.words(&["HDEL", &store.keys().queue_keys(queue)[3], id.as_str()]);
                }
                Done::Damaged(queue, damage) => {
                    let words = damaging(store.keys(), queue, damage);
                    pipeline.words(&words);
                }
                Done::Held(..) => pipeline.words(&dump_words()),
                Done::Cleared => pipeline.words(&["FLUSHALL"]),
            }
        }
        store.connection().send_all(&mut pipeline).expect("a living connection");
        let differing = told.done.iter().filter_map(|done| {
            let answer = store.connection().receive().expect("a living connection");
            differing(done, answer)
        });
        let first = differing.fold(None, |first: Option<String>, next| first.or(Some(next)));
        let heard = store.heard();
        first.or_else(|| {
            let differs = heard != told.heard;
            differs.then(|| format!("  memory heard {:?}\n  server heard {heard:?}", told.heard))
        })
    }

    fn store(&mut self, shards: Shards) -> &mut RedisStore {
        self.stores.entry(shards.count()).or_insert_with(|| {
            let mut store = RedisStore::new(&self.server, shards);
            for &engine in hearing() {
                store.subscribe(engine);
            }
            store
        })
    }
}

fn differing(done: &Done, answer: Value) -> Option<String> {
    match done {
        Done::Ran(time, command, reply) => {
            let other = in_order(decode(command.kind(), answer));
            let agrees = other == *reply && !matches!(other, Reply::Broken(_) | Reply::Refused(_));
            (!agrees).then(|| format!("  {command:?}\n  at {time}\n  memory {reply:?}\n  server {other:?}"))
        }
        Done::Held(now, dump) => {
            let (dump, other) = (sound(dump.clone(), *now), sound(dumped(answer), *now));
            (other != dump).then(|| keys_differing(&dump, &other))
        }
        Done::Lost(..) | Done::Damaged(..) | Done::Cleared => None,
    }
}

/// The names of queues come in the order of a hash table, and times that scripts take for the same in their own order. The
/// store in memory has no keys of another type to count.
pub(crate) fn in_order(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::Named { queues, .. } => queues.sort(),
        Reply::Peeked { agenda, .. } => agenda.sort_by(|(a, at), (b, bt)| (at, a).cmp(&(bt, b))),
        Reply::Counted { stats, .. } => stats.counters.broken = 0,
        _ => {}
    }
    reply
}

/// The first few keys that two dumps do not share.
pub(crate) fn keys_differing(left: &Dump, right: &Dump) -> String {
    let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let differing = keys.into_iter().filter(|key| left.get(*key) != right.get(*key));
    let shown = differing
        .take(4)
        .map(|key| format!("  {key}\n    left  {:?}\n    right {:?}\n", left.get(key), right.get(key)));
    shown.collect()
}
