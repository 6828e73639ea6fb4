use bytes::Bytes;
use delayline_core::wire::decode;
use delayline_core::{
    Ask, Backoff, Command, Config, Credit, Due, ExtendOutcome, Fence, JobId, Lease, Millis, NewJob, Place,
    PublishOutcome, Pumping, QueueConfig, QueueName, Reason, Refusal, Reply, SettleOutcome, Shard, Shards,
    Subscription, Take, Ticket, UnixMicros, UnixMs, Verdict, VerdictKind, Wakeup,
};

use super::input::Input;
use super::rig::Rig;
use super::thrift::thrift;
use super::value::{KINDS, value};

pub(super) const QUEUES: [&str; 3] = ["a", "b", "c"];
const IDS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];
const REFUSALS: [Refusal; 13] = [
    Refusal::NoScript,
    Refusal::NotConnected,
    Refusal::Loading,
    Refusal::ReadOnly,
    Refusal::OutOfMemory,
    Refusal::Quota,
    Refusal::Throttled,
    Refusal::TooLarge,
    Refusal::Rejected,
    Refusal::Denied,
    Refusal::Unavailable,
    Refusal::NotKept,
    Refusal::Moved,
];
const INPUTS: usize = 400;

/// Whatever an engine hears and whenever, it says little, keeps to its config and its credit, knows when it wants to be
/// called, settles what was granted and nothing else, tells each caller once, and drains once its store is sane again.
///
/// # Panics
/// If it does not.
pub fn engine(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut rig = Rig::new(config(&mut input));
    let (credit, is_calm) = credit(&mut input);
    rig.credit = credit;
    rig.poll_dry();
    if is_calm {
        thrift(&mut rig, &mut input);
        return rig.finish();
    }
    for _ in 0..INPUTS {
        if input.is_empty() {
            break;
        }
        step(&mut rig, &mut input);
        rig.poll_dry();
    }
    rig.finish();
}

/// What can be paid for, and whether all answers arrive.
fn credit(input: &mut Input<'_>) -> (Credit, bool) {
    let kind = input.below(4);
    if kind < 2 {
        return (Credit::UNLIMITED, false);
    }
    let credit = Credit { trips: input.byte().into(), per_job: input.below(4).into() };
    (credit, kind == 3)
}

fn config(input: &mut Input<'_>) -> Config {
    let subscribed = usize::from(input.below(4));
    let subscriptions = QUEUES.iter().take(subscribed).map(|name| Subscription {
        queue: name.parse().expect("a name"),
        weight: u16::from(input.below(3)) + 1,
        max: u16::from(input.below(4)) + 1,
    });
    Config {
        subscriptions: subscriptions.collect(),
        shards: Shards::new(u16::from(input.below(3)) + 1).expect("few"),
        slots: u16::from(input.below(6)) + 1,
        pump: input.pick(&[Pumping::Never, Pumping::WhileTaking, Pumping::Always]),
        lease_ms: input.pick(&[1_000, 30_000, 86_400_000]),
        reserve_max: input.pick(&[1, 2, 100]),
        poll_ms: input.pick(&[100, 30_000]),
        flight_ms: input.pick(&[10, 5_000]),
        resend_ms: input.pick(&[1_000, 540_000]),
        pending_jobs: usize::from(input.below(8)) + 1,
        pending_bytes: 1 << 16,
        pending_requests: usize::from(input.below(4)) + 1,
        ..Config::default()
    }
}

fn step(rig: &mut Rig, input: &mut Input<'_>) {
    match input.below(24) {
        0..=2 => rig.publish(job(input)),
        3 | 4 => rig.take(take(input)),
        5 | 6 => {
            let ask = ask(rig, input);
            let timeout_ms = input.pick(&[0, 1, 100, 30_000, u64::MAX]);
            rig.request(ask, timeout_ms);
        }
        7 | 8 => {
            if let Some(held) = rig.running.get(usize::from(input.below(8))).copied() {
                let verdict = verdict(input);
                rig.settle(held, verdict.clone());
                if input.once_in(8) {
                    rig.settle(held, verdict);
                }
            }
        }
        9..=12 => {
            if let Some((ticket, commands)) = flight(rig, input) {
                let replies = rig.honest(&commands);
                rig.replies(ticket, &commands, replies);
            }
        }
        13 | 14 => {
            if let Some((ticket, commands)) = flight(rig, input) {
                let mut replies = rig.honest(&commands);
                for reply in &mut replies {
                    if input.flag() {
                        damage(reply, input);
                    }
                }
                if input.once_in(4) {
                    replies.truncate(input.below(3).into());
                }
                rig.replies(ticket, &commands, replies);
            }
        }
        15 | 16 => {
            if let Some((ticket, commands)) = flight(rig, input) {
                let replies: Vec<Reply> = commands.iter().map(|command| told(command, input)).collect();
                rig.replies(ticket, &commands, replies);
            }
        }
        17 => {
            if let Some((ticket, _)) = flight(rig, input) {
                rig.engine.handle_loss(rig.now, ticket);
            }
        }
        18 => rig.engine.handle_wakeup(rig.now, wakeup(input)),
        19 => wait(rig, input),
        20 => {
            if let Some((at, _)) = rig.engine.poll_timeout() {
                rig.now = at.min(rig.now + 86_400_000);
                rig.engine.handle_timeout(rig.now);
            }
        }
        21 => {
            let waiting = rig.waiting.keys().nth(input.below(8).into()).copied();
            if let Some(token) = waiting {
                rig.forget(token);
            }
        }
        22 => rig.ahead_us = input.number() % 100_000_000_000,
        _ => {
            if input.once_in(16) {
                rig.engine.drain(rig.now);
            } else if rig.credit != Credit::UNLIMITED {
                rig.credit.trips += u32::from(input.byte());
            }
        }
    }
}

