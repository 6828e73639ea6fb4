use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use crate::{Append, Random};

/// How many workers there are. Each has a link to Redis, as have the service and the clients.
pub(super) const WORKERS: usize = 3;
/// The link of the service.
pub(super) const SERVICE_LINK: usize = WORKERS;
/// The link of the clients.
pub(super) const CLIENT_LINK: usize = WORKERS + 1;
/// How many links there are.
pub(super) const LINKS: usize = WORKERS + 2;
/// How long leases last, in ms.
pub(super) const LEASE: u64 = 2_000;

/// How long Redis is left alone after a fault, in ms, so that something happens in between.
const BREATH: u64 = 2_000;
const PAUSES: RangeInclusive<u64> = 250..=900;
const DRAWS: usize = 50;

/// What is done to the parts, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan(pub Vec<Planned>);

/// What decides which faults there can be.
#[derive(Clone, Copy, Debug)]
pub struct Possible {
    /// How Redis keeps what it accepted. Where it does not, it is not killed.
    pub append: Append,
    /// Whether a replica takes over again and again. Then Redis is not restarted.
    pub failover: bool,
    /// Whether somebody empties Redis.
    pub flush: bool,
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it begins, in ms after the beginning.
    pub at: u64,
    /// How long it lasts, in ms.
    pub lasts: u64,
    /// What it is.
    pub fault: Fault,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Fault {
    /// SIGKILL, and a start later.
    KillRedis,
    /// SIGTERM, and a start later.
    RestartRedis,
    /// SIGSTOP, and SIGCONT later.
    PauseRedis,
    /// All scripts are forgotten.
    FlushScripts,
    /// All connections are closed by Redis.
    KillConnections,
    /// No memory is left for a while.
    FillMemory,
    /// Everything in Redis is removed.
    FlushAll,
    /// The replica takes over.
    FailOver(Failover),
    KillWorker(usize),
    /// SIGTERM.
    StopWorker(usize),
    /// SIGSTOP for longer than its leases.
    PauseWorker(usize),
    KillService,
    StopService,
    PauseService,
    /// All connections of a link are cut.
    CutLink(usize),
    /// Nothing passes a link.
    StallLink(usize),
    /// What passes a link is late.
    DelayLink(usize),
    /// The connections of a link stay open and are silent from then on.
    FreezeLink(usize),
    /// Requests pass, replies do not, and then the link is cut.
    SwallowReplies(usize),
    /// Nobody can connect.
    RefuseLink(usize),
}

/// How the primary is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failover {
    /// By SIGKILL.
    Killed,
    /// By SIGSTOP: it goes on later, with what it was about to do.
    Paused,
    /// It goes on, and nobody is led there any more.
    CutOff,
    /// It follows the replica, by `REPLICAOF`, and keeps its connections; only new ones are led elsewhere.
    Demoted,
    /// The same by `FAILOVER`, which loses nothing.
    HandedOver,
}

/// What a fault is done to: one fault at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Redis,
    Worker(usize),
    Service,
    Link(usize),
}

impl Plan {
    /// Draws one for so many ms. Redis is lost at least once, if there is time for it.
    pub fn draw(random: &mut Random, length: u64, options: Possible) -> Plan {
        let failover = options.failover;
        let mut free: BTreeMap<Target, u64> = BTreeMap::new();
        let (mut faults, mut at) = (Vec::new(), random.number(PAUSES));
        while at < length {
            let is_free = |fault: Fault| free.get(&fault.target()).is_none_or(|free| *free <= at);
            let drawn = (0..DRAWS).find_map(|_| {
                let fault = draw(random, failover);
                (is_possible(fault, options) && is_free(fault)).then_some(fault)
            });
            let is_due =
                at >= length / 3 && !faults.iter().any(|planned: &Planned| planned.fault.loses_redis());
            let lost = is_due.then(|| lose_data(random, options));
            let lost = lost.filter(|fault| is_possible(*fault, options) && is_free(*fault));
            if let Some(fault) = lost.or(drawn) {
                let lasts = random.number(fault.lengths());
                let breath = if fault.target() == Target::Redis { BREATH } else { 100 };
                free.insert(fault.target(), at + lasts + breath);
                faults.push(Planned { at, lasts, fault });
            }
            at += random.number(PAUSES);
        }
        Plan(faults)
    }

    /// How many faults there are of each kind.
    pub fn kinds(&self) -> BTreeMap<String, usize> {
        let mut kinds = BTreeMap::new();
        for planned in &self.0 {
            let name = format!("{:?}", planned.fault);
            *kinds.entry(name.split('(').next().unwrap_or_default().to_string()).or_default() += 1;
        }
        kinds
    }
}

fn is_possible(fault: Fault, Possible { append, failover, flush }: Possible) -> bool {
    match fault {
        Fault::KillRedis | Fault::RestartRedis => !failover && append != Append::Off,
        Fault::FlushAll => flush,
        _ => true,
    }
}

