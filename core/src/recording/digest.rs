use core::fmt::{self, Write};

use postcard::ser_flavors::Flavor;
use serde::Serialize;

use crate::{Answer, Engine, Event, Fault, Ticket, Transmit};

/// FNV-1a of what an engine has decided, bodies left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digest(u32);

impl Digest {
    pub(super) fn new() -> Digest {
        Digest(0x811c_9dc5)
    }

    pub(super) fn finish(self) -> u32 {
        self.0
    }

    /// Nothing was to be sent: when to wake the engine instead.
    pub(super) fn dry(&mut self, engine: &Engine) {
        self.add(&engine.poll_timeout());
    }

    /// Answers its ticket.
    pub(super) fn transmit(&mut self, transmit: &Transmit<'_>) -> Ticket {
        self.add(&(transmit.ticket, transmit.shard, transmit.commands, transmit.forms));
        transmit.ticket
    }

    /// What an input was answered at once, and the events after the first `before` that were there already.
    pub(super) fn input(&mut self, is_accepted: bool, engine: &Engine, before: usize) {
        self.add(&is_accepted);
        engine.events().skip(before).for_each(|event| self.event(event));
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Answered { token, answer: Ok(answer) } => {
                self.add(&(0u8, token));
                self.answer(answer);
            }
            Event::Answered { token, answer: Err(fault) } => {
                self.add(&(1u8, token));
                self.fault(fault);
            }
            Event::Run(job) => {
                self.add(&(2u8, job.held, &job.lease, job.attempt, job.due, job.lease_ends, job.late_ms));
            }
            Event::Abandon(held) => self.add(&(3u8, held)),
            Event::Settled { held, outcome } => self.add(&(4u8, held, outcome)),
            Event::Unsettled(held) => self.add(&(5u8, held)),
            Event::Tended { queue, ended, expired, purged, forwarded } => {
                self.add(&(6u8, queue, ended, expired, purged, forwarded));
            }
            Event::Fault(fault) => {
                self.add(&7u8);
                self.fault(fault);
            }
            Event::Drained => self.add(&8u8),
            Event::Ended(fault) => {
                self.add(&9u8);
                self.fault(fault);
            }
        }
    }

    fn answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Published { id, due, replaced } => self.add(&(0u8, id, due, replaced)),
            Answer::Duplicate { id } => self.add(&(1u8, id)),
            Answer::Taken(jobs) => {
                self.add(&(2u8, jobs.len()));
                for job in jobs {
                    self.add(&(&job.lease, job.attempt, job.due, job.lease_ends));
                }
            }
            Answer::Settled(outcome) => self.add(&(3u8, outcome)),
            Answer::Extended(outcome, end) => self.add(&(4u8, outcome, end)),
            Answer::Cancelled(outcomes) => self.add(&(5u8, outcomes)),
            Answer::Rescheduled(outcomes) => self.add(&(6u8, outcomes)),
            Answer::Inspected(job) => self.add(&(7u8, job.as_ref().map(|job| (&job.id, job.at)))),
            Answer::Listed { jobs, more } => self.add(&(8u8, jobs.len(), more)),
            Answer::Counted(stats) => self.add(&(9u8, stats)),
            Answer::Named { queues, cursor } => self.add(&(10u8, queues, cursor)),
            Answer::DeadMoved { moved, left, outcomes } => self.add(&(11u8, moved, left, outcomes)),
            Answer::Configured { cfgver } => self.add(&(12u8, cfgver)),
            Answer::Conflict { cfgver } => self.add(&(13u8, cfgver)),
            Answer::Destroyed(sizes) => {
                self.add(&(14u8, sizes.map(|sizes| (sizes.waiting, sizes.leased, sizes.dead))));
            }
            Answer::Opened { layout, shards } => self.add(&(15u8, layout, shards)),
            Answer::Server { version, policy } => self.add(&(16u8, version, policy)),
        }
    }

    fn fault(&mut self, fault: &Fault) {
        let _ = write!(self, "{fault}");
    }

    fn add(&mut self, part: &impl Serialize) {
        if let Ok(Digest(sum)) = postcard::serialize_with_flavor(part, *self) {
            self.0 = sum;
        }
    }

    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
}

impl Flavor for Digest {
    type Output = Digest;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.byte(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Digest> {
        Ok(self)
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.byte(byte));
        Ok(())
    }
}
