//! Random commands over a small universe, so that they meet each other.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use delayline_core::{
    Backoff, Ceiling, Command, Compression, Counters, DeadLetters, Due, Edit, Entry, Fence, Forward,
    Identity, JobId, Keyspace, Place, Prefix, PublishOutcome, QueueConfig, QueueName, Reason, Record,
    RecordDigest, Reply, Session, Settlement, Shard, Shards, Stored, UnixMicros, UnixMs,
};
use delayline_embedded::{Damage, Key};
use delayline_tests::{Dump, Random};

use crate::invariants;
use crate::rig::{NO_LIMIT, START, id};

const IDS: [&str; 12] = ["a", "B", "c", "D", "e-1", "e_1", "f.2", "F", "0", "10", "9", "~"];
const QUEUES: [&str; 3] = ["mail", "shop~orders", "x"];
const DESTINATIONS: [&str; 4] = ["list:to-list", "stream:to-stream", "list:to-stream", "stream:to-list"];
const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const KINDS: usize = 17;

/// The engines: the last one hears nothing though it says so.
pub(crate) const ENGINES: [Identity; 3] = [Identity(1), Identity(u64::MAX), Identity(77)];

/// States that scripts would not write.
const STATES: [&[u8]; 11] = [
    b"",
    b"text",
    b"L12",
    b"L99999999999999990001001000010017637000000000000",
    b"Q17637000000000000001001000010017637000000000000",
    b"W17637000000000000001001000010217637000000000000",
    b"W176370000000000000010010000102176370000000008123",
    b"E1763700000000000000100100001zz17637000000000000",
    b"W17637000000000000001001000012017637000000000000",
    b"W17637000000000000001501000010017637000000000000",
    b"X\xff\x00",
];
/// Texts that are no number, no flag and no session.
const TEXTS: [&[u8]; 9] =
    [b"text", b"-5", b"1.5", b"nan", b"inf", b"99999999999999999999", b" 7", b"007", b"\xff\x00"];
/// The fields of `meta` that do not count; `lane` is a session's.
const FIELDS: [&str; 18] = [
    "lane",
    "lo",
    "lo",
    "exp",
    "big",
    "born",
    "cfgver",
    "attempts",
    "backoff",
    "retention",
    "expire",
    "max_jobs",
    "max_bytes",
    "forward",
    "paused",
    "fence",
    "w",
    "mean",
];

/// What a sequence does next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Both stores carry it out.
    Run(Box<Command>),
    /// Both stores lose the record of a job.
    Lose(QueueName, JobId),
    /// Somebody else writes over a value of both stores.
    Damage(QueueName, Damage),
}

/// A queue, an engine, the lane's index and its verb.
type Lane = (QueueName, Identity, u8, char);

/// What the commands so far have shown, from which the next ones are drawn.
#[allow(clippy::struct_excessive_bools)] // none of them follows from another
pub(crate) struct World {
    pub(crate) now: UnixMicros,
    pub(crate) shards: Shards,
    random: Random,
    /// Whether the clock goes back at times.
    steps_back: bool,
    queues: Vec<QueueName>,
    weights: [u64; KINDS],
    lanes: u64,
    sequences: BTreeMap<Lane, (u64, Option<Command>)>,
    leases: Vec<(QueueName, JobId, Fence)>,
    born: BTreeMap<QueueName, UnixMicros>,
    cfgver: BTreeMap<QueueName, u64>,
    forwards: BTreeMap<QueueName, Forward>,
    listed: Vec<(UnixMs, JobId)>,
    /// What was stored of jobs, and when they were due, as far as was seen last.
    found: BTreeMap<(QueueName, JobId), (RecordDigest, UnixMs)>,
    /// A job that was seen to wait for another attempt.
    retried: Option<(QueueName, JobId)>,
    /// How many of a hundred steps damage the store.
    damages: u64,
    damaged: bool,
    /// How many of a hundred steps set a gate.
    gates: u64,
    /// The queue that has one.
    gated: Option<QueueName>,
    /// The queues that came to be: a store in memory holds no field of one that did not.
    there: BTreeSet<QueueName>,
    /// Whether a key was made one of another type.
    had_foreign: bool,
    /// Whether somebody wrote over how many jobs expire, or are large.
    lost_count: bool,
    /// The queue of a key that has another type now: a script is to meet it before others change what it is made of.
    foreign: Option<QueueName>,
    /// When the next thing happens in some queue, as far as was heard last.
    next: UnixMs,
}

