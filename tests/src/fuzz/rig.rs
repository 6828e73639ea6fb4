use std::collections::{BTreeMap, BTreeSet};

use delayline_core::{
    Answer, Ask, Command, Config, Credit, Engine, Event, Fence, Grant, Held, Identity, JobId, Lease, Millis,
    NewJob, QueueName, Reply, Request, Take, Ticket, Token, UnixMicros, Verdict,
};
use delayline_embedded::Store;

const ENGINE: Identity = Identity(0x5eed);
const EPOCH_US: u64 = 1_763_700_000_000_000;
const IN_AIR: usize = 64;
/// More than anything here can ask for at once: a batch a lane, and a request each.
const TRANSMITS: usize = 200;
const EVENTS: usize = 5_000;
const STILL: usize = 64;
const STEPS: usize = 20_000;

/// An engine that is watched: after each input all is polled, and what it says must fit what it was asked.
pub(super) struct Rig {
    pub(super) engine: Engine,
    pub(super) now: Millis,
    pub(super) air: Vec<(Ticket, Vec<Command>)>,
    pub(super) running: Vec<Held>,
    pub(super) waiting: BTreeMap<Token, Wanted>,
    pub(super) ahead_us: u64,
    pub(super) credit: Credit,
    store: Store,
    ended: BTreeSet<Held>,
    /// How often a lease was granted, or is to be settled for a caller.
    leases: BTreeMap<(QueueName, JobId, Fence), usize>,
    pub(super) abandoned: usize,
    tokens: u64,
    drained: bool,
}

/// What a caller may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Publish,
    Jobs(usize),
    Outcomes(usize),
    Other,
}

impl Rig {
    pub(super) fn new(config: Config) -> Rig {
        let store = Store::new(config.shards);
        let now = Millis(0);
        Rig {
            engine: Engine::new(config, ENGINE, now).expect("a config"),
            now,
            air: Vec::new(),
            running: Vec::new(),
            waiting: BTreeMap::new(),
            ahead_us: 0,
            credit: Credit::UNLIMITED,
            store,
            ended: BTreeSet::new(),
            leases: BTreeMap::new(),
            abandoned: 0,
            tokens: 0,
            drained: false,
        }
    }

    pub(super) fn redis_now(&self) -> UnixMicros {
        UnixMicros(EPOCH_US + self.now.0 * 1_000 + self.ahead_us)
    }

    pub(super) fn publish(&mut self, job: NewJob) {
        let token = self.asks(Wanted::Publish);
        if self.engine.publish(self.now, token, job).is_err() {
            self.waiting.remove(&token);
        }
    }

    pub(super) fn take(&mut self, take: Take) {
        let token = self.asks(Wanted::Jobs(take.count.into()));
        if self.engine.take(self.now, token, take).is_err() {
            self.waiting.remove(&token);
        }
    }

    /// Asks, unless all is done: who drains an engine asks nothing more of it.
    pub(super) fn request(&mut self, ask: Ask, timeout_ms: u64) {
        if self.drained {
            return;
        }
        if let Ask::Settle { lease: Lease { queue, id, fence, .. }, .. } = &ask {
            *self.leases.entry((queue.clone(), id.clone(), *fence)).or_default() += 1;
        }
        let token = self.asks(match &ask {
            Ask::Cancel { ids, .. } => Wanted::Outcomes(ids.len()),
            Ask::Reschedule { jobs, .. } => Wanted::Outcomes(jobs.len()),
            Ask::List { limit, .. } => Wanted::Jobs((*limit).into()),
            _ => Wanted::Other,
        });
        if self.engine.request(self.now, token, Request { ask, timeout_ms }).is_err() {
            self.waiting.remove(&token);
        }
    }

    fn asks(&mut self, wanted: Wanted) -> Token {
        let token = Token(self.tokens);
        self.tokens += 1;
        self.waiting.insert(token, wanted);
        token
    }

    pub(super) fn settle(&mut self, held: Held, verdict: Verdict) {
        if self.running.contains(&held) {
            self.running.retain(|running| *running != held);
            self.ended.insert(held);
        }
        self.engine.settle(self.now, held, verdict);
    }

    pub(super) fn forget(&mut self, token: Token) {
        self.waiting.remove(&token);
        self.engine.forget(self.now, token);
    }

