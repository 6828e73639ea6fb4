//! The life of a process that cron starts: look, take what is due, deliver it, settle, and leave in time.

use std::collections::VecDeque;

use delayline_core::{
    Answer, Config, Credit, Engine, Event, Fault, Held, Identity, Job, Millis, Pumping, SettleOutcome,
    Shards, TimeoutReason, Token, Verdict,
};
use litemap::LiteMap;

use crate::air::{Air, Delivered, Woke, land, trouble};
use crate::rest::Landed;
use crate::{Ended, Failure, Limits, Summary, World};

const OPENING: Token = Token(0);
/// The requests beside its delivery that a job needs: to take it, and to settle it, twice if need be.
const LEAST: u32 = 3;

/// The engine's config for a run within these limits, from one that says what is special about it.
pub fn config(limits: &Limits, config: Config) -> Config {
    Config { pump: Pumping::WhenDue, lease_ms: limits.lease_ms(), flight_ms: limits.flight_ms, ..config }
}

/// Looks at every shard, delivers what is due in the queues that `config` subscribes to, tends the others, waits for what
/// is due soon, and leaves within the limits; `identity` is random, and new for every run. With `open` the deployment's
/// layout is checked first, in the first request.
///
/// Whatever happens to it, also if it is dropped at an await, Redis holds every job that was not acknowledged: at worst
/// until its lease ends. Runs side by side do not harm each other.
///
/// # Errors
/// What is to be shown as a failed run: see [`Failure`].
pub async fn run<W: World>(
    world: &W,
    config: Config,
    limits: Limits,
    identity: Identity,
    open: bool,
) -> Result<Summary, Failure> {
    let started = world.now();
    let shards = config.shards;
    let engine = Engine::new(config, identity, started)?;
    let credit = Credit { trips: limits.requests, per_job: limits.per_job };
    let mut run = Run {
        engine,
        credit,
        leaves: started + limits.for_ms,
        ends: started + limits.longest_ms(),
        now: started,
        limits,
        waiting: VecDeque::new(),
        verdicts: LiteMap::new(),
        again: None,
        answered: false,
        leaving: false,
        summary: Summary::default(),
        shards,
    };
    if open {
        let opened = run.engine.open(started, OPENING, shards, run.limits.for_ms);
        debug_assert!(opened.is_ok(), "a new engine has room");
    }
    run.live(world).await?;
    run.judge()
}

struct Run {
    engine: Engine,
    limits: Limits,
    credit: Credit,
    shards: Shards,
    /// When nothing new is taken any more.
    leaves: Millis,
    /// When it must be over.
    ends: Millis,
    now: Millis,
    /// Jobs whose delivery is not begun.
    waiting: VecDeque<Job>,
    /// Verdicts that are on their way to Redis.
    verdicts: LiteMap<Held, Verdict>,
    /// When the first of the jobs is due again that were not done.
    again: Option<Millis>,
    /// Whether Redis carried anything out.
    answered: bool,
    leaving: bool,
    summary: Summary,
}

impl Run {
    async fn live<W: World>(&mut self, world: &W) -> Result<(), Failure> {
        let mut air = Air::new();
        loop {
            self.turn(world, &mut air)?;
            let Some(until) = self.until(&air) else {
                self.summary.unsettled += (air.delivering() + self.verdicts.len()) as u64;
                let again_ms = self.again.map(|again| again.since(self.now));
                self.summary.next_ms = self.summary.next_ms.into_iter().chain(again_ms).min();
                return Ok(());
            };
            let woke = air.next(world.sleep(until.since(self.now).max(1))).await;
            self.now = self.now.max(world.now());
            match woke {
                Woke::Landed(ticket, landed) => {
                    self.note(&landed);
                    land(&mut self.engine, self.now, ticket, landed);
                }
                Woke::Delivered(delivered) => self.delivered(delivered),
                Woke::Slept => self.now = self.now.max(until),
            }
        }
    }

