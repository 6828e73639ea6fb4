use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::base::{Base, BatchId, Timer};
use super::flight::{Flights, Landed, Lane};
use super::window::Window;
use crate::{
    Answer, Ask, Backlogged, Command, DeadLetters, Fault, JobId, Key, QueueConfig, Reply, Request, Sizes,
    Stats, Token, UnixMs,
};

const LIST_BYTES: u64 = 1 << 20;
const CONFLICTS_MAX: u32 = 16;

/// Ad-hoc requests, each a command or a few of them one after the other.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Requests {
    waiting: Window<Token, Box<Waiting>>,
}

#[derive(Serialize, Deserialize)]
struct Waiting {
    ask: Ask,
    batch: BatchId,
    deadline: Key,
    until: Option<UnixMs>,
    moved: u64,
    conflicts: u32,
    forgotten: bool,
}

/// What follows on a reply.
enum Next {
    Answer(Result<Answer, Fault>),
    Send(Command),
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn request(
        &mut self,
        base: &mut Base,
        flights: &mut Flights,
        token: Token,
        request: Request,
    ) -> Result<(), Backlogged<Request>> {
        if self.waiting.len() >= base.config.pending_requests {
            return Err(Backlogged(request));
        }
        let Request { ask, timeout_ms } = request;
        // What died before the request is meant, as near as this engine knows Redis's clock: a repeat means the same.
        let until = base.clock.redis_now(base.now).map(|(_, latest)| latest.ceil_ms());
        let Some(command) = first(&ask, until) else { return Ok(()) };
        let batch = flights.submit(base, Lane::Ask(token), command, base.config.resend_ms);
        let deadline = base.after(timeout_ms, Timer::AskDeadline(token));
        self.waiting.insert(
            token,
            Box::new(Waiting { ask, batch, deadline, until, moved: 0, conflicts: 0, forgotten: false }),
        );
        Ok(())
    }

    pub(super) fn handle_landed(
        &mut self,
        base: &mut Base,
        flights: &mut Flights,
        token: Token,
        landed: Landed,
    ) {
        let Some(waiting) = self.waiting.get_mut(&token) else { return };
        let next = match landed.reply {
            Some(reply) if !matches!(reply, Reply::Broken(_) | Reply::Gated { .. }) => {
                waiting.handle_reply(reply, landed.batch.maybe_ran)
            }
            other => Next::Answer(Err(landed.batch.fault(other))),
        };
        match next {
            Next::Send(command) => {
                waiting.batch = flights.submit(base, Lane::Ask(token), command, base.config.resend_ms);
            }
            Next::Answer(answer) => {
                base.wheel.cancel(waiting.deadline);
                if !waiting.forgotten {
                    base.answer(token, answer);
                }
                self.waiting.remove(&token);
            }
        }
    }

    pub(super) fn handle_deadline(&mut self, base: &mut Base, flights: &mut Flights, token: Token) {
        let Some(waiting) = self.waiting.remove(&token) else { return };
        let fault = match flights.waiting_mut(waiting.batch) {
            Some(batch) if !batch.maybe_ran && waiting.moved == 0 => Fault::NotSent(batch.refusal),
            _ => Fault::Unknown,
        };
        flights.drop_batch(base, waiting.batch);
        base.answer(token, Err(fault));
    }

    /// Who waits for an answer.
    pub(super) fn callers(&self) -> impl Iterator<Item = Token> {
        self.waiting.iter().filter(|(_, waiting)| !waiting.forgotten).map(|(token, _)| *token)
    }

    /// Nobody waits for the answer; what was asked is carried out all the same, to its last command.
    pub(super) fn forget(&mut self, base: &mut Base, token: Token) {
        if let Some(waiting) = self.waiting.get_mut(&token) {
            base.wheel.cancel(waiting.deadline);
            waiting.forgotten = true;
        }
    }
}

