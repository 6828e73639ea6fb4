use std::collections::{BTreeMap, BTreeSet};

use delayline_core::{Keyspace, Prefix, QueueName, Shards};
use delayline_tokio::redis::cmd;

use super::super::wire::Wire;

const PAGE: usize = 1000;
const KEYS: [&str; 9] = ["meta", "pool", "due", "leased", "state", "dead", "exp", "waiting", "big"];

/// The keys of a deployment, as SCAN tells them.
#[derive(Default)]
pub(super) struct Names {
    /// The hash tags, and the queues that have keys there.
    tags: BTreeMap<String, BTreeSet<QueueName>>,
    /// Keys that were set aside.
    pub(super) aside: Vec<String>,
    /// How many keys of Redis were not looked at.
    pub(super) unseen: u64,
}

impl Names {
    /// Looks through at most `limit` keys of the whole Redis.
    pub(super) async fn scan(wire: &mut Wire, prefix: &Prefix, limit: u64) -> Result<Names, String> {
        let mut names = Names::default();
        let (mut cursor, mut seen) = (0_u64, 0_u64);
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{{{prefix}:*")).arg("COUNT").arg(PAGE);
            let (next, keys): (u64, Vec<Vec<u8>>) = wire.ask(&scan).await?;
            for key in keys {
                names.note(prefix, &String::from_utf8_lossy(&key));
            }
            (cursor, seen) = (next, seen + PAGE as u64);
            if cursor == 0 {
                return Ok(names);
            }
            if seen >= limit {
                let all: u64 = wire.ask(&cmd("DBSIZE")).await.unwrap_or(seen);
                names.unseen = all.saturating_sub(seen);
                return Ok(names);
            }
        }
    }

    fn note(&mut self, prefix: &Prefix, key: &str) {
        let inner = key.strip_prefix(&format!("{{{prefix}:")).and_then(|rest| rest.split_once("}:"));
        let Some((tag, rest)) = inner else { return };
        // A queue may have that name, but names have no colons.
        if rest.starts_with("broken:") && rest.matches(':').count() > 1 {
            self.aside.push(key.to_owned());
            return;
        }
        let queue = rest.rsplit_once(':').filter(|(_, kind)| KEYS.contains(kind));
        let queues = self.tags.entry(format!("{{{prefix}:{tag}}}:")).or_default();
        queues.extend(queue.and_then(|(name, _)| name.parse::<QueueName>().ok()));
    }

    /// Whether there are any keys.
    pub(super) fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// A key that would not be there if these were the shards.
    pub(super) fn strange(&self, keys: &Keyspace) -> Option<String> {
        let known: BTreeSet<&str> = keys.shards().iter().map(|shard| keys.tag(shard)).collect();
        self.tags.iter().find_map(|(tag, queues)| {
            let stray = queues.iter().find(|queue| keys.tag(keys.shards().of(queue)) != tag);
            match stray {
                _ if !known.contains(tag.as_str()) => Some(format!("{tag}…")),
                stray => stray.map(|queue| format!("{tag}{queue}:…")),
            }
        })
    }

    /// The queues that have keys.
    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.tags.values().flatten()
    }

    /// The smallest number of shards in which every key is where it belongs.
    pub(super) fn shards(&self, prefix: &Prefix) -> Option<Shards> {
        let mut counts = (1..=Shards::MAX).filter_map(Shards::new);
        counts.find(|shards| self.strange(&Keyspace::new(prefix, *shards)).is_none())
    }
}
