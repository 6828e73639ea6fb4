use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::iter;

use thiserror::Error;

use super::digest::Digest;
use super::elided;
use super::frame::{Frame, Input};
use super::reader::{Damaged, Header, Reader, Unreadable};
use crate::story::{Line, Story};
use crate::{Command, Credit, Engine, Entry, Identity, Millis, NewJob, Reply, Ticket};

/// How many round trips that were not answered are remembered, to tell late answers.
const FLOWN_MAX: usize = 1_024;

/// Steps an engine through a recording.
///
/// [`hear`](Replay::hear) answers what it is told next, [`decide`](Replay::decide) tells it; as an iterator it does both.
pub struct Replay<'a> {
    reader: Reader<'a>,
    ahead: Option<Result<Frame, Damaged>>,
    engine: Option<Engine>,
    told: Option<(Millis, Input)>,
    story: Story,
    flown: BTreeMap<Ticket, Vec<Command>>,
}

/// What an engine was told, and what it decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, by the engine's clock.
    pub at: Millis,
    /// What it heard: nothing, if it was only asked what to send.
    pub heard: Vec<Line>,
    /// What it decided.
    pub decided: Vec<Line>,
    /// How that differs from what was recorded.
    pub divergence: Option<Divergence>,
}

/// A decision that is not the one that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Divergence {
    /// Upon one input.
    #[error(
        "the engine decides otherwise than when this was recorded (digest {recorded:08x} then, {now:08x} now)"
    )]
    Decision {
        /// The digest of the decision that was recorded.
        recorded: u32,
        /// That of the one that was made now.
        now: u32,
    },
    /// The state at a checkpoint is another; the replay goes on from the recorded one.
    #[error("the engine's state is not the recorded one")]
    State,
}

