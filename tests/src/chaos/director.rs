use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use super::history::{Happened, Loss, now};
use super::parts::{ENDS, Part, Parts};
use super::plan::{Failover, Fault, Plan};
use super::proxy::Passage;
use super::sampler::Sampler;
use crate::{Append, until};

/// For how long Redis answers what it has not written yet, while the disk is busy with an earlier sync: it says at most 2 s,
/// which it counts in whole seconds.
const EVERYSEC: u64 = 2_000_000;
const LOOK_AGAIN: u64 = 100;
/// What does not live is started again after so long.
const REVIVAL: Duration = Duration::from_millis(250);
/// On two busy cores a process may take so long to get ready for signals.
const YOUTH: Duration = Duration::from_secs(2);
const SIGTERM: i32 = 15;
const WATCH: Duration = Duration::from_millis(50);
/// How long a `FAILOVER` may take; it is given up then.
const HAND_OVER: Duration = Duration::from_secs(5);
/// What the service ends with if it finds no Redis when it starts: whoever started it is to try again.
const NO_REDIS: i32 = 3;
/// How long clients go on with a primary that was left alone, before they are led elsewhere.
const SPLIT: Duration = Duration::from_millis(400);

/// Carries a plan out.
pub(super) struct Director<'a> {
    parts: &'a mut Parts,
    append: Append,
    sampler: Option<Sampler>,
    /// Who is asked to end, and whether it was so young that it may not have known what SIGTERM means.
    told: Vec<(Fault, bool)>,
    steps: BTreeMap<(u64, usize), Step>,
    pub(super) events: Vec<Happened>,
    pub(super) losses: Vec<Loss>,
    pub(super) oddities: Vec<String>,
}

#[derive(Clone, Copy)]
enum Step {
    Begin(Fault, u64),
    End(Fault),
    /// What was asked to end is started again once it has.
    Replace(Fault, u64),
}