impl World {
    /// The world of a seed. Each does some things often and others never.
    pub(crate) fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let queues = 1 + random.number(0..=2);
        let mut weights = [0; KINDS].map(|_| *random.pick(&[0, 1, 1, 2, 4]));
        for (weight, more) in weights.iter_mut().zip([6, 6, 3, 0, 0, 0, 0, 3]) {
            *weight += more;
        }
        World {
            now: UnixMicros(START),
            shards: Shards::new(if seed.is_multiple_of(2) { 1 } else { 4 }).expect("a number of shards"),
            queues: QUEUES.iter().take(whole(queues)).map(|name| name.parse().expect("a name")).collect(),
            weights,
            lanes: *random.pick(&[0, 0, 1, 255]),
            steps_back: random.percent(20),
            damages: *random.pick(&[0, 0, 0, 2, 8]),
            damaged: false,
            gates: if seed % 8 == 3 { 3 } else { 0 },
            gated: None,
            there: BTreeSet::new(),
            had_foreign: false,
            lost_count: false,
            foreign: None,
            random,
            sequences: BTreeMap::new(),
            leases: Vec::new(),
            found: BTreeMap::new(),
            retried: None,
            born: BTreeMap::new(),
            cfgver: BTreeMap::new(),
            forwards: BTreeMap::new(),
            listed: Vec::new(),
            next: UnixMs(0),
        }
    }

    /// Lets time pass, mostly forwards.
    pub(crate) fn pass(&mut self) {
        let kind = self.random.number(0..=99);
        let us = match kind {
            0..=19 => 0,
            20..=29 => self.until_next(),
            30..=49 => self.random.number(0..=2 * 1000),
            50..=69 => self.random.number(0..=300 * 1000),
            70..=89 => self.random.number(0..=3 * SECOND * 1000),
            90..=93 => 61 * SECOND * 1000,
            94..=95 => self.random.number(0..=300 * SECOND * 1000),
            96 => 11 * 60 * SECOND * 1000,
            97 => self.random.number(HOUR..=3 * HOUR) * 1000,
            98 => 1000 - self.now.0 % 1000,
            _ if !self.steps_back => 0,
            _ => {
                self.now.0 -= self.random.number(0..=2 * SECOND * 1000);
                0
            }
        };
        self.now.0 += us;
    }

    /// How long it is to around the next thing that happens, if that is soon: the last millisecond before it, or the first.
    fn until_next(&mut self) -> u64 {
        let at = self.next.0 * 1000 + self.random.number(0..=1999);
        let us = at.saturating_sub(self.now.0 + 1000);
        if us < 60 * SECOND * 1000 { us } else { 0 }
    }

    /// The next step.
    pub(crate) fn step(&mut self) -> Step {
        if let Some(queue) = self.foreign.take() {
            return Step::Run(Box::new(Command::Tend { queue, limit: 256, forward: None }));
        }
        if self.random.percent(self.damages) {
            let queue = self.queue();
            return Step::Damage(queue.clone(), self.damage(queue));
        }
        if let Some(step) = self.gate() {
            return step;
        }
        if self.random.percent(1) {
            return Step::Lose(self.queue(), self.id());
        }
        let total: u64 = self.weights.iter().sum();
        let mut at = self.random.number(0..=total - 1);
        let kind = self.weights.iter().position(|&weight| {
            let found = at < weight;
            at = at.saturating_sub(weight);
            found
        });
        Step::Run(Box::new(self.command(kind.unwrap_or(0))))
    }

    /// A queue gets a gate, or has it taken away before long.
    fn gate(&mut self) -> Option<Step> {
        if self.gates == 0 {
            return None;
        }
        if self.gated.is_some() {
            let queue = if self.random.percent(15) { self.gated.take()? } else { return None };
            return Some(Step::Damage(queue, Damage::Gate { gate: None }));
        }
        let queue = self.queue();
        if !self.there.contains(&queue) || !self.random.percent(self.gates) {
            return None;
        }
        self.gated = Some(queue.clone());
        Some(Step::Damage(queue, Damage::Gate { gate: Some("flow".to_owned()) }))
    }

    /// Whether a key is of another type that no script has met: only then is it made anew on a server.
    pub(crate) fn is_mending(&self) -> bool {
        self.foreign.is_some()
    }

    /// What is wrong with the keys of a queue, if nobody damaged them.
    pub(crate) fn broken(&self, dump: &Dump) -> Option<String> {
        if self.damaged {
            return None;
        }
        let keys = Keyspace::new(&Prefix::default(), self.shards);
        let broken = |queue| invariants::broken(dump, &keys, queue, self.now.floor_ms(), !self.steps_back);
        self.queues.iter().find_map(broken)
    }

    /// One value that scripts cannot read, or that is not what it should be.
    fn damage(&mut self, queue: QueueName) -> Damage {
        self.damaged = true;
        let score = *self.random.pick(&[f64::INFINITY, f64::NEG_INFINITY]);
        // What is put into a key of another type is refused by a server.
        match if self.had_foreign { self.random.number(7..=9) } else { self.random.number(0..=15) } {
            0..=2 | 12..=13 => {
                let text = Bytes::from_static(self.random.pick::<&[u8]>(&STATES));
                Damage::State { id: self.id(), text }
            }
            3..=5 => {
                let lane = format!("s{}{}0", self.random.pick(&ENGINES), self.random.pick(&['p', 'r', 'c']));
                let counters = Counters::default().named().map(|(name, _)| name);
                let field = match *self.random.pick(&[&FIELDS[..], &counters].concat()) {
                    "lane" => lane,
                    field => field.to_owned(),
                };
                let text = Bytes::from_static(self.random.pick::<&[u8]>(&TEXTS));
                self.lost_count |= ["exp", "big"].contains(&&*field);
                if self.there.contains(&queue) { Damage::Meta { field, text } } else { Damage::Unnamed }
            }
            6 => {
                let (key, id) = (*self.random.pick(&[Key::Due, Key::Leased, Key::Dead]), self.id());
                // Of what a server has before all times and what it has at the first, one comes first.
                let score = if key == Key::Due { f64::INFINITY } else { score };
                Damage::Score { key, id, score }
            }
            // A server makes `meta` of what is left beside the key, and so a queue of nothing.
            // And what was counted last is what a server counts when it next looks.
            // And no script mends a queue that has a gate.
            7 if self.there.contains(&queue) && !self.lost_count && self.gated.as_ref() != Some(&queue) => {
                let key = *self.random.pick(&Key::ALL);
                self.foreign = Some(queue);
                self.had_foreign = true;
                Damage::Foreign { key, text: "somebody else's".into() }
            }
            8 if !self.had_foreign && self.random.percent(50) => Damage::Unnamed,
            8 if !self.had_foreign => Damage::Agenda { score: f64::NEG_INFINITY },
            14.. => {
                let (id, _) = self.some_leases(&queue).swap_remove(0);
                Damage::Score { key: Key::Leased, id, score: f64::INFINITY }
            }
            _ => {
                let late = format!("{} {}", ENGINES[0], self.now.0 / 1000 + 10_000_000);
                let texts = ["", "x", "a 5", "somebody else's words", "----------- 99999999999999999999"];
                let text = if self.random.percent(60) { &late } else { *self.random.pick(&texts) };
                Damage::Lease { text: Bytes::from(text.to_owned()) }
            }
        }
    }

    fn command(&mut self, kind: usize) -> Command {
        let queue = self.queue();
        match kind {
            0 => self.publish(queue),
            1 => self.reserve(queue),
            2 => self.settle(queue),
            3 => Command::Extend { lease_ms: self.lease_ms(), leases: self.some_leases(&queue), queue },
            4 => self.cancel(queue),
            5 => self.reschedule(queue),
            6 => self.peek(),
            7 => Command::Tend {
                limit: *self.random.pick(&[1, 2, 3, 256]),
                forward: self.forward(&queue),
                queue,
            },
            8 => Command::Requeue { dead: self.dead(), queue },
            9 => Command::Purge { dead: self.dead(), queue },
            10 => Command::Configure { cfgver: self.version(&queue), config: self.config(), queue },
            11 => Command::Pause { cfgver: self.version(&queue), paused: self.random.percent(40), queue },
            12 => self.destroy(queue),
            13 => Command::Inspect { id: self.id(), queue },
            14 => self.list(queue),
            15 => Command::Stats { hours: *self.random.pick(&[0, 1, 3, 48]), queue },
            _ if self.random.percent(50) => Command::Open { shards: self.shards },
            _ => Command::Queues { shard: self.shard(), cursor: 0, count: 1000 },
        }
    }

    /// What a reply tells of leases, versions and births.
    pub(crate) fn learn(&mut self, command: &Command, reply: &Reply) {
        let Some(queue) = command.queue() else { return };
        if let Command::Publish { jobs, .. } = command {
            let dues = jobs.iter().map(|job| job.due.counted_from(self.now));
            self.next = dues.filter(|due| *due > self.now.floor_ms()).min().unwrap_or(self.next);
        }
        match reply {
            Reply::Published { since, outcomes, .. } => {
                self.there.insert(queue.clone());
                let Command::Publish { jobs, .. } = command else { return };
                for (job, outcome) in jobs.iter().zip(outcomes) {
                    if matches!(outcome, PublishOutcome::New | PublishOutcome::Replaced) {
                        let found = (RecordDigest::of(&job.record), job.due.counted_from(*since));
                        self.found.insert((queue.clone(), job.id.clone()), found);
                    }
                }
            }
            Reply::Found { job, .. } => self.find(queue, job),
            Reply::Destroyed { .. } => drop(self.there.remove(queue)),
            Reply::Granted { jobs, fence, next, .. } => {
                self.next = next.unwrap_or(self.next);
                self.leases.extend(jobs.iter().map(|job| (queue.clone(), job.id.clone(), *fence)));
                let surplus = self.leases.len().saturating_sub(30);
                self.leases.drain(..surplus);
            }
            Reply::Tended { next, .. } => self.next = next.unwrap_or(self.next),
            Reply::Configured { cfgver, .. } => {
                self.there.insert(queue.clone());
                self.cfgver.insert(queue.clone(), *cfgver);
                if let Command::Configure { config: QueueConfig { forward: Some(forward), .. }, .. } = command
                {
                    self.forwards.insert(queue.clone(), forward.clone());
                }
            }
            Reply::Counted { stats, .. } => {
                self.born.extend(stats.born.map(|born| (queue.clone(), born)));
                self.cfgver.insert(queue.clone(), stats.cfgver);
            }
            Reply::Listed { jobs, .. } => {
                for job in &jobs[..] {
                    self.find(queue, job);
                }
                self.listed.extend(jobs.last().map(|job| (job.at, job.id.clone())));
            }
            _ => {}
        }
    }

    fn find(&mut self, queue: &QueueName, job: &Stored) {
        let waits = matches!(job.place, Place::Ready | Place::Delayed);
        if waits && job.state.as_ref().is_some_and(|state| state.attempts > 0) {
            self.retried = Some((queue.clone(), job.id.clone()));
        }
        self.found.insert((queue.clone(), job.id.clone()), (RecordDigest::of(&job.record), job.at));
    }

    fn publish(&mut self, queue: QueueName) -> Command {
        self.batch(queue, 'p', |world, queue, session| {
            let ceiling = if world.random.percent(85) {
                NO_LIMIT
            } else {
                Ceiling { jobs: world.random.number(0..=10), bytes: world.random.number(0..=3_000) }
            };
            let jobs = world.ids().into_iter().map(|id| world.entry(id));
            let mut jobs: Vec<Entry> = jobs.collect();
            if let Some((_, id)) = world.retried.take_if(|(retried, _)| *retried == queue) {
                jobs.push(world.entry(id));
            }
            let jobs = jobs.into_iter().map(|job| world.edit(&queue, job)).collect();
            Command::Publish { queue, session, ceiling, jobs }
        })
    }

    fn reserve(&mut self, queue: QueueName) -> Command {
        self.batch(queue, 'r', |world, queue, session| Command::Reserve {
            queue,
            session,
            count: *world.random.pick(&[0, 1, 2, 3, 5, 12]),
            lease_ms: world.lease_ms(),
            max_bytes: *world.random.pick(&[1, 5_000, 10_000, 1 << 20]),
            wakeable: world.random.percent(80),
        })
    }

    fn cancel(&mut self, queue: QueueName) -> Command {
        self.batch(queue, 'c', |world, queue, session| Command::Cancel { queue, session, ids: world.ids() })
    }

    fn reschedule(&mut self, queue: QueueName) -> Command {
        self.batch(queue, 'c', |world, queue, session| {
            let jobs = world.ids().into_iter().map(|id| (id, world.due())).collect();
            Command::Reschedule { queue, session, jobs }
        })
    }

    /// The next batch of a lane, or the last one again, or one of its sequence or before it.
    fn batch(
        &mut self,
        queue: QueueName,
        verb: char,
        make: impl FnOnce(&mut World, QueueName, Session) -> Command,
    ) -> Command {
        let engine = *self.random.pick(&ENGINES);
        let lane = u8::try_from(self.random.number(0..=self.lanes)).unwrap_or(0);
        let key = (queue.clone(), engine, lane, verb);
        let (last, command) = self.sequences.get(&key).cloned().unwrap_or_default();
        let sequence = match (self.random.number(0..=99), command) {
            (0..=7, Some(again)) => return again,
            (8..=9, _) => last,
            (10..=11, _) => last.saturating_sub(1),
            (12..=13, _) => last + 1_000_000,
            _ => last + 1,
        };
        let command = make(self, queue, Session { engine, lane, sequence });
        if sequence >= last {
            self.sequences.insert(key, (sequence, Some(command.clone())));
        }
        command
    }

    fn settle(&mut self, queue: QueueName) -> Command {
        let leases = self.some_leases(&queue);
        let leases = leases.into_iter().map(|(id, fence)| (id, fence, self.settlement())).collect();
        Command::Settle { queue, tidy: self.random.percent(30), leases }
    }

    fn settlement(&mut self) -> Settlement {
        let after_ms = *self.random.pick(&[0, 0, 1, 500, 2_000, 61_000]);
        match self.random.number(0..=6) {
            0..=2 => Settlement::Ack,
            3 => Settlement::Nack { after_ms, reason: self.reason() },
            4 => Settlement::Snooze { after_ms },
            5 => Settlement::Release { after_ms },
            _ => Settlement::Bury { reason: self.reason() },
        }
    }

    fn peek(&mut self) -> Command {
        let shard = self.shard();
        let looks = self.random.percent(40);
        let own = |queue: &&QueueName| looks && self.shards.of(queue) == shard;
        let queues = self.queues.iter().filter(own).cloned().collect();
        Command::Peek {
            shard,
            engine: *self.random.pick(&ENGINES),
            entries: *self.random.pick(&[0, 1, 16]),
            lease_ms: *self.random.pick(&[0, 1_000, 30_000]),
            stay: self.random.percent(60),
            queues,
        }
    }

    fn destroy(&mut self, queue: QueueName) -> Command {
        if self.random.percent(10) {
            return Command::Destroy { queue, born: UnixMicros(0) };
        }
        let known = self.born.get(&queue).copied();
        Command::Destroy { queue, born: known.unwrap_or(UnixMicros(START)) }
    }

    fn list(&mut self, queue: QueueName) -> Command {
        let after = match self.random.number(0..=3) {
            0 => None,
            1 => Some((UnixMs(self.now.0 / 1000 - 1_000 + self.random.number(0..=2_000)), self.id())),
            // What a server has before all times is listed as at 0, in another order: no page begins there.
            _ => self.listed.last().filter(|(at, _)| at.0 > 0).cloned(),
        };
        let place = *self.random.pick(&[Place::Ready, Place::Delayed, Place::Leased, Place::Dead]);
        let max_bytes = *self.random.pick(&[1, 9_000, 1 << 20]);
        Command::List { queue, place, limit: *self.random.pick(&[1, 2, 5, 256]), max_bytes, after }
    }

    fn config(&mut self) -> QueueConfig {
        let backoffs = ["none", "fixed 5s", "exponential 1s..1h jitter 10%", "15s 3m 1h"];
        let backoff: Backoff = self.random.pick(&backoffs).parse().expect("a backoff");
        let forward = self.random.pick(&DESTINATIONS).parse().expect("a destination");
        QueueConfig {
            attempts: self.random.percent(50).then_some(*self.random.pick(&[1, 2, 3])),
            backoff: self.random.percent(50).then_some(backoff),
            retention_ms: self.random.percent(40).then_some(*self.random.pick(&[0, 1_000, 60_000, HOUR])),
            bury_expired: self.random.percent(50),
            max_jobs: self.random.percent(20).then_some(self.random.number(0..=8)),
            max_bytes: self.random.percent(20).then_some(self.random.number(0..=5_000)),
            forward: self.random.percent(30).then_some(forward),
            push: self.random.percent(20).then(|| "{\"url\":\"https://a.example/\"}".to_owned()),
        }
    }

    fn forward(&mut self, queue: &QueueName) -> Option<Forward> {
        let known = self.forwards.get(queue).cloned();
        if self.random.percent(10) { self.random.pick(&DESTINATIONS).parse().ok() } else { known }
    }

    fn version(&mut self, queue: &QueueName) -> Option<u64> {
        match self.random.number(0..=3) {
            0 => Some(self.random.number(0..=3)),
            1 => self.cfgver.get(queue).copied(),
            _ => None,
        }
    }

    fn dead(&mut self) -> DeadLetters {
        let until = UnixMs(self.now.0 / 1000 - self.random.number(0..=2_000));
        DeadLetters {
            ids: self.random.percent(50).then(|| self.ids()),
            until: self.random.percent(30).then_some(until),
            limit: *self.random.pick(&[0, 1, 2, 500]),
        }
    }

    fn some_leases(&mut self, queue: &QueueName) -> Vec<(JobId, Fence)> {
        let held: Vec<_> = self.leases.iter().filter(|lease| lease.0 == *queue).cloned().collect();
        (0..=self.random.number(0..=3))
            .map(|_| {
                if held.is_empty() || self.random.percent(10) {
                    return (self.id(), Fence(self.now.0 - self.random.number(0..=3)));
                }
                let (_, id, fence) = self.random.pick(&held).clone();
                (id, fence)
            })
            .collect()
    }

    fn entry(&mut self, id: JobId) -> Entry {
        let due = self.due();
        let ttl_ms = match (self.random.number(0..=9), due) {
            (0..=4, _) => 0,
            (5..=8, Due::After { ms }) => ms + self.random.number(1..=3_000),
            _ => self.random.number(1..=90_000),
        };
        let replace = self.random.percent(40);
        Entry { id, due, ttl_ms, replace, edit: None, record: self.record(ttl_ms > 0) }
    }

    /// The entry, or an edit by it of a job that was found, or of none.
    fn edit(&mut self, queue: &QueueName, entry: Entry) -> Entry {
        let found = self.found.get(&(queue.clone(), entry.id.clone())).copied();
        let (record, due) = match found {
            Some(found) if self.random.percent(40) => found,
            None if self.random.percent(3) => (RecordDigest::of(b"none"), UnixMs(self.now.0 / 1000)),
            _ => return entry,
        };
        let keeps_ttl = self.random.percent(50);
        let ttl_ms = if keeps_ttl { 0 } else { entry.ttl_ms };
        Entry { ttl_ms, replace: false, edit: Some(Edit { record, due, keeps_ttl }), ..entry }
    }

    fn due(&mut self) -> Due {
        let now = self.now.0 / 1000;
        match self.random.number(0..=9) {
            0..=3 => Due::After { ms: 0 },
            4..=6 => Due::After { ms: self.random.number(0..=5_000) },
            7 => Due::After { ms: self.random.number(0..=2 * HOUR) },
            8 => Due::At(UnixMs(now - self.random.number(0..=5_000))),
            _ => Due::At(UnixMs(now + self.random.number(0..=5_000))),
        }
    }

    fn record(&mut self, has_ttl: bool) -> Bytes {
        let bytes: &[u8] = match self.random.number(0..=29) {
            0 => b"",
            1 => b"garbage that is no record at all",
            2 => b"2120000000000a record of format 2",
            3 => b"112000e00000a reserved flag",
            4 => b"199000000000a head longer than the record",
            5 => b"11200002000012345678a delay without its place in the head",
            6 => b"1200000200001234567xa delay that is no number",
            7 => b"11200008000YXJtb3VyZWQ",
            8 => b"112000100000compressed",
            9 => b"01200000000000",
            10 => b"11200\x00000000",
            11 => b"2",
            _ => return self.good_record(has_ttl),
        };
        Bytes::copy_from_slice(bytes)
    }

    fn good_record(&mut self, has_ttl: bool) -> Bytes {
        let len = if self.random.percent(15) {
            self.random.number(4_000..=9_000)
        } else {
            self.random.number(0..=40)
        };
        let record = Record {
            has_ttl,
            lost_delay_ms: self.random.percent(25).then_some(*self.random.pick(&[0, 1, 2_000, 99_999_999])),
            dedup: self.random.percent(10).then(|| "key".to_string()),
            attempts: self.random.percent(30).then_some(*self.random.pick(&[1, 2, 3])),
            body: (0..len).map(|_| self.random.any().to_le_bytes()[0]).collect(),
            ..Record::default()
        };
        record.encode(Compression::Off).expect("fields in range").to_bytes()
    }

    fn reason(&mut self) -> Reason {
        Reason::new(match self.random.number(0..=3) {
            0 => "",
            1 => "timeout: é",
            2 => "00015000 looks like an extension",
            _ => return Reason::new(&"€ long ".repeat(200)),
        })
    }

    fn lease_ms(&mut self) -> u64 {
        *self.random.pick(&[1_000, 5_000, 30_000, 30_000, 700_000])
    }

    fn queue(&mut self) -> QueueName {
        self.random.pick(&self.queues).clone()
    }

    fn shard(&mut self) -> Shard {
        let queue = self.queue();
        self.shards.of(&queue)
    }

    fn id(&mut self) -> JobId {
        id(self.random.pick::<&str>(&IDS))
    }

    fn ids(&mut self) -> Vec<JobId> {
        (0..=self.random.number(0..=3)).map(|_| self.id()).collect()
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
