//! Processes that cron starts anew each time, with a number of requests and a time to end by.

use delayline_core::{Engine, Millis};

use super::World;
use crate::sim::model::{Checked, ensure};

impl World<'_> {
    pub(super) fn start_edge(&mut self, node: usize, now: Millis) {
        let this = &mut self.nodes[node];
        let Some(edge) = &mut this.edge else { return };
        edge.trips = edge.limits.trips;
        edge.ends = now + edge.limits.deadline_ms;
        edge.draining = false;
        let killed = this.network.percent(edge.limits.killed) && !self.calm;
        edge.dies_in = killed.then(|| this.network.number(1..=30));
    }

    /// Whether none but processes that cron starts take jobs.
    pub(super) fn is_cron_alone(&self) -> bool {
        self.nodes.iter().all(|node| node.edge.is_some() || node.config.subscriptions.is_empty())
    }

    /// Whether an edge process is about to end.
    pub(super) fn is_leaving(&self, node: usize) -> bool {
        self.nodes[node].edge.as_ref().is_some_and(|edge| edge.draining)
    }

    /// Takes from what an edge process may spend.
    pub(super) fn pay(&mut self, node: usize, trips: u32) -> bool {
        let Some(edge) = &mut self.nodes[node].edge else { return true };
        let paid = edge.trips.checked_sub(trips);
        edge.trips = paid.unwrap_or(0);
        edge.dies_in = edge.dies_in.map(|awaits| awaits.saturating_sub(1));
        if edge.trips == 0 {
            self.marks.reach("an edge run uses up its credit");
        }
        paid.is_some()
    }

    /// An edge process ends when it has nothing more to do, when its time is over, or when it is killed.
    pub(super) fn after_edge(&mut self, node: usize) -> Checked {
        let now = self.nodes[node].clock.at(self.now_us);
        let this = &self.nodes[node];
        let (Some(edge), Some(engine)) = (&this.edge, &this.engine) else { return Ok(()) };
        if engine.is_drained() || edge.dies_in == Some(0) {
            self.nodes[node].end();
            return Ok(());
        }
        if now >= edge.ends {
            let held = engine.held();
            let idle = this.running.is_empty() && held == 0;
            ensure!(
                idle || !self.clear,
                "credit strands no lease",
                "node {node} ends with {held} jobs in hand and {} trips left",
                edge.trips
            );
            self.marks.reach("an edge run meets its deadline");
            self.nodes[node].end();
            return Ok(());
        }
        let next = engine.poll_timeout().map_or(edge.ends, |(at, _)| at);
        let leaves = this.leaves(edge);
        if this.is_idle() && edge.trips == 0 {
            self.nodes[node].end();
            return Ok(());
        }
        let over = now >= leaves || (this.is_idle() && next >= leaves);
        if over && !edge.draining {
            if let Some(edge) = &mut self.nodes[node].edge {
                edge.draining = true;
            }
            return self.with(node, Engine::drain);
        }
        Ok(())
    }
}
