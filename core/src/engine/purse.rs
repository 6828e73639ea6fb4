use super::base::Base;
use super::consumer::Consumer;
use super::flight::Flights;
use super::set::Set;
use super::settler::Settler;
use crate::{Command, Credit, Shard, Shards};

/// So many verdicts are worth a round trip where round trips are counted, though others will follow.
const VERDICTS: usize = 100;

/// Who spends a credit: knows what the jobs and verdicts of an engine will take of it.
pub(super) struct Spender {
    credit: Credit,
    shards: Shards,
    /// Where the verdicts go that are here, or on their way.
    settling: Set<Shard>,
}

impl Spender {
    pub(super) fn new(credit: Credit, base: &Base, settler: &Settler) -> Spender {
        Spender { credit, shards: base.config.shards, settling: settler.shards(base) }
    }

    /// What is left if the verdicts on jobs in hand go with the others of their shard.
    pub(super) fn purse(&self, consumer: &Consumer) -> Purse {
        let mut verdicts = consumer.shards(self.shards);
        verdicts.extend(self.settling.iter().copied());
        self.holding(consumer, verdicts.len())
    }

    /// How few verdicts may go now, if those on jobs in hand then go for themselves.
    pub(super) fn least(&self, base: &Base, consumer: &Consumer) -> usize {
        if consumer.held() == 0 {
            return 0;
        }
        let verdicts = self.settling.len() + consumer.shards(self.shards).len();
        match self.holding(consumer, verdicts).has_free_trip() {
            true if base.draining => 0,
            true => VERDICTS,
            false => usize::MAX,
        }
    }

    /// Whether a round trip can be made that carries no verdict. A reserve that was lost may be sent again though all is
    /// promised to what it will bring.
    pub(super) fn has_free_trip(&self, consumer: &Consumer, flights: &Flights) -> bool {
        let mut purse = self.purse(consumer);
        let resending = consumer.resending(flights) as u64;
        purse.owed = purse.owed.saturating_sub(u64::from(self.credit.per_job) * resending);
        purse.has_free_trip()
    }

    fn holding(&self, consumer: &Consumer, verdicts: usize) -> Purse {
        Purse::new(self.credit, consumer.promised(), verdicts + consumer.asking())
    }
}

/// What a driver can still pay for, and what of it is spoken for: the deliveries that grants under way will need, and the
/// round trips for the verdicts. Without that, a worker with 50 requests and a push for each job took 100 jobs, settled
/// none, and left them all to their leases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purse {
    credit: Credit,
    owed: u64,
    /// Whether any verdict is owed: then one round trip more is kept for sending it again.
    spare: u64,
}

impl Purse {
    /// All can be paid for.
    pub(super) const UNLIMITED: Purse = Purse { credit: Credit::UNLIMITED, owed: 0, spare: 0 };

    /// `deliveries` are still to be paid for, and so many round trips with `verdicts`.
    pub(super) fn new(credit: Credit, deliveries: usize, verdicts: usize) -> Purse {
        let owed = u64::from(credit.per_job) * deliveries as u64 + verdicts as u64;
        Purse { credit, owed, spare: u64::from(verdicts > 0) }
    }

    /// Whether a round trip can be made that carries no verdict.
    pub(super) fn has_free_trip(&self) -> bool {
        u64::from(self.credit.trips) > self.owed + self.spare
    }