/// Time passes, and goes back for whoever reads it late.
fn wait(rig: &mut Rig, input: &mut Input<'_>) {
    rig.now = rig.now + input.pick(&[0, 1, 10, 400, 1_000, 6_000, 31_000, 600_000, 86_400_000]);
    rig.engine.handle_timeout(rig.now);
    if input.once_in(8) {
        rig.engine.handle_timeout(Millis(rig.now.0 / 2));
    }
}

/// A round trip under way, mostly one that is answered once.
fn flight(rig: &mut Rig, input: &mut Input<'_>) -> Option<(Ticket, Vec<Command>)> {
    let index = usize::from(input.below(8)).min(rig.air.len().checked_sub(1)?);
    if input.once_in(16) { rig.air.get(index).cloned() } else { Some(rig.air.remove(index)) }
}

fn queue(input: &mut Input<'_>) -> QueueName {
    input.pick(&QUEUES).parse().expect("a name")
}

fn id(input: &mut Input<'_>) -> JobId {
    input.pick(&IDS).parse().expect("an id")
}

fn ids(input: &mut Input<'_>) -> Vec<JobId> {
    (0..input.below(5)).map(|_| id(input)).collect()
}

fn due(input: &mut Input<'_>) -> Due {
    match input.below(4) {
        0 => Due::After { ms: 0 },
        1 => Due::After { ms: input.byte().into() },
        2 => Due::After { ms: input.number() % 1_000_000_000 },
        _ => Due::At(UnixMs(input.number() % 4_000_000_000_000)),
    }
}

pub(super) fn job(input: &mut Input<'_>) -> NewJob {
    let body = Bytes::from(vec![b'x'; usize::try_from(input.number() % 20_000).unwrap_or(0)]);
    NewJob {
        generated: input.once_in(4),
        replace: input.once_in(4),
        due: due(input),
        ttl_ms: input.once_in(4).then(|| input.number() % 1_000_000_000),
        attempts: input.once_in(4).then(|| u16::from(input.byte())),
        backoff: input.once_in(8).then(|| Backoff::Fixed { ms: input.number() }),
        lost_delay_ms: input.once_in(8).then(|| input.number()),
        timeout_ms: input.pick(&[0, 1, 1_000, 30_000, u64::MAX]),
        ..NewJob::new(queue(input), id(input), body)
    }
}

fn take(input: &mut Input<'_>) -> Take {
    Take {
        queues: (0..=input.below(3)).map(|_| queue(input)).collect(),
        count: input.pick(&[1, 2, 256]),
        lease_ms: input.pick(&[1_000, 30_000]),
        wait_ms: input.pick(&[0, 1, 30_000, 300_000]),
    }
}

pub(super) fn verdict(input: &mut Input<'_>) -> Verdict {
    match input.below(5) {
        0 => Verdict::Ack,
        1 => Verdict::Nack { after_ms: input.some_number(), reason: Reason::from("x") },
        2 => Verdict::Snooze { after_ms: input.number() },
        3 => Verdict::Release,
        _ => Verdict::Bury { reason: Reason::default() },
    }
}

fn ask(rig: &Rig, input: &mut Input<'_>) -> Ask {
    let lease = |input: &mut Input<'_>| {
        let fence = Fence(input.number());
        Lease { queue: queue(input), id: id(input), fence, retry_ms: input.number() }
    };
    match input.below(16) {
        0 => Ask::Open { shards: rig.engine.config().shards },
        1 => Ask::Server,
        2 => Ask::Settle { lease: lease(input), verdict: verdict(input) },
        3 => Ask::Extend { lease: lease(input), lease_ms: input.pick(&[1_000, 1_001, 60_000]) },
        4 => Ask::Cancel { queue: queue(input), ids: ids(input) },
        5 => {
            let jobs = ids(input).into_iter().map(|id| (id, due(input))).collect();
            Ask::Reschedule { queue: queue(input), jobs }
        }
        6 => Ask::Inspect { queue: queue(input), id: id(input) },
        7 | 8 => Ask::List {
            queue: queue(input),
            place: input.pick(&[Place::Ready, Place::Delayed, Place::Leased, Place::Dead]),
            limit: input.pick(&[1, 2, 256]),
            after: input.flag().then(|| (UnixMs(input.number() % 4_000_000_000_000), id(input))),
        },
        9 => Ask::Stats { queue: queue(input), hours: input.pick(&[0, 1, 48]) },
        10 => Ask::Queues { shard: Shard(0), cursor: 0, count: 10 },
        11 => Ask::Requeue { queue: queue(input), ids: input.flag().then(|| ids(input)) },
        12 => Ask::Purge { queue: queue(input), ids: input.flag().then(|| ids(input)) },
        13 => Ask::Configure {
            queue: queue(input),
            cfgver: input.flag().then(|| input.byte().into()),
            config: QueueConfig {
                attempts: input.once_in(2).then_some(2),
                retention_ms: input.some_number(),
                bury_expired: input.flag(),
                max_jobs: input.flag().then(|| input.byte().into()),
                ..QueueConfig::default()
            },
        },
        14 => Ask::Pause { queue: queue(input), paused: input.flag() },
        _ => Ask::Destroy { queue: queue(input) },
    }
}