/// The command a request begins with; `None` for what the settler and the changer do.
fn first(ask: &Ask, until: Option<UnixMs>) -> Option<Command> {
    let dead = |ids: &Option<Vec<JobId>>| DeadLetters { ids: ids.clone(), until, limit: 500 };
    Some(match ask {
        Ask::Settle { .. } | Ask::Extend { .. } | Ask::Cancel { .. } | Ask::Reschedule { .. } => return None,
        Ask::Open { shards } => Command::Open { shards: *shards },
        Ask::Server => Command::Server,
        Ask::Inspect { queue, id } => Command::Inspect { queue: queue.clone(), id: id.clone() },
        Ask::List { queue, place, limit, after } => Command::List {
            queue: queue.clone(),
            place: *place,
            limit: *limit,
            max_bytes: LIST_BYTES,
            after: after.clone(),
        },
        Ask::Stats { queue, hours } => Command::Stats { queue: queue.clone(), hours: *hours },
        Ask::Queues { shard, cursor, count } => {
            Command::Queues { shard: *shard, cursor: *cursor, count: *count }
        }
        Ask::Requeue { queue, ids } => Command::Requeue { queue: queue.clone(), dead: dead(ids) },
        Ask::Purge { queue, ids } => Command::Purge { queue: queue.clone(), dead: dead(ids) },
        Ask::Configure { queue, cfgver: Some(cfgver), config } => {
            Command::Configure { queue: queue.clone(), cfgver: Some(*cfgver), config: config.clone() }
        }
        Ask::Configure { queue, .. } | Ask::Pause { queue, .. } | Ask::Destroy { queue } => {
            Command::Stats { queue: queue.clone(), hours: 0 }
        }
    })
}

impl Waiting {
    fn handle_reply(&mut self, reply: Reply, maybe_ran: bool) -> Next {
        let answer = match reply {
            Reply::Counted { stats, .. } => return self.handle_stats(stats),
            Reply::DeadMoved { until, moved, left, outcomes, .. } => {
                return self.handle_dead(until, moved, left, outcomes);
            }
            Reply::ConfigConflict { cfgver, found, .. } => {
                return match &self.ask {
                    Ask::Configure { config, .. } if maybe_ran && *config == found => {
                        Next::Answer(Ok(Answer::Configured { cfgver }))
                    }
                    _ => self.handle_conflict(cfgver),
                };
            }
            Reply::OtherSlot => return Next::Answer(Err(self.other_slot())),
            Reply::PauseConflict { cfgver, paused, .. } => {
                return match &self.ask {
                    Ask::Pause { paused: wanted, .. } if *wanted == paused => {
                        Next::Answer(Ok(Answer::Configured { cfgver }))
                    }
                    _ => self.handle_conflict(cfgver),
                };
            }
            Reply::Opened { layout, shards, .. } => Answer::Opened { layout, shards },
            Reply::Server { version, policy } => Answer::Server { version, policy },
            Reply::Found { job, .. } => Answer::Inspected(Some(job)),
            Reply::Listed { jobs, more, .. } => Answer::Listed { jobs, more },
            Reply::Named { queues, cursor } => Answer::Named { queues, cursor },
            Reply::Configured { cfgver, .. } => Answer::Configured { cfgver },
            Reply::Destroyed { waiting, leased, dead, .. } => {
                Answer::Destroyed(Some(Sizes { waiting, leased, dead }))
            }
            Reply::Gone { .. } if matches!(self.ask, Ask::Inspect { .. }) => Answer::Inspected(None),
            Reply::Gone { .. } => Answer::Destroyed(None),
            _ => return Next::Answer(Err(Fault::unexpected())),
        };
        Next::Answer(Ok(answer))
    }

    fn other_slot(&self) -> Fault {
        let Ask::Configure { queue, config: QueueConfig { forward: Some(forward), .. }, .. } = &self.ask
        else {
            return Fault::unexpected();
        };
        Fault::OtherSlot { queue: queue.clone(), forward: forward.clone() }
    }

    fn handle_stats(&mut self, stats: Stats) -> Next {
        match &self.ask {
            Ask::Configure { queue, config, .. } => Next::Send(Command::Configure {
                queue: queue.clone(),
                cfgver: Some(stats.cfgver),
                config: config.clone(),
            }),
            Ask::Pause { paused, .. } if stats.paused == *paused => {
                Next::Answer(Ok(Answer::Configured { cfgver: stats.cfgver }))
            }
            Ask::Pause { queue, paused } => Next::Send(Command::Pause {
                queue: queue.clone(),
                cfgver: Some(stats.cfgver),
                paused: *paused,
            }),
            // What does not know when it was born may still hold something.
            Ask::Destroy { queue } => {
                let born = stats.born.unwrap_or_default();
                Next::Send(Command::Destroy { queue: queue.clone(), born })
            }
            _ => Next::Answer(Ok(Answer::Counted(stats))),
        }
    }

    /// Somebody else changed the queue since it was read: read again, unless the caller named the version it replaces.
    fn handle_conflict(&mut self, cfgver: u64) -> Next {
        self.conflicts += 1;
        let named = matches!(&self.ask, Ask::Configure { cfgver: Some(_), .. });
        match &self.ask {
            Ask::Configure { queue, .. } | Ask::Pause { queue, .. }
                if !named && self.conflicts < CONFLICTS_MAX =>
            {
                Next::Send(Command::Stats { queue: queue.clone(), hours: 0 })
            }
            _ => Next::Answer(Ok(Answer::Conflict { cfgver })),
        }
    }

