use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use super::digest::Digest;
use super::elided;
use super::frame::{Frame, Input};
use super::reader::{FORMAT, MAGIC};
use super::ring::Sink;
use crate::{
    Backlogged, Config, ConfigError, Credit, Engine, Event, Held, Identity, Millis, NewJob, Reply, Request,
    Take, Ticket, Token, Transmit, UnixMs, Verdict, Wakeup,
};

/// An engine whose inputs may be recorded: it has the verbs of an [`Engine`], and dereferences to it for its getters.
///
/// Without a sink it is the engine. With one, each input is put down before the engine is told it, so that an input at
/// which the engine panics is the last of the recording.
pub struct Recorded {
    engine: Engine,
    tape: Option<Box<Tape>>,
}

struct Tape {
    sink: Box<dyn Sink + Send>,
    bytes: Vec<u8>,
    /// The engine may have something to send.
    is_stirred: bool,
    wants_state: bool,
}

impl Recorded {
    /// A new engine, as of [`Engine::new`], recorded if there is a sink.
    pub fn new(
        config: Config,
        identity: Identity,
        now: Millis,
        sink: Option<Box<dyn Sink + Send>>,
    ) -> Result<Recorded, ConfigError> {
        let start = sink.is_some().then(|| Frame::Start { config: config.clone(), identity, now });
        let engine = Engine::new(config, identity, now)?;
        let tape = sink.map(|sink| {
            let mut tape = Tape { sink, bytes: Vec::new(), is_stirred: true, wants_state: false };
            if let Some(start) = start {
                tape.put(&start, true);
            }
            Box::new(tape)
        });
        Ok(Recorded { engine, tape })
    }

    /// What a recording begins with, in front of what the sink was given. `origin` is the wall clock at the engine's 0.
    pub fn header(origin: UnixMs) -> Vec<u8> {
        let version = env!("CARGO_PKG_VERSION").to_string();
        let header = framed(Vec::new(), &Frame::Header { version, origin });
        [MAGIC.as_slice(), &FORMAT.to_le_bytes(), &header].concat()
    }