    /// How many jobs a reserve may bring, if it, their deliveries, and their verdict, sent twice, are to be paid for.
    pub(super) fn affords(&self, reserve_max: u16) -> u16 {
        if self.credit == Credit::UNLIMITED {
            return Command::GRANTS_MAX.max(reserve_max);
        }
        let verdict = 1 + (1 - self.spare);
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
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use super::*;
    use crate::{
        Compression, Config, Engine, Event, Fence, Grant, Held, Identity, JobId, Millis, Phase, Pumping,
        QueueName, Reason, Record, Reply, Shards, State, Subscription, UnixMicros, UnixMs, Verdict,
    };

    const TIME: UnixMicros = UnixMicros(1_760_000_000_000_000);

    fn grant(number: u64) -> Grant {
        let id: JobId = alloc::format!("{number}").parse().expect("an id");
        let record = Record::default().encode(Compression::Off).expect("a plain record").to_bytes();
        let (fence, due) = (Fence(number), UnixMs(TIME.0 / 1_000));
        let state = State {
            phase: Phase::Leased,
            fence,
            attempts: 1,
            verdict: None,
            max: 10,
            deliveries: 1,
            flags: 0,
            due,
            extension: alloc::string::String::new(),
            reason: Reason::default(),
        };
        Grant { id, due, record, state }
    }

    /// What a store that always has a job more answers.
    fn reply(command: &Command, granted: &mut u64) -> Reply {
        match command {
            Command::Reserve { count, .. } => {
                let jobs: Vec<Grant> = (0..(*count).min(1)).map(|_| grant(*granted)).collect();
                *granted += jobs.len() as u64;
                Reply::Granted {
                    time: TIME,
                    fence: Fence(0),
                    lease_end: TIME.ceil_ms() + 86_400_000,
                    backoff: None,
                    jobs,
                    next: None,
                    more: true,
                    open: true,
                }
            }
            Command::Settle { leases, .. } => {
                let outcomes = leases.iter().map(|_| crate::SettleOutcome::Done).collect();
                Reply::Settled { time: Some(TIME), outcomes }
            }
            _ => Reply::Peeked { time: TIME, holder: None, agenda: Vec::new(), firsts: Vec::new() },
        }
    }

    /// Handles jobs, each as soon as it is here or when the credit is spent: how many were handled, and how many of them
    /// no round trip is left for.
    fn work(mut credit: Credit, shards: u16, is_quick: bool) -> (usize, usize) {
        let queues = ["a", "b", "c", "d"].map(|name| name.parse::<QueueName>().expect("a name"));
        let subscriptions = queues.map(|queue| Subscription { queue, weight: 1, max: 2 });
        let config = Config {
            subscriptions: subscriptions.into(),
            shards: Shards::new(shards).expect("few"),
            slots: 6,
            pump: Pumping::Always,
            lease_ms: 86_400_000,
            ..Config::default()
        };
        let mut engine = Engine::new(config, Identity(7), Millis(0)).expect("a config");
        let (mut handled, mut granted, mut open) = (0, 0, BTreeSet::<Held>::new());
        let mut running: Vec<Held> = Vec::new();
        loop {
            let mut moved = false;
            while let Some(event) = engine.poll_event() {
                match event {
                    Event::Run(job) => {
                        credit.trips =
                            credit.trips.checked_sub(credit.per_job).expect("a delivery is paid for");
                        running.extend(job.held);
                    }
                    Event::Settled { held, .. } => drop(open.remove(&held)),
                    _ => {}
                }
            }
            let mut air = Vec::new();
            while let Some(transmit) = engine.poll_transmit(credit) {
                credit.trips -= 1;
                air.push((transmit.ticket, transmit.commands.to_vec()));
            }
            for (ticket, commands) in air {
                let replies: Vec<Reply> =
                    commands.iter().map(|command| reply(command, &mut granted)).collect();
                engine.handle_replies(Millis(0), ticket, replies);
                moved = true;
            }
            if is_quick || !moved {
                for held in running.drain(..) {
                    engine.settle(Millis(0), held, Verdict::Ack);
                    open.insert(held);
                    (handled, moved) = (handled + 1, true);
                }
            }
            if !moved {
                return (handled, open.len());
            }
        }
    }

    #[test]
    fn every_job_that_is_taken_can_be_settled() {
        let mut most = 0;
        for (trips, per_job) in (0..60).flat_map(|trips| (0..3).map(move |per_job| (trips, per_job))) {
            for (shards, is_quick) in [(1, true), (1, false), (2, true), (2, false), (3, true), (3, false)] {
                let (handled, left) = work(Credit { trips, per_job }, shards, is_quick);
                assert_eq!(left, 0, "{trips} trips, {per_job} a job, {shards} shards, quick: {is_quick}");
                most = most.max(handled);
            }
        }
        assert!(most > 20, "{most} jobs at most");
    }

    fn purse(trips: u32, per_job: u32, deliveries: usize, owes: bool) -> Purse {
        Purse::new(Credit { trips, per_job }, deliveries, usize::from(owes))
    }

    #[test]
    fn a_reserve_leaves_enough_for_its_deliveries_and_their_verdict_twice() {
        for (trips, per_job, deliveries, owes, jobs) in [
            (1, 1, 0, false, 0),
            (3, 1, 0, false, 0),
            (4, 1, 0, false, 1),
            (50, 1, 0, false, 47),
            (50, 2, 0, false, 23),
            (50, 1, 10, true, 36),
            (10_000, 1, 0, false, 100),
            (2, 0, 0, false, 0),
            (3, 0, 0, false, 100),
            (u32::MAX, 0, 0, true, 256),
        ] {
            let purse = purse(trips, per_job, deliveries, owes);
            assert_eq!(purse.affords(100), jobs, "{trips} trips, {per_job} a job");
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
