//! What must be true whenever somebody looks, and at the end.

use std::collections::BTreeMap;

use delayline_core::{Command, Engine, QueueName, Reply, UnixMicros};
use delayline_embedded::Dumped;

use super::World;
use crate::sim::model::{Violation, ensure};
use crate::sim::workload;

impl World {
    /// Sizes equal a recount, and the agenda is never late.
    pub(super) fn check(&mut self) -> Result<(), Violation> {
        let now = self.redis_now();
        let dump = self.store.dump(&self.keys);
        for queue in workload::queues() {
            let stats = Command::Stats { queue: queue.clone(), hours: 0 };
            let Reply::Counted { stats, .. } = self.store.execute(now, &stats) else { continue };
            let c = stats.counters;
            let ended = c.acked + c.cancelled + c.expired + c.purged + c.forwarded + c.lost;
            let (counted, held) =
                (c.published - ended, stats.ready + stats.delayed + stats.leased + stats.dead);
            ensure!(counted == held, "counters add up", "{queue}: {c:?} against {held} jobs");
            ensure!(c.lost == 0 && c.unreadable == 0, "nothing is lost", "{queue}: {c:?}");
            self.check_agenda(&dump, &queue, now)?;
        }
        Ok(())
    }

    pub(super) fn check_agenda(
        &self,
        dump: &BTreeMap<String, Dumped>,
        queue: &QueueName,
        now: UnixMicros,
    ) -> Result<(), Violation> {
        let keys = self.keys.queue_keys(queue);
        let first = |key: &str, from: u64| match dump.get(key) {
            Some(Dumped::Zset(entries)) => {
                entries.iter().map(|(_, score)| *score).find(|score| *score >= from)
            }
            _ => None,
        };
        let next = [first(&keys[4], now.floor_ms().0 + 1), first(&keys[5], 0), first(&keys[8], 0)];
        let member = format!("q{queue}");
        let at = match dump.get(&keys[0]) {
            Some(Dumped::Zset(entries)) => entries.iter().find(|(name, _)| *name == member.as_bytes()),
            _ => None,
        };
        let at = at.map(|(_, score)| *score);
        if let Some(needed) = next.into_iter().flatten().min() {
            let late = at.is_none_or(|at| at > needed.max(now.floor_ms().0));
            ensure!(
                !late,
                "the agenda is never late",
                "{queue}: it says {at:?}, but something happens at {needed}"
            );
        }
        Ok(())
    }

    pub(super) fn unfinished(&self) -> Result<(), Violation> {
        let left = self.model.unfinished(self.redis_now());
        ensure!(
            left.is_empty(),
            "all settles once faults end",
            "{} jobs are left: {}",
            left.len(),
            left.join("; ")
        );
        Ok(())
    }

    pub(super) fn check_end(&self) -> Result<(), Violation> {
        for (n, node) in self.nodes.iter().enumerate() {
            let drained = node.engine.as_ref().is_some_and(Engine::is_drained);
            ensure!(
                drained,
                "a drained engine ends",
                "node {n} does not: {:?}",
                node.engine.as_ref().map(|e| (e.held(), e.poll_timeout()))
            );
            ensure!(node.asked.is_empty(), "every caller is answered", "node {n}: {:?}", node.asked);
        }
        let dump = self.store.dump(&self.keys);
        for (key, contents) in &dump {
            let kept =
                ["config", ":meta", "queues", "lease", "agenda"].iter().any(|name| key.ends_with(name));
            let dead = [":pool", ":state", ":dead", ":big"].iter().any(|name| key.ends_with(name));
            let waits_for_the_dead = key.ends_with(":waiting") && !self.has_the_living(contents);
            ensure!(kept || dead || waits_for_the_dead, "nothing is left behind", "{key}: {contents:?}");
        }
        Ok(())
    }

    pub(super) fn has_the_living(&self, waiting: &Dumped) -> bool {
        let Dumped::Zset(entries) = waiting else { return true };
        let living: Vec<String> =
            self.nodes.iter().filter_map(|node| Some(node.engine.as_ref()?.identity().to_string())).collect();
        entries.iter().any(|(member, _)| living.iter().any(|text| text.as_bytes() == member.as_ref()))
    }
}