fn wakeup(input: &mut Input<'_>) -> Wakeup {
    match input.below(4) {
        0 => Wakeup::Ready(queue(input)),
        1 => Wakeup::Head(Shard(input.byte().into()), UnixMs(input.number())),
        2 => Wakeup::Subscribed,
        _ => Wakeup::Unsubscribed,
    }
}

/// A reply that is not the store's: refused, broken, of another kind, or read from a value with this kind's form.
fn told(command: &Command, input: &mut Input<'_>) -> Reply {
    match input.below(6) {
        0 => Reply::Refused(input.pick(&REFUSALS)),
        1 => Reply::Broken(input.text(20)),
        2 => {
            let kind = input.pick(&KINDS);
            decode(kind, value(kind, input))
        }
        _ => decode(command.kind(), value(command.kind(), input)),
    }
}

/// Makes an honest reply say too little, too much, or what cannot be.
fn damage(reply: &mut Reply, input: &mut Input<'_>) {
    let number = input.number();
    match reply {
        Reply::Published { time, since, outcomes, full } => {
            (*time, *since) = (UnixMicros(number), UnixMicros(input.number()));
            resize(
                outcomes,
                input.pick(&[PublishOutcome::New, PublishOutcome::Duplicate, PublishOutcome::Full]),
                input,
            );
            *full = None;
        }
        Reply::Granted { time, lease_end, jobs, next, more, open, .. } => {
            if let Some(job) = jobs.first().cloned() {
                resize(jobs, job, input);
            }
            (*time, *lease_end, *next) =
                (UnixMicros(number), UnixMs(input.number()), input.some_number().map(UnixMs));
            (*more, *open) = (input.flag(), input.flag());
        }
        Reply::Settled { time, outcomes } => {
            *time = input.some_number().map(UnixMicros);
            resize(
                outcomes,
                input.pick(&[
                    SettleOutcome::Stale,
                    SettleOutcome::Repeat,
                    SettleOutcome::Gone,
                    SettleOutcome::Conflict(VerdictKind::Release),
                ]),
                input,
            );
        }
        Reply::Extended { outcomes, lease_end, .. } => {
            *lease_end = UnixMs(number);
            resize(outcomes, input.pick(&[ExtendOutcome::Extended, ExtendOutcome::Gone]), input);
        }
        Reply::Cancelled { outcomes, .. } => {
            if let Some(outcome) = outcomes.first().copied() {
                resize(outcomes, outcome, input);
            }
        }
        Reply::Rescheduled { outcomes, dues, .. } => {
            if let Some(outcome) = outcomes.first().copied() {
                resize(outcomes, outcome, input);
            }
            resize(dues, UnixMs(number), input);
        }
        Reply::Peeked { time, holder, agenda, firsts } => {
            *time = UnixMicros(number);
            if let Some((_, until)) = holder {
                *until = UnixMs(input.number());
            }
            for (_, at) in agenda {
                *at = UnixMs(input.number());
            }
            for first in firsts {
                *first = input.some_number().map(UnixMs);
            }
        }
        Reply::Tended { ended, expired, next, more, .. } => {
            (*ended, *expired) = (number, input.number());
            (*next, *more) = (input.some_number().map(UnixMs), input.flag());
        }
        Reply::DeadMoved { moved, outcomes, .. } => {
            *moved = input.pick(&[500, u64::MAX]);
            resize(outcomes, true, input);
        }
        Reply::Listed { jobs, .. } => {
            if let Some(job) = jobs.first().cloned() {
                resize(jobs, job, input);
            }
        }
        other => *other = Reply::Superseded { time: UnixMicros(number) },
    }
}

fn resize<T: Clone>(list: &mut Vec<T>, with: T, input: &mut Input<'_>) {
    match input.below(4) {
        0 => {}
        1 => list.truncate(list.len() / 2),
        2 => list.resize(list.len() + 1, with),
        _ => list.resize(list.len() + 300, with),
    }
}