impl<'a> Replay<'a> {
    /// Reads who made the recording.
    pub fn open(bytes: &'a [u8]) -> Result<Replay<'a>, Unreadable> {
        let reader = Reader::open(bytes)?;
        let origin = reader.header.origin;
        let story = if origin.0 == 0 { Story::new() } else { Story::since(origin) };
        Ok(Replay { reader, ahead: None, engine: None, told: None, story, flown: BTreeMap::new() })
    }

    /// Who made the recording.
    pub fn header(&self) -> &Header {
        &self.reader.header
    }

    /// The engine's identity, once it is made.
    pub fn identity(&self) -> Option<Identity> {
        self.engine.as_ref().map(Engine::identity)
    }

    /// What the engine is told next, in words; `None` at the end. After an error there is nothing more.
    pub fn hear(&mut self) -> Option<Result<Step, Damaged>> {
        loop {
            let frame = match self.next_frame()? {
                Ok(frame) => frame,
                Err(damaged) => return Some(Err(damaged)),
            };
            match frame {
                Frame::Start { config, identity, now } => {
                    self.engine = Engine::new(config, identity, now).ok();
                }
                Frame::Checkpoint(state) => match self.checkpoint(&state) {
                    Ok(None) => {}
                    Ok(Some(step)) => return Some(Ok(step)),
                    Err(damaged) => {
                        self.reader.end();
                        return Some(Err(damaged));
                    }
                },
                Frame::Input { now, input } => {
                    let heard = self.words(&input);
                    self.told = Some((now, input));
                    return Some(Ok(Step { at: now, heard, decided: Vec::new(), divergence: None }));
                }
                Frame::Header { .. } | Frame::Stored(_) | Frame::Decided(_) => {}
            }
        }
    }

    /// Tells the engine what [`hear`](Replay::hear) answered, and adds what it decides.
    ///
    /// # Panics
    /// If the engine does: it may have done so when this was recorded.
    pub fn decide(&mut self, step: &mut Step) -> Result<(), Damaged> {
        let Some((now, input)) = self.told.take() else { return Ok(()) };
        let stored = self.stored();
        let version = &self.reader.header.version;
        let Some(engine) = self.engine.as_mut() else {
            let damaged = Damaged::Senseless { version: version.clone() };
            self.ahead = None;
            self.reader.end();
            return Err(damaged);
        };
        let mut digest = Digest::new();
        if let Input::Poll(credit) = input {
            let credit = credit.unwrap_or(Credit::UNLIMITED);
            match engine.poll_transmit(credit) {
                Some(transmit) => {
                    let ticket = digest.transmit(&transmit);
                    step.decided
                        .extend(transmit.commands.iter().flat_map(|command| self.story.sent(command)));
                    self.flown.insert(ticket, transmit.commands.to_vec());
                }
                None => digest.dry(engine),
            }
            digest.input(true, engine, 0);
        } else {
            let token = input.token();
            let is_accepted = tell(engine, now, input, stored);
            digest.input(is_accepted, engine, 0);
            if let Some(token) = token.filter(|_| !is_accepted) {
                step.decided.extend(self.story.backlogged(token));
            }
        }
        let events = iter::from_fn(|| engine.poll_event());
        for event in events {
            step.decided.extend(self.story.told(&event));
        }
        while self.flown.len() > FLOWN_MAX {
            self.flown.pop_first();
        }
        step.divergence = self.compared(digest.finish());
        Ok(())
    }

    fn next_frame(&mut self) -> Option<Result<Frame, Damaged>> {
        self.ahead.take().or_else(|| self.reader.next())
    }

    /// The length of the record that the publish made which is about to be told.
    fn stored(&mut self) -> Option<u64> {
        match self.next_frame() {
            Some(Ok(Frame::Stored(len))) => Some(len),
            other => {
                self.ahead = other;
                None
            }
        }
    }

    fn compared(&mut self, now: u32) -> Option<Divergence> {
        match self.next_frame() {
            Some(Ok(Frame::Decided(recorded))) => {
                (recorded != now).then_some(Divergence::Decision { recorded, now })
            }
            other => {
                self.ahead = other;
                None
            }
        }
    }

    /// Begins with a state, or compares it with the one that was come to.
    fn checkpoint(&mut self, state: &[u8]) -> Result<Option<Step>, Damaged> {
        let own = self.engine.as_ref().map(|engine| engine.save(Vec::new()).unwrap_or_default());
        if own.as_deref() == Some(state) {
            return Ok(None);
        }
        let version = || self.reader.header.version.clone();
        let mut engine = Engine::restore(state).map_err(|_| Damaged::State { version: version() })?;
        for (held, queue, id) in engine.in_hand() {
            self.story.holds(held, queue.clone(), id.clone());
        }
        let (at, divergence) = (engine.now(), own.map(|_| Divergence::State));
        self.engine = Some(engine);
        Ok(divergence.map(|divergence| Step {
            at,
            heard: Vec::new(),
            decided: Vec::new(),
            divergence: Some(divergence),
        }))
    }

    fn words(&mut self, input: &Input) -> Vec<Line> {
        let story = &mut self.story;
        match input {
            Input::Poll(_) => Vec::new(),
            Input::Timeout => {
                let reason = self.engine.as_ref().and_then(Engine::poll_timeout).map(|(_, reason)| reason);
                story.timed_out(reason)
            }
            Input::Replies(ticket, replies) => self.answers(*ticket, replies),
            Input::Loss(ticket) => {
                let commands = self.landed(*ticket);
                commands.iter().flat_map(|command| self.story.lost(command)).collect()
            }
            Input::Wakeup(wakeup) => story.woken(wakeup),
            Input::Publish(token, job) => story.published(*token, job),
            Input::Take(token, want) => story.took(*token, want),
            Input::Request(token, request) => story.requested(*token, request),
            Input::Settle(held, verdict) => story.settled(*held, verdict),
            Input::Forget(token) => story.forgot(*token),
            Input::Drain => story.drained(),
        }
    }

    fn answers(&mut self, ticket: Ticket, replies: &[Reply]) -> Vec<Line> {
        let commands = self.landed(ticket);
        let answered = commands.iter().zip(replies);
        let mut lines: Vec<Line> =
            answered.flat_map(|(command, reply)| self.story.answered(command, reply)).collect();
        let missing = commands.iter().skip(replies.len());
        lines.extend(missing.flat_map(|command| self.story.lost(command)));
        lines
    }

    /// What a round trip carried.
    fn landed(&mut self, ticket: Ticket) -> Vec<Command> {
        let flown = self.flown.remove(&ticket);
        let flight = || Some(self.engine.as_ref()?.flight(ticket)?.commands.to_vec());
        flown.or_else(flight).unwrap_or_default()
    }
}

impl Iterator for Replay<'_> {
    type Item = Result<Step, Damaged>;

    fn next(&mut self) -> Option<Result<Step, Damaged>> {
        let mut step = match self.hear()? {
            Ok(step) => step,
            damaged => return Some(damaged),
        };
        Some(self.decide(&mut step).map(|()| step))
    }
}

/// Whether the engine took it.
fn tell(engine: &mut Engine, now: Millis, input: Input, stored: Option<u64>) -> bool {
    match input {
        Input::Poll(_) => {}
        Input::Timeout => engine.handle_timeout(now),
        Input::Replies(ticket, replies) => engine.handle_replies(now, ticket, replies),
        Input::Loss(ticket) => engine.handle_loss(now, ticket),
        Input::Wakeup(wakeup) => engine.handle_wakeup(now, wakeup),
        Input::Publish(token, job) => {
            let len = stored.unwrap_or(job.body.len() as u64);
            let encode = |job: NewJob, _: &_| {
                let entry =
                    NewJob { body: bytes::Bytes::new(), ..job }.into_entry(crate::Compression::Off)?;
                Ok(Entry { record: elided::zeros(len), ..entry })
            };
            return engine.publish_as(now, token, job, encode).is_ok();
        }
        Input::Take(token, want) => return engine.take(now, token, want).is_ok(),
        Input::Request(token, request) => return engine.request(now, token, request).is_ok(),
        Input::Settle(held, verdict) => engine.settle(now, held, verdict),
        Input::Forget(token) => engine.forget(now, token),
        Input::Drain => engine.drain(now),
    }
    true
}