    fn handle_dead(&mut self, until: UnixMs, moved: u64, left: u64, outcomes: Vec<bool>) -> Next {
        self.moved += moved;
        self.until = Some(until);
        let (all, limit) = (DeadLetters { ids: None, until: self.until, limit: 500 }, 500);
        match &self.ask {
            Ask::Requeue { queue, ids: None } if moved == limit => {
                Next::Send(Command::Requeue { queue: queue.clone(), dead: all })
            }
            Ask::Purge { queue, ids: None } if moved == limit => {
                Next::Send(Command::Purge { queue: queue.clone(), dead: all })
            }
            _ => Next::Answer(Ok(Answer::DeadMoved { moved: self.moved, left, outcomes })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Credit, Engine, Event, Identity, Millis, QueueName, Request, Ticket, UnixMicros};

    const TIME: UnixMicros = UnixMicros(1_760_000_000_000_000);

    fn queue() -> QueueName {
        "orders".parse().unwrap()
    }

    fn engine() -> Engine {
        let config = Config { pending_requests: 2, ..Config::default() };
        Engine::new(config, Identity(7), Millis(0)).unwrap()
    }

    fn asks(engine: &mut Engine, token: u64, ask: Ask) -> bool {
        engine.request(Millis(0), Token(token), Request { ask, timeout_ms: 30_000 }).is_ok()
    }

    fn sent(engine: &mut Engine) -> (Ticket, Command) {
        let transmit = engine.poll_transmit(Credit::UNLIMITED).expect("a transmit");
        (transmit.ticket, transmit.commands[0].clone())
    }

    fn events(engine: &mut Engine) -> Vec<Event> {
        core::iter::from_fn(|| engine.poll_event()).collect()
    }

    #[test]
    fn a_forgotten_request_is_carried_out_to_its_last_command() {
        let mut engine = engine();
        assert!(asks(&mut engine, 1, Ask::Pause { queue: queue(), paused: true }));
        let (ticket, _) = sent(&mut engine);
        engine.forget(Millis(1), Token(1));
        engine.handle_replies(Millis(2), ticket, [Reply::Counted { time: TIME, stats: Stats::default() }]);
        let (ticket, command) = sent(&mut engine);
        assert!(matches!(command, Command::Pause { .. }), "{command:?}");
        engine.handle_replies(Millis(3), ticket, [Reply::Configured { time: TIME, cfgver: 1 }]);
        assert_eq!(events(&mut engine), []);
    }

    #[test]
    fn forgetting_makes_no_room_for_what_is_still_to_be_done() {
        let mut engine = engine();
        for token in 1..=2 {
            assert!(asks(&mut engine, token, Ask::Server));
            engine.forget(Millis(0), Token(token));
        }
        assert!(!asks(&mut engine, 3, Ask::Server));
        let (ticket, _) = sent(&mut engine);
        let reply = || Reply::Server { version: (7, 2, 4), policy: None };
        engine.handle_replies(Millis(1), ticket, [reply(), reply()]);
        assert!(asks(&mut engine, 3, Ask::Server));
    }

    #[test]
    fn an_answer_that_is_miscounted_twice_is_broken() {
        let mut engine = engine();
        assert!(asks(&mut engine, 1, Ask::Purge { queue: queue(), ids: None }));
        for _ in 0..2 {
            let (ticket, _) = sent(&mut engine);
            let (until, outcomes) = (UnixMs(0), Vec::new());
            let reply = Reply::DeadMoved { time: TIME, until, moved: u64::MAX, left: 0, outcomes };
            engine.handle_replies(Millis(1), ticket, [reply]);
        }
        let events = events(&mut engine);
        assert!(matches!(&*events, [Event::Answered { answer: Err(Fault::Broken(_)), .. }]), "{events:?}");
    }

    #[test]
    fn an_answer_of_another_kind_is_broken_the_second_time() {
        let mut engine = engine();
        let place = crate::Place::Ready;
        assert!(asks(&mut engine, 1, Ask::List { queue: queue(), place, limit: 2, after: None }));
        for _ in 0..2 {
            let (ticket, _) = sent(&mut engine);
            engine.handle_replies(Millis(1), ticket, [Reply::Configured { time: TIME, cfgver: 1 }]);
        }
        let events = events(&mut engine);
        let [Event::Answered { answer: Err(Fault::Broken(why)), .. }] = &*events else {
            panic!("{events:?}")
        };
        let names = [queue().as_str(), "List", "`delayline doctor --repair`"].map(|name| why.contains(name));
        assert_eq!(names, [true; 3], "{why}");
    }
}