fn lose_redis(random: &mut Random, failover: bool) -> Fault {
    let how = *random.pick(&[
        Failover::Killed,
        Failover::Paused,
        Failover::CutOff,
        Failover::Demoted,
        Failover::HandedOver,
    ]);
    if failover { Fault::FailOver(how) } else { Fault::KillRedis }
}

fn lose_data(random: &mut Random, options: Possible) -> Fault {
    if options.flush && random.percent(50) { Fault::FlushAll } else { lose_redis(random, options.failover) }
}

fn draw(random: &mut Random, failover: bool) -> Fault {
    let worker = below(random, WORKERS);
    let link = below(random, LINKS);
    match random.number(0..=107) {
        0..=11 => lose_redis(random, failover),
        12..=13 => Fault::RestartRedis,
        14..=19 => Fault::PauseRedis,
        20..=23 => Fault::FlushScripts,
        24..=27 => Fault::KillConnections,
        28..=31 => Fault::FillMemory,
        32..=38 => Fault::KillWorker(worker),
        39..=44 => Fault::StopWorker(worker),
        45..=52 => Fault::PauseWorker(worker),
        53..=56 => Fault::KillService,
        57..=59 => Fault::StopService,
        60..=63 => Fault::PauseService,
        64..=70 => Fault::CutLink(link),
        71..=78 => Fault::StallLink(link),
        79..=85 => Fault::SwallowReplies(link),
        86..=91 => Fault::RefuseLink(link),
        92..=96 => Fault::DelayLink(link),
        97..=101 => Fault::FreezeLink(link),
        _ => Fault::FlushAll,
    }
}

fn below(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.number(0..=count as u64 - 1)).expect("few")
}

impl Fault {
    /// Whether both are done to the same part.
    pub(super) fn is_of_part(self, other: Fault) -> bool {
        self.target() == other.target()
    }

    fn loses_redis(self) -> bool {
        matches!(self, Fault::KillRedis | Fault::FlushAll | Fault::FailOver(_))
    }

    fn target(self) -> Target {
        match self {
            Fault::KillRedis
            | Fault::RestartRedis
            | Fault::PauseRedis
            | Fault::FlushScripts
            | Fault::KillConnections
            | Fault::FillMemory
            | Fault::FlushAll
            | Fault::FailOver(_) => Target::Redis,
            Fault::KillWorker(worker) | Fault::StopWorker(worker) | Fault::PauseWorker(worker) => {
                Target::Worker(worker)
            }
            Fault::KillService | Fault::StopService | Fault::PauseService => Target::Service,
            Fault::CutLink(link)
            | Fault::StallLink(link)
            | Fault::DelayLink(link)
            | Fault::FreezeLink(link)
            | Fault::SwallowReplies(link)
            | Fault::RefuseLink(link) => Target::Link(link),
        }
    }

    fn lengths(self) -> RangeInclusive<u64> {
        match self {
            Fault::FlushScripts
            | Fault::KillConnections
            | Fault::FlushAll
            | Fault::CutLink(_)
            | Fault::FreezeLink(_) => 0..=0,
            Fault::KillRedis | Fault::RestartRedis | Fault::KillWorker(_) | Fault::KillService => 100..=1_500,
            Fault::FailOver(_) | Fault::FillMemory | Fault::RefuseLink(_) => 300..=1_500,
            Fault::PauseRedis => 200..=LEASE + 1_500,
            Fault::StopWorker(_) | Fault::StopService => 1_500..=3_000,
            Fault::PauseWorker(_) | Fault::PauseService => LEASE + 500..=LEASE + 3_000,
            Fault::StallLink(_) | Fault::DelayLink(_) => 300..=6_500,
            Fault::SwallowReplies(_) => 100..=2_500,
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Planned { at, lasts, fault } in &self.0 {
            writeln!(f, "{:>7}.{:03} s  {fault:?} for {lasts} ms", at / 1_000, at % 1_000)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        let options = Possible { append: Append::Always, failover: false, flush: false };
        let draw = |seed| Plan::draw(&mut Random::new(seed), 60_000, options);
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn every_fault_is_drawn_where_it_can_be() {
        let kinds = |append, failover, flush| {
            Plan::draw(&mut Random::new(1), 3_600_000, Possible { append, failover, flush }).kinds()
        };
        let (kept, forgets, replicated) = (
            kinds(Append::Always, false, true),
            kinds(Append::Off, false, false),
            kinds(Append::Always, true, false),
        );
        assert_eq!((kept.len(), forgets.len(), replicated.len()), (19, 16, 17), "{kept:?}");
        assert!(!forgets.contains_key("FlushAll"), "nobody asked for it");
        assert!(!forgets.contains_key("KillRedis"), "it would forget everything");
        assert!(!replicated.contains_key("KillRedis"), "who fails over does not restart");
    }
}
