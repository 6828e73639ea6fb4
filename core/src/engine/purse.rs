use alloc::collections::BTreeSet;

use crate::{Command, Credit, Shard};

/// What a driver can still pay for, and what of it is spoken for: the deliveries that grants under way will need, and a
/// round trip a shard for the verdicts. Without that, a worker with 50 requests and a push for each
/// job took 100 jobs, settled none, and left them all to their leases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purse {
    credit: Credit,
    owed: u64,
    /// Whether any verdict is owed: then one round trip more is kept for sending it again.
    spare: u64,
}

impl Purse {
    /// `deliveries` are still to be paid for, and verdicts will go to these shards.
    pub(super) fn new(credit: Credit, deliveries: usize, verdicts: &BTreeSet<Shard>) -> Purse {
        let owed = u64::from(credit.per_job) * deliveries as u64 + verdicts.len() as u64;
        Purse { credit, owed, spare: u64::from(!verdicts.is_empty()) }
    }

    /// Whether a round trip can be made that carries no verdict.
    pub(super) fn has_free_trip(&self) -> bool {
        u64::from(self.credit.trips) > self.owed + self.spare
    }

    /// How many jobs a reserve may bring, if it, their deliveries, and their verdict, sent twice, are to be paid for.
    pub(super) fn affords(&self, reserve_max: u16, owes_verdict: bool) -> u16 {
        if self.credit == Credit::UNLIMITED {
            return Command::GRANTS_MAX.max(reserve_max);
        }
        let verdict = u64::from(!owes_verdict) + (1 - self.spare);
        let left = u64::from(self.credit.trips).saturating_sub(self.owed + self.spare + verdict + 1);
        let jobs = match u64::from(self.credit.per_job) {
            0 if u64::from(self.credit.trips) > self.owed + self.spare + verdict => u64::MAX,
            0 => 0,
            per_job => left / per_job,
        };
        u16::try_from(jobs).unwrap_or(u16::MAX).min(reserve_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purse(trips: u32, per_job: u32, deliveries: usize, owes: bool) -> Purse {
        let verdicts = if owes { BTreeSet::from([Shard(0)]) } else { BTreeSet::new() };
        Purse::new(Credit { trips, per_job }, deliveries, &verdicts)
    }

    #[test]
    fn a_reserve_leaves_enough_for_its_deliveries_and_their_verdict_twice() {
        for (trips, per_job, deliveries, owes, jobs) in [
            (1, 1, 0, false, 0),
            (3, 1, 0, false, 0),
            (4, 1, 0, false, 1),
            (50, 1, 0, false, 47),
            (50, 2, 0, false, 23),
            (50, 1, 10, true, 37),
            (10_000, 1, 0, false, 100),
            (2, 0, 0, false, 0),
            (3, 0, 0, false, 100),
            (u32::MAX, 0, 0, true, 256),
        ] {
            let purse = purse(trips, per_job, deliveries, owes);
            assert_eq!(purse.affords(100, owes), jobs, "{trips} trips, {per_job} a job");
        }
    }

    #[test]
    fn what_is_owed_is_kept_for_it() {
        assert!(purse(1, 1, 0, false).has_free_trip());
        assert!(!purse(2, 1, 0, true).has_free_trip());
        assert!(purse(3, 1, 0, true).has_free_trip());
        assert!(!purse(5, 1, 3, true).has_free_trip());
    }
}