    pub(super) fn replies(&mut self, ticket: Ticket, commands: &[Command], replies: Vec<Reply>) {
        for (command, reply) in commands.iter().zip(&replies) {
            let (Some(queue), Reply::Granted { jobs, .. }) = (command.queue(), reply) else { continue };
            for Grant { id, state, .. } in jobs {
                *self.leases.entry((queue.clone(), id.clone(), state.fence)).or_default() += 1;
            }
        }
        self.engine.handle_replies(self.now, ticket, replies);
    }

    /// The managed jobs that were settled, and of which nothing was heard since.
    pub(super) fn untold(&self) -> &BTreeSet<Held> {
        &self.ended
    }

    /// What the store answers to commands, as it should.
    pub(super) fn honest(&mut self, commands: &[Command]) -> Vec<Reply> {
        let now = self.redis_now();
        let replies = commands.iter().map(|command| self.store.execute(now, command)).collect();
        while self.store.poll_wakeup().is_some() {}
        replies
    }

    /// Polls all there is, then calls at the engine's own times as long as they are now: that must end.
    pub(super) fn poll_dry(&mut self) {
        self.poll();
        for _ in 0..STILL {
            match self.engine.poll_timeout() {
                Some((at, _)) if at <= self.now => self.engine.handle_timeout(self.now),
                _ => return,
            }
            self.poll();
        }
        panic!("the engine wants to be called at {} again and again", self.now);
    }

    fn poll(&mut self) {
        let (mut transmits, mut events, mut moved) = (0, 0, true);
        while std::mem::take(&mut moved) {
            while let Some(event) = self.engine.poll_event() {
                events += 1;
                assert!(events <= EVENTS, "an endless stream of events");
                self.hear(event);
                moved = true;
            }
            while let Some(transmit) = self.engine.poll_transmit(self.credit) {
                transmits += 1;
                if self.credit != Credit::UNLIMITED {
                    let left = self.credit.trips.checked_sub(1);
                    self.credit.trips = left.expect("a round trip is paid for");
                }
                assert!(transmits <= TRANSMITS, "an endless stream of round trips");
                let passes_on = |command: &Command| matches!(command, Command::Tend { .. });
                assert!(
                    !self.drained || transmit.commands.iter().all(passes_on),
                    "after all was done, only a wake-up is passed on, not {:?}",
                    transmit.commands
                );
                fits(transmit.commands);
                transmit.commands.iter().for_each(|command| settles(command, &self.leases));
                assert_eq!(transmit.commands.len(), transmit.forms.len());
                self.air.push((transmit.ticket, transmit.commands.to_vec()));
                moved = true;
            }
        }
        if self.air.len() > IN_AIR {
            self.air.drain(..self.air.len() - IN_AIR);
        }
        self.is_bounded();
    }