    /// Does what is to be done now, as far as there is room for it.
    fn turn<'a, W: World>(&mut self, world: &'a W, air: &mut Air<'a>) -> Result<(), Failure> {
        loop {
            if self.engine.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                self.engine.handle_timeout(self.now);
            }
            while let Some(event) = self.engine.poll_event() {
                self.handle(event)?;
            }
            if !self.leaving && self.now >= self.leaves {
                self.leave(Ended::Time);
                continue;
            }
            self.begin(world, air);
            if air.len() < self.limits.at_once
                && let Some(transmit) = self.engine.poll_transmit(self.credit)
            {
                air.send(world, transmit);
                self.pay(1);
                continue;
            }
            let has_nothing = air.is_empty() && self.waiting.is_empty();
            if self.leaving || !has_nothing || !self.is_idle() {
                return Ok(());
            }
            let is_spent = self.credit.trips < self.limits.per_job + LEAST;
            self.leave(if is_spent { Ended::Requests } else { Ended::Idle });
        }
    }

    /// Whether there is nothing to wait for. What is due later is noted for whoever starts the next run; what is to be sent
    /// again is waited for, however short the stay.
    fn is_idle(&mut self) -> bool {
        let next = self.engine.poll_timeout();
        let stays = self.leaves.min(self.now + self.limits.stay_ms);
        self.summary.next_ms = next.map(|(at, _)| at.since(self.now));
        let is_far = |(at, why): (Millis, TimeoutReason)| why != TimeoutReason::Flight && at > stays;
        self.credit.trips == 0 || next.is_none_or(is_far)
    }

    /// Takes nothing new, and gives back what is not begun.
    fn leave(&mut self, why: Ended) {
        self.leaving = true;
        self.summary.ended = why;
        for job in std::mem::take(&mut self.waiting) {
            self.refund();
            if let Some(held) = job.held {
                self.settle(held, Verdict::Release);
            }
        }
        self.engine.drain(self.now);
    }

    /// How long to wait for something to happen; `None` if nothing will that matters.
    fn until(&self, air: &Air<'_>) -> Option<Millis> {
        let next = self.engine.poll_timeout().map(|(at, _)| at);
        let is_stuck = air.is_empty() && (self.credit.trips == 0 || next.is_none());
        let is_over = air.delivering() == 0 && self.engine.is_drained();
        if self.now >= self.ends || (self.leaving && (is_over || is_stuck)) {
            return None;
        }
        let limit = if self.leaving { self.ends } else { self.leaves };
        Some(next.map_or(limit, |at| at.min(limit)))
    }

    /// Begins deliveries, and keeps one place free for a round trip.
    fn begin<'a, W: World>(&mut self, world: &'a W, air: &mut Air<'a>) {
        let most = self.limits.at_once.saturating_sub(1).max(1);
        while air.delivering() < most && air.len() < self.limits.at_once {
            let Some(job) = self.waiting.pop_front() else { return };
            if let Some(held) = job.held {
                self.summary.delivered += 1;
                air.deliver(world, held, job);
            }
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Run(job) => {
                self.pay(self.limits.per_job);
                self.waiting.push_back(job);
            }
            Event::Abandon(held) => {
                self.summary.unsettled += 1;
                let waited = self.waiting.len();
                self.waiting.retain(|job| job.held != Some(held));
                if self.waiting.len() < waited {
                    self.refund();
                }
            }
            Event::Settled { held, outcome } => self.settled(held, outcome),
            Event::Unsettled(held) => {
                self.verdicts.remove(&held);
                self.summary.unsettled += 1;
            }
            Event::Tended { ended, expired, purged, forwarded, .. } => {
                let all = [ended, expired, purged, forwarded];
                self.summary.tended = all.into_iter().fold(self.summary.tended, u64::saturating_add);
            }
            Event::Answered { token: OPENING, answer } => self.opened(answer)?,
            Event::Fault(fault) | Event::Ended(fault) => self.summary.trouble = Some(fault.to_string()),
            Event::Answered { .. } | Event::Drained => {}
        }
        Ok(())
    }

    fn opened(&mut self, answer: Result<Answer, Fault>) -> Result<(), Failure> {
        match answer {
            Ok(Answer::Opened { layout, shards }) => Failure::if_other(self.shards, layout, shards),
            Ok(_) => Ok(()),
            Err(fault) => {
                self.summary.trouble = Some(fault.to_string());
                Ok(())
            }
        }
    }

    fn delivered(&mut self, Delivered { held, verdict, retry_ms }: Delivered) {
        let again_ms = match &verdict {
            Verdict::Nack { after_ms, .. } => Some(after_ms.unwrap_or(retry_ms)),
            Verdict::Snooze { after_ms } => Some(*after_ms),
            Verdict::Release => Some(0),
            Verdict::Ack | Verdict::Bury { .. } => None,
        };
        if let Some(ms) = again_ms {
            let again = self.now + ms;
            self.again = Some(self.again.map_or(again, |earlier| earlier.min(again)));
        }
        self.settle(held, verdict);
    }

    /// The verdict on a job whose lease has not been lost meanwhile.
    fn settle(&mut self, held: Held, verdict: Verdict) {
        let jobs = self.engine.held();
        self.engine.settle(self.now, held, verdict.clone());
        if self.engine.held() < jobs {
            self.verdicts.insert(held, verdict);
        }
    }

    fn settled(&mut self, held: Held, outcome: SettleOutcome) {
        let summary = &mut self.summary;
        match (outcome, self.verdicts.remove(&held)) {
            (_, None) => {}
            (SettleOutcome::Stale | SettleOutcome::Gone | SettleOutcome::Conflict(_), _) => {
                summary.unsettled += 1;
            }
            (SettleOutcome::Died, _) => summary.died += 1,
            (SettleOutcome::Done | SettleOutcome::Repeat | SettleOutcome::Expired, Some(verdict)) => {
                match verdict {
                    Verdict::Ack => summary.acked += 1,
                    Verdict::Bury { .. } => summary.died += 1,
                    Verdict::Nack { .. } | Verdict::Snooze { .. } => summary.retried += 1,
                    Verdict::Release => summary.released += 1,
                }
            }
        }
    }

    fn note(&mut self, landed: &Landed) {
        match trouble(landed) {
            None => self.answered = true,
            Some(why) => {
                self.summary.lost += 1;
                self.summary.trouble = Some(why);
            }
        }
    }

    fn pay(&mut self, requests: u32) {
        self.credit.trips = self.credit.trips.saturating_sub(requests);
        self.summary.requests += requests;
    }

    /// A delivery that was paid for will not be made.
    fn refund(&mut self) {
        self.credit.trips += self.limits.per_job;
        self.summary.requests -= self.limits.per_job;
    }

    fn judge(self) -> Result<Summary, Failure> {
        let summary = self.summary;
        if !self.answered {
            let why =
                summary.trouble.unwrap_or_else(|| "no request could be made within the limits".to_owned());
            return Err(Failure::Unreachable { why });
        }
        if summary.unsettled > 0 { Err(Failure::Unsettled { summary }) } else { Ok(summary) }
    }
}
