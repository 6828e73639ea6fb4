//! Asking for something and waiting for the answer.

use delayline_core::{Answer, Credit, Engine, Event, Fault, Shards, Token};
use thiserror::Error;

use crate::air::{Air, Woke, land};
use crate::{Failure, World};

const OPENING: Token = Token(u64::MAX);

/// Why a deployment is not to be used. Nothing that was to follow has been sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOpened {
    /// It is another than is asked for.
    #[error(transparent)]
    Other(Failure),
    /// It did not say.
    #[error(transparent)]
    Silent(Fault),
}

/// Checks that the deployment has so many shards, and a layout that is known, before anything is asked of it: in another
/// one a job would be lost. The engine is to have been told nothing else.
pub async fn open<W: World>(
    world: &W,
    engine: &mut Engine,
    shards: Shards,
    timeout_ms: u64,
) -> Result<(), NotOpened> {
    let not_sent = NotOpened::Silent(Fault::NotSent(None));
    engine.open(world.now(), OPENING, shards, timeout_ms).map_err(|_| not_sent.clone())?;
    match answers(world, engine, 1).await.pop() {
        Some((_, Ok(Answer::Opened { layout, shards: found }))) => {
            Failure::if_other(shards, layout, found).map_err(NotOpened::Other)
        }
        Some((_, Err(fault))) if fault != Fault::Unknown => Err(NotOpened::Silent(fault)),
        _ => Err(not_sent),
    }
}

/// Drives the engine until it has answered `count` calls: publishes, takes and requests that it was told before. Each is
/// answered within its own timeout. Dropping the future loses the answers; what was sent may be carried out.
pub async fn answers<W: World>(
    world: &W,
    engine: &mut Engine,
    count: usize,
) -> Vec<(Token, Result<Answer, Fault>)> {
    concluded(world, engine, count, 0).await
}

/// [`answers`]; then goes on for `linger_ms` at most, until nothing is under way. After a take that waited, jobs that came
/// too late are given back by then, and so is the pump lease that it held.
pub async fn concluded<W: World>(
    world: &W,
    engine: &mut Engine,
    count: usize,
    linger_ms: u64,
) -> Vec<(Token, Result<Answer, Fault>)> {
    let mut answers = Vec::with_capacity(count);
    let mut air = Air::new();
    let mut now = world.now();
    let mut ends = None;
    loop {
        if engine.poll_timeout().is_some_and(|(at, _)| at <= now) {
            engine.handle_timeout(now);
        }
        loop {
            if let Some(transmit) = engine.poll_transmit(Credit::UNLIMITED) {
                air.send(world, transmit);
            } else if let Some(event) = engine.poll_event() {
                if let Event::Answered { token, answer } = event {
                    answers.push((token, answer));
                }
            } else {
                break;
            }
        }
        if answers.len() >= count {
            let ends = *ends.get_or_insert(now + linger_ms);
            if engine.is_idle() || now >= ends {
                return answers;
            }
        }
        let next = engine.poll_timeout().map_or(now + 1_000, |(at, _)| at);
        let until = ends.map_or(next, |ends| ends.min(next)).max(now + 1);
        let woke = air.next(world.sleep(until.since(now))).await;
        now = now.max(world.now());
        match woke {
            Woke::Landed(ticket, landed) => land(engine, now, ticket, landed),
            Woke::Delivered(_) => {}
            Woke::Slept => now = now.max(until),
        }
    }
}