    fn is_bounded(&self) {
        let config = self.engine.config();
        assert_eq!(self.engine.is_drained(), self.drained);
        assert_eq!(self.engine.held(), self.running.len());
        assert!(self.running.len() <= config.slots.into(), "more jobs at once than there are slots");
        let publishes = self.waiting.values().filter(|wanted| **wanted == Wanted::Publish).count();
        assert!(publishes <= config.pending_jobs);
        let others = self.waiting.len() - publishes;
        assert!(others <= 4 * config.pending_requests, "takes, settles, changes and the rest");
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Answered { token, answer } => {
                let wanted = self.waiting.remove(&token);
                let wanted = wanted.unwrap_or_else(|| panic!("{token:?} is answered unasked: {answer:?}"));
                match answer {
                    Ok(Answer::Taken(jobs)) if !jobs.is_empty() && self.drained => {
                        panic!("{jobs:?} are taken after all was done")
                    }
                    Ok(answer) => answers(wanted, &answer),
                    Err(fault) => assert!(!fault.to_string().is_empty()),
                }
            }
            Event::Run(job) => {
                let held = job.held.expect("a managed job is held");
                assert!(!self.drained, "{held:?} is taken after all was done");
                if self.credit != Credit::UNLIMITED {
                    let left = self.credit.trips.checked_sub(self.credit.per_job);
                    self.credit.trips = left.expect("a delivery is paid for");
                }
                assert!(!self.running.contains(&held) && !self.ended.contains(&held), "{held:?} runs twice");
                self.running.push(held);
            }
            Event::Abandon(held) => {
                let before = self.running.len();
                self.running.retain(|running| *running != held);
                assert_eq!(self.running.len() + 1, before, "{held:?} was not running");
                self.abandoned += 1;
            }
            Event::Settled { held, .. } | Event::Unsettled(held) => {
                assert!(self.ended.remove(&held), "{held:?} ended twice, or never did");
            }
            Event::Drained => self.drained = true,
            Event::Tended { .. } => {}
            Event::Fault(fault) | Event::Ended(fault) => assert!(!fault.to_string().is_empty()),
        }
    }

    /// From now on the store is honest and answers, and all is paid for: all must be told, settled and drained.
    pub(super) fn finish(&mut self) {
        self.credit = Credit::UNLIMITED;
        self.engine.drain(self.now);
        for held in std::mem::take(&mut self.running) {
            self.ended.insert(held);
            self.engine.settle(self.now, held, Verdict::Ack);
        }
        for _ in 0..STEPS {
            self.poll_dry();
            if self.drained {
                break;
            }
            if self.air.is_empty() {
                let next = self.engine.poll_timeout();
                let (at, _) = next.expect("something is left to do, and a time to do it");
                self.now = at;
                self.engine.handle_timeout(at);
            } else {
                let (ticket, commands) = self.air.remove(0);
                let replies = self.honest(&commands);
                self.replies(ticket, &commands, replies);
            }
        }
        assert!(self.engine.is_drained(), "it was drained, but waits for {:?}", self.engine.poll_timeout());
        assert!(self.waiting.is_empty(), "nobody answered {:?}", self.waiting);
        assert!(self.ended.is_empty(), "nobody said what became of {:?}", self.ended);
        assert!(self.running.is_empty(), "{:?} run on", self.running);
        self.now = self.now + 1_000_000;
        self.engine.handle_timeout(self.now);
        self.poll_dry();
    }
}

/// No command asks for more than a script does at once.
fn fits(commands: &[Command]) {
    assert!((1..=32).contains(&commands.len()));
    for command in commands {
        let jobs = match command {
            Command::Publish { jobs, .. } => jobs.len(),
            Command::Settle { leases, .. } => leases.len(),
            Command::Extend { leases, .. } => leases.len(),
            Command::Cancel { ids, .. } => ids.len(),
            Command::Reschedule { jobs, .. } => jobs.len(),
            Command::Reserve { count, .. } => {
                assert!(*count <= Command::GRANTS_MAX);
                continue;
            }
            _ => continue,
        };
        assert!((1..=Command::JOBS_MAX).contains(&jobs), "{jobs} jobs in {command:?}");
    }
}

/// What is settled was granted, or a caller wanted it settled, and as often.
fn settles(command: &Command, known: &BTreeMap<(QueueName, JobId, Fence), usize>) {
    let Command::Settle { queue, leases, .. } = command else { return };
    let mut counted: BTreeMap<_, usize> = BTreeMap::new();
    for (id, fence, _) in leases {
        *counted.entry((queue.clone(), id.clone(), *fence)).or_default() += 1;
    }
    for (lease, times) in counted {
        assert!(
            known.get(&lease).is_some_and(|most| times <= *most),
            "{lease:?} is settled unasked, or too often"
        );
    }
}

fn answers(wanted: Wanted, answer: &Answer) {
    let fits = match (wanted, answer) {
        (Wanted::Jobs(most), Answer::Taken(jobs)) => {
            assert!(jobs.iter().all(|job| job.held.is_none()));
            jobs.len() <= most
        }
        (Wanted::Jobs(most), Answer::Listed { jobs, .. }) => jobs.len() <= most,
        (Wanted::Outcomes(jobs), Answer::Cancelled(outcomes)) => outcomes.len() == jobs,
        (Wanted::Outcomes(jobs), Answer::Rescheduled(outcomes)) => outcomes.len() == jobs,
        (Wanted::Other, Answer::Published { .. } | Answer::Taken(_)) => false,
        (Wanted::Publish, Answer::Published { .. } | Answer::Duplicate { .. }) | (Wanted::Other, _) => true,
        _ => false,
    };
    assert!(fits, "{wanted:?} was answered {answer:?}");
}