impl<'a> Director<'a> {
    pub(super) fn new(parts: &'a mut Parts, plan: &Plan, append: Append) -> Director<'a> {
        let sampler = (parts.redis.len() > 1).then(|| Sampler::start(parts.redis[0].port()));
        let steps = plan.0.iter().enumerate();
        let steps =
            steps.map(|(number, planned)| ((planned.at, number), Step::Begin(planned.fault, planned.lasts)));
        Director {
            parts,
            append,
            sampler,
            told: Vec::new(),
            steps: steps.collect(),
            events: Vec::new(),
            losses: Vec::new(),
            oddities: Vec::new(),
        }
    }

    /// Returns when every fault has ended, and all is there again.
    pub(super) fn run(&mut self) {
        let begun = Instant::now();
        while let Some(((at, number), step)) = self.steps.pop_first() {
            while begun.elapsed() < Duration::from_millis(at) {
                thread::sleep(WATCH.min(Duration::from_millis(at).saturating_sub(begun.elapsed())));
                self.watch();
            }
            let next = match step {
                Step::Begin(fault, lasts) => self.begin(fault, lasts).map(|step| (at + lasts, step)),
                Step::End(fault) => self.end(fault).map(|step| (at, step)),
                Step::Replace(fault, waited) => {
                    self.replace(fault, waited).map(|step| (at + LOOK_AGAIN, step))
                }
            };
            if let Some((at, step)) = next {
                self.steps.insert((at, number), step);
            }
        }
        until("a service that listens", ENDS, || {
            self.watch();
            self.parts.listens().then_some(())
        });
    }

    /// What has ended though nobody told it to is started again.
    fn watch(&mut self) {
        let faults = (0..self.parts.workers.len()).map(Fault::StopWorker).chain([Fault::StopService]);
        for fault in faults {
            let Some(status) = self.part(fault).as_mut().and_then(crate::Process::ended) else { continue };
            if self.told(fault).is_some() || self.age(fault) < REVIVAL {
                continue;
            }
            self.judge(fault, status);
            self.note(format!("a part ended by itself: {status}"), false);
            self.start(fault);
        }
    }

    fn told(&self, fault: Fault) -> Option<bool> {
        self.told.iter().find(|(told, _)| *told == fault).map(|(_, is_young)| *is_young)
    }

    fn age(&self, fault: Fault) -> Duration {
        match fault {
            Fault::StopWorker(worker) => self.parts.age(worker),
            _ => self.parts.age(usize::MAX),
        }
    }

    fn judge(&mut self, fault: Fault, status: ExitStatus) {
        let told = self.told(fault);
        let is_well = told.is_some() && status.success();
        let was_unready = told == Some(true) && status.signal() == Some(SIGTERM);
        let is_service = matches!(fault, Fault::StopService | Fault::PauseService);
        let found_no_redis = is_service && status.code() == Some(NO_REDIS);
        if !(is_well || was_unready || found_no_redis && !self.parts.listens()) {
            self.oddities.push(format!("{fault:?}: it ended with {status}, told: {}", told.is_some()));
        }
    }

    fn start(&mut self, fault: Fault) {
        match fault {
            Fault::StopWorker(worker) => self.parts.start_worker(worker),
            _ => self.parts.start_service(),
        }
    }

    fn note(&mut self, what: String, is_end: bool) {
        self.events.push(Happened { at: now(), what, is_end });
    }

    fn begin(&mut self, fault: Fault, lasts: u64) -> Option<Step> {
        if self.told.iter().any(|(told, _)| told.is_of_part(fault)) {
            self.note(format!("{fault:?} is left out: it has not ended yet"), false);
            return None;
        }
        self.note(format!("{fault:?} for {lasts} ms"), false);
        match fault {
            Fault::KillRedis => self.kill_redis(),
            Fault::RestartRedis => self.parts.primary().stop(),
            Fault::PauseRedis => self.parts.primary().pause(),
            Fault::FlushScripts => drop(self.parts.tell(&["SCRIPT", "FLUSH"])),
            Fault::KillConnections => {
                self.parts.tell(&["CLIENT", "KILL", "TYPE", "normal"]);
                self.parts.tell(&["CLIENT", "KILL", "TYPE", "pubsub"]);
            }
            Fault::FillMemory => {
                let used = self.parts.info(self.parts.primary, "memory", "used_memory").unwrap_or_default();
                self.parts.tell(&["CONFIG", "SET", "maxmemory", &used]);
            }
            Fault::FlushAll => self.flush_all(),
            Fault::FailOver(how) => {
                if !self.fail_over(how) {
                    self.note("it was left out: the replica is not in sync".to_string(), true);
                    return None;
                }
            }
            Fault::KillWorker(worker) => drop(self.parts.workers[worker].take()),
            Fault::KillService => drop(self.parts.service.take()),
            Fault::StopWorker(_) | Fault::StopService => self.signal(fault, "TERM"),
            Fault::PauseWorker(_) | Fault::PauseService => self.signal(fault, "STOP"),
            Fault::CutLink(link) => self.parts.links[link].cut(),
            Fault::StallLink(link) => self.parts.links[link].set(Passage::Stalled),
            Fault::DelayLink(link) => self.parts.links[link].set(Passage::Delaying),
            Fault::FreezeLink(link) => self.parts.links[link].freeze(),
            Fault::SwallowReplies(link) => self.parts.links[link].set(Passage::Swallowing),
            Fault::RefuseLink(link) => self.parts.links[link].set(Passage::Refusing),
        }
        Some(Step::End(fault))
    }

    fn end(&mut self, fault: Fault) -> Option<Step> {
        match fault {
            Fault::KillRedis | Fault::RestartRedis => self.parts.primary().restart(),
            Fault::PauseRedis => self.parts.primary().resume(),
            Fault::FillMemory => drop(self.parts.tell(&["CONFIG", "SET", "maxmemory", "0"])),
            Fault::FailOver(how) => self.follow(how),
            Fault::KillWorker(worker) => self.parts.start_worker(worker),
            Fault::KillService => self.parts.start_service(),
            Fault::StopWorker(_) | Fault::StopService => return Some(Step::Replace(fault, 0)),
            Fault::PauseWorker(_) | Fault::PauseService => self.signal(fault, "CONT"),
            Fault::StallLink(link)
            | Fault::DelayLink(link)
            | Fault::SwallowReplies(link)
            | Fault::RefuseLink(link) => self.parts.links[link].set(Passage::Open),
            Fault::FlushScripts
            | Fault::KillConnections
            | Fault::FlushAll
            | Fault::CutLink(_)
            | Fault::FreezeLink(_) => {}
        }
        self.note(format!("the end of {fault:?}"), true);
        None
    }

    fn part(&mut self, fault: Fault) -> &mut Part {
        match fault {
            Fault::StopWorker(worker) | Fault::PauseWorker(worker) => &mut self.parts.workers[worker],
            _ => &mut self.parts.service,
        }
    }

    fn signal(&mut self, fault: Fault, name: &str) {
        if name == "TERM" {
            let is_young = self.age(fault) < YOUTH;
            self.told.push((fault, is_young));
        }
        match self.part(fault).as_mut().map(|part| (part.ended(), part)) {
            Some((None, part)) => part.signal(name),
            Some((Some(status), _)) => self.judge(fault, status),
            None => {}
        }
    }

    fn replace(&mut self, fault: Fault, waited: u64) -> Option<Step> {
        match self.part(fault).as_mut().and_then(crate::Process::ended) {
            None if waited < u64::try_from(ENDS.as_millis()).unwrap_or(u64::MAX) => {
                return Some(Step::Replace(fault, waited + LOOK_AGAIN));
            }
            None => self.oddities.push(format!("{fault:?}: it had not ended after {ENDS:?}")),
            Some(status) => self.judge(fault, status),
        }
        self.told.retain(|(told, _)| *told != fault);
        self.start(fault);
        self.note(format!("the end of {fault:?}"), true);
        None
    }

    fn kill_redis(&mut self) {
        let before = now();
        self.parts.primary().kill();
        if self.append == Append::EverySecond {
            let why = "Redis was killed, and syncs every second".to_string();
            self.losses.push(Loss { from: before.saturating_sub(EVERYSEC), to: now(), why });
        }
    }

    /// All that was answered before may be lost, and nothing that begins later.
    fn flush_all(&mut self) {
        self.parts.tell(&["FLUSHALL"]);
        self.losses.push(Loss { from: 0, to: now(), why: "somebody emptied Redis".to_string() });
    }

    /// The replica takes over; whether it was in a state for it.
    fn fail_over(&mut self, how: Failover) -> bool {
        let (old, new) = (self.parts.primary, 1 - self.parts.primary);
        if !self.parts.in_sync(new) {
            return false;
        }
        match how {
            Failover::Killed => self.parts.primary().kill(),
            Failover::Paused => self.parts.primary().pause(),
            Failover::HandedOver => return self.hand_over(old, new),
            Failover::CutOff | Failover::Demoted => {}
        }
        self.parts.tell_to(new, &["REPLICAOF", "NO", "ONE"]).expect("a replica that is to take over");
        let offset = self.parts.info(new, "replication", "second_repl_offset");
        let offset: u64 = offset.and_then(|offset| offset.parse().ok()).expect("where it took over");
        if how == Failover::CutOff {
            thread::sleep(SPLIT);
        }
        let port = self.parts.redis[new].port();
        if how == Failover::Demoted {
            self.parts.links.iter().for_each(|link| link.lead_new_to(port));
            self.parts.follow(old, new).expect("a primary that is to be demoted");
        } else {
            self.parts.links.iter().for_each(|link| link.lead_to(port));
        }
        let to = now();
        self.parts.primary = new;
        if let Some(sampler) = &self.sampler {
            let earlier = self.losses.last().map_or(0, |loss| loss.to);
            let from = sampler.last_within(offset.saturating_sub(1)).unwrap_or(earlier);
            let why =
                format!("the replica took over from server {old} at offset {}", offset.saturating_sub(1));
            self.losses.push(Loss { from, to, why });
            sampler.follow(port);
        }
        true
    }

    /// Both change places, and no write is lost; whether they did. Connections stay where they are.
    fn hand_over(&mut self, old: usize, new: usize) -> bool {
        let port = self.parts.redis[new].port();
        if self.parts.tell_to(old, &["FAILOVER", "TO", "127.0.0.1", &port.to_string()]).is_none() {
            return false;
        }
        let begun = Instant::now();
        while self.parts.info(new, "replication", "role").as_deref() != Some("master") {
            if begun.elapsed() > HAND_OVER {
                self.parts.tell_to(old, &["FAILOVER", "ABORT"]);
                return false;
            }
            thread::sleep(WATCH);
        }
        self.parts.links.iter().for_each(|link| link.lead_new_to(port));
        self.parts.primary = new;
        if let Some(sampler) = &self.sampler {
            sampler.follow(port);
        }
        true
    }

    /// The old primary becomes the new one's replica.
    fn follow(&mut self, how: Failover) {
        let old = 1 - self.parts.primary;
        match how {
            Failover::Killed => self.parts.redis[old].restart(),
            Failover::Paused => self.parts.redis[old].resume(),
            Failover::CutOff => {}
            Failover::Demoted | Failover::HandedOver => return,
        }
        if self.parts.follow(old, self.parts.primary).is_none() {
            self.oddities.push(format!("server {old} does not follow"));
        }
    }
}
