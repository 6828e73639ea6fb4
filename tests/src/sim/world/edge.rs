//! Processes that cron starts anew each time, with a number of requests and a time to end by.

use delayline_core::{Engine, Millis};

use super::{What, World};
use crate::sim::model::{Checked, ensure};

impl World<'_> {
    pub(super) fn start_edge(&mut self, node: usize, now: Millis) {
        let (now_us, life) = (self.now_us, self.nodes[node].life);
        let leave_ms = self.nodes[node].leave_ms();
        let Some(edge) = &mut self.nodes[node].edge else { return };
        edge.trips = edge.limits.trips;
        edge.ends = now + edge.limits.deadline_ms;
        edge.draining = false;
        let killed = edge.limits.killed;
        let (leaves, ends) = (Millis(edge.ends.0.saturating_sub(leave_ms)), edge.ends);
        let network = &mut self.nodes[node].network;
        let dies_in = network.percent(killed).then(|| network.number(1..=30));
        let clock = &self.nodes[node].clock;
        let times = [clock.when(leaves, now_us), clock.when(ends, now_us)];
        if let Some(edge) = &mut self.nodes[node].edge {
            edge.dies_in = dies_in;
        }
        for at in times {
            self.at(at, What::Timer(node, life));
        }
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
        let leaves = Millis(edge.ends.0.saturating_sub(this.leave_ms()));
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