    /// See [`Engine::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Millis) {
        self.tell(now, || Input::Timeout, |engine| engine.handle_timeout(now));
    }

    /// See [`Engine::handle_replies`].
    pub fn handle_replies(&mut self, now: Millis, ticket: Ticket, replies: impl IntoIterator<Item = Reply>) {
        if self.tape.is_none() {
            return self.engine.handle_replies(now, ticket, replies);
        }
        let replies: Vec<Reply> = replies.into_iter().collect();
        let body_limit = self.engine.config().body_limit;
        let kept = replies.iter().map(|reply| elided::reply(reply.clone(), body_limit)).collect();
        self.tell(now, || Input::Replies(ticket, kept), |engine| engine.handle_replies(now, ticket, replies));
    }

    /// See [`Engine::handle_loss`].
    pub fn handle_loss(&mut self, now: Millis, ticket: Ticket) {
        self.tell(now, || Input::Loss(ticket), |engine| engine.handle_loss(now, ticket));
    }

    /// See [`Engine::handle_wakeup`].
    pub fn handle_wakeup(&mut self, now: Millis, wakeup: Wakeup) {
        let kept = self.tape.is_some().then(|| wakeup.clone());
        self.tell_kept(now, kept.map(Input::Wakeup), |engine| engine.handle_wakeup(now, wakeup));
    }

    /// See [`Engine::publish`].
    pub fn publish(&mut self, now: Millis, token: Token, job: NewJob) -> Result<(), Backlogged<NewJob>> {
        let Recorded { engine, tape: Some(tape) } = self else {
            return self.engine.publish(now, token, job);
        };
        let before = engine.events().len();
        tape.input(engine, now, Input::Publish(token, job.clone()));
        let done = engine.publish_as(now, token, job, |job, config| {
            let entry = job.into_entry(config.compression)?;
            tape.put(&Frame::Stored(entry.record.len() as u64), false);
            Ok(entry)
        });
        tape.decided(done.is_ok(), engine, before);
        done
    }

    /// See [`Engine::take`].
    pub fn take(&mut self, now: Millis, token: Token, want: Take) -> Result<(), Backlogged<Take>> {
        let kept = self.tape.is_some().then(|| want.clone());
        let kept = kept.map(|want| Input::Take(token, want));
        self.tell_kept(now, kept, |engine| engine.take(now, token, want))
    }

    /// See [`Engine::request`].
    pub fn request(
        &mut self,
        now: Millis,
        token: Token,
        request: Request,
    ) -> Result<(), Backlogged<Request>> {
        let kept = self.tape.is_some().then(|| request.clone());
        let kept = kept.map(|request| Input::Request(token, request));
        self.tell_kept(now, kept, |engine| engine.request(now, token, request))
    }

    /// See [`Engine::settle`].
    pub fn settle(&mut self, now: Millis, held: Held, verdict: Verdict) {
        let kept = self.tape.is_some().then(|| Input::Settle(held, verdict.clone()));
        self.tell_kept(now, kept, |engine| engine.settle(now, held, verdict));
    }

    /// See [`Engine::forget`].
    pub fn forget(&mut self, now: Millis, token: Token) {
        self.tell(now, || Input::Forget(token), |engine| engine.forget(now, token));
    }

    /// See [`Engine::drain`].
    pub fn drain(&mut self, now: Millis) {
        self.tell(now, || Input::Drain, |engine| engine.drain(now));
    }

    /// See [`Engine::poll_transmit`].
    #[must_use]
    pub fn poll_transmit(&mut self, credit: Credit) -> Option<Transmit<'_>> {
        let Recorded { engine, tape } = self;
        let Some(tape) = tape.as_mut().filter(|tape| tape.is_stirred) else {
            return engine.poll_transmit(credit);
        };
        let (now, before) = (engine.now(), engine.events().len());
        let kept = Some(credit).filter(|credit| *credit != Credit::UNLIMITED);
        tape.input(engine, now, Input::Poll(kept));
        let mut digest = Digest::new();
        let ticket = engine.poll_transmit(credit).map(|transmit| digest.transmit(&transmit));
        if ticket.is_none() {
            digest.dry(engine);
            tape.is_stirred = kept.is_some();
        }
        digest.input(true, engine, before);
        tape.put(&Frame::Decided(digest.finish()), false);
        engine.flight(ticket?)
    }

    /// See [`Engine::poll_event`].
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.engine.poll_event()
    }

    fn tell<T: Outcome>(
        &mut self,
        now: Millis,
        input: impl FnOnce() -> Input,
        tell: impl FnOnce(&mut Engine) -> T,
    ) -> T {
        let kept = self.tape.is_some().then(input);
        self.tell_kept(now, kept, tell)
    }

    fn tell_kept<T: Outcome>(
        &mut self,
        now: Millis,
        input: Option<Input>,
        tell: impl FnOnce(&mut Engine) -> T,
    ) -> T {
        let Recorded { engine, tape } = self;
        let Some((tape, input)) = tape.as_mut().zip(input) else { return tell(engine) };
        tape.input(engine, now, input);
        let before = engine.events().len();
        let outcome = tell(engine);
        tape.decided(outcome.is_accepted(), engine, before);
        outcome
    }
}

impl Deref for Recorded {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = self.engine.identity();
        f.debug_struct("Recorded").field("identity", &identity).field("is_on", &self.tape.is_some()).finish()
    }
}

/// What a verb answers at once.
trait Outcome {
    fn is_accepted(&self) -> bool;
}

impl Outcome for () {
    fn is_accepted(&self) -> bool {
        true
    }
}

impl<T> Outcome for Result<(), Backlogged<T>> {
    fn is_accepted(&self) -> bool {
        self.is_ok()
    }
}

impl Tape {
    fn input(&mut self, engine: &Engine, now: Millis, input: Input) {
        let is_between = self.wants_state && engine.events().len() == 0;
        if let Some(Ok(state)) = is_between.then(|| engine.save(Vec::new())) {
            self.put(&Frame::Checkpoint(state), true);
        }
        self.is_stirred = true;
        self.put(&Frame::Input { now, input }, false);
    }

    fn decided(&mut self, is_accepted: bool, engine: &Engine, before: usize) {
        let mut digest = Digest::new();
        digest.input(is_accepted, engine, before);
        self.put(&Frame::Decided(digest.finish()), false);
    }

    fn put(&mut self, frame: &Frame, is_fresh: bool) {
        let mut bytes = core::mem::take(&mut self.bytes);
        bytes.clear();
        self.bytes = framed(bytes, frame);
        self.wants_state = self.sink.put(&self.bytes, is_fresh);
    }
}

/// A frame behind its length, appended.
fn framed(bytes: Vec<u8>, frame: &Frame) -> Vec<u8> {
    let begin = bytes.len();
    let mut bytes = postcard::to_extend(frame, bytes).unwrap_or_default();
    let len = bytes.len() - begin.min(bytes.len());
    let mut prefix = [0; 10];
    let prefix = postcard::to_slice(&(len as u64), &mut prefix).unwrap_or_default();
    bytes.splice(begin..begin, prefix.iter().copied());
    bytes
}
