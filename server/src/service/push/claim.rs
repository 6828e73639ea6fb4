use std::sync::Arc;
use std::time::Duration;

use delayline_tokio::{Error, Lease, SettleOutcome, Verdict};
use tokio::time::{Instant, sleep};

use super::pushed_queue::Shared;

/// How long to wait before a verdict is sent again that Redis did not hear.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Leases of jobs in hand: those that are dropped without a verdict are given back unspent.
pub(super) struct Claim {
    leases: Vec<Lease>,
    shared: Arc<Shared>,
}

impl Claim {
    pub(super) fn new(leases: Vec<Lease>, shared: &Arc<Shared>) -> Claim {
        shared.claims.send_modify(|claims| *claims += 1);
        Claim { leases, shared: Arc::clone(shared) }
    }

    /// Ends the deliveries, each by its verdict, trying until then: afterwards the leases have ended by themselves.
    pub(super) async fn settle(mut self, verdicts: Vec<Verdict>, until: Instant) {
        let leases = std::mem::take(&mut self.leases);
        let mut left: Vec<(Lease, Verdict)> = leases.into_iter().zip(verdicts).collect();
        loop {
            let outcomes = self.shared.client.settle_all(left.clone()).await;
            let again = Instant::now() < until;
            let settled = left.into_iter().zip(outcomes);
            left =
                settled.filter_map(|(settling, outcome)| self.unsettled(settling, outcome, again)).collect();
            if left.is_empty() {
                return;
            }
            sleep(AGAIN_AFTER).await;
        }
    }

    /// What is to be sent again.
    fn unsettled(
        &self,
        settling: (Lease, Verdict),
        outcome: Result<SettleOutcome, Error>,
        again: bool,
    ) -> Option<(Lease, Verdict)> {
        let Lease { queue, id, .. } = &settling.0;
        match outcome {
            Ok(SettleOutcome::Died) => self.shared.death.notify_one(),
            Ok(SettleOutcome::Stale | SettleOutcome::Gone) => {
                tracing::info!(%queue, %id, "a push outlasted its lease: the job is delivered again, or was");
            }
            Ok(_) => {}
            Err(Error::NotSent { .. } | Error::Unknown { .. } | Error::Refused { .. }) if again => {
                return Some(settling);
            }
            Err(error) => {
                tracing::warn!(%queue, %id, %error, "the verdict on a push is lost: the job is pushed again");
            }
        }
        None
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shared.client.give_back(std::mem::take(&mut self.leases));
        self.shared.claims.send_modify(|claims| *claims -= 1);
    }
}
