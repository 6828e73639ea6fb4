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
    pub fn draw(random: &mut Random, length: u64, append: Append, failover: bool) -> Plan {
        let mut free: BTreeMap<Target, u64> = BTreeMap::new();
        let (mut faults, mut at) = (Vec::new(), random.number(PAUSES));
        while at < length {
            let is_free = |fault: Fault| free.get(&fault.target()).is_none_or(|free| *free <= at);
            let drawn = (0..DRAWS).find_map(|_| {
                let fault = draw(random, failover);
                (is_possible(fault, append, failover) && is_free(fault)).then_some(fault)
            });
            let is_due =
                at >= length / 3 && !faults.iter().any(|planned: &Planned| planned.fault.loses_redis());
            let lost = is_due.then(|| lose_redis(random, failover));
            let lost = lost.filter(|fault| is_possible(*fault, append, failover) && is_free(*fault));
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

fn is_possible(fault: Fault, append: Append, failover: bool) -> bool {
    match fault {
        Fault::KillRedis | Fault::RestartRedis => !failover && append != Append::Off,
        _ => true,
    }
}

fn lose_redis(random: &mut Random, failover: bool) -> Fault {
    let how = *random.pick(&[Failover::Killed, Failover::Paused, Failover::CutOff]);
    if failover { Fault::FailOver(how) } else { Fault::KillRedis }
}

fn draw(random: &mut Random, failover: bool) -> Fault {
    let worker = below(random, WORKERS);
    let link = below(random, LINKS);
    match random.number(0..=91) {
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
        _ => Fault::RefuseLink(link),
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
        matches!(self, Fault::KillRedis | Fault::FailOver(_))
    }

    fn target(self) -> Target {
        match self {
            Fault::KillRedis
            | Fault::RestartRedis
            | Fault::PauseRedis
            | Fault::FlushScripts
            | Fault::KillConnections
            | Fault::FillMemory
            | Fault::FailOver(_) => Target::Redis,
            Fault::KillWorker(worker) | Fault::StopWorker(worker) | Fault::PauseWorker(worker) => {
                Target::Worker(worker)
            }
            Fault::KillService | Fault::StopService | Fault::PauseService => Target::Service,
            Fault::CutLink(link)
            | Fault::StallLink(link)
            | Fault::SwallowReplies(link)
            | Fault::RefuseLink(link) => Target::Link(link),
        }
    }

    fn lengths(self) -> RangeInclusive<u64> {
        match self {
            Fault::FlushScripts | Fault::KillConnections | Fault::CutLink(_) => 0..=0,
            Fault::KillRedis | Fault::RestartRedis | Fault::KillWorker(_) | Fault::KillService => 100..=1_500,
            Fault::FailOver(_) | Fault::FillMemory | Fault::RefuseLink(_) => 300..=1_500,
            Fault::PauseRedis => 200..=LEASE + 1_500,
            Fault::StopWorker(_) | Fault::StopService => 1_500..=3_000,
            Fault::PauseWorker(_) | Fault::PauseService => LEASE + 500..=LEASE + 3_000,
            Fault::StallLink(_) => 300..=6_500,
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
        let draw = |seed| Plan::draw(&mut Random::new(seed), 60_000, Append::Always, false);
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn every_fault_is_drawn_where_it_can_be() {
        let kinds = |append, failover| Plan::draw(&mut Random::new(1), 3_600_000, append, failover).kinds();
        let (kept, forgets, replicated) =
            (kinds(Append::Always, false), kinds(Append::Off, false), kinds(Append::Always, true));
        assert_eq!((kept.len(), forgets.len(), replicated.len()), (16, 14, 15), "{kept:?}");
        assert!(!forgets.contains_key("KillRedis"), "it would forget everything");
        assert!(!replicated.contains_key("KillRedis"), "who fails over does not restart");
    }
}
