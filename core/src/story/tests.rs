use alloc::vec;
use std::string::ToString;

use bytes::Bytes;

use super::*;
use crate::{
    Answer, Ask, Backoff, Ceiling, Command, DeadLetters, Entry, Event, ExtendOutcome, Fault, Fence, Grant,
    Identity, Job, Lease, NewJob, Phase, PublishOutcome, Reason, Refusal, Reply, Request, Session,
    SettleOutcome, Settlement, State, Take, UnixMicros, Verdict, Wakeup,
};

const TIME: UnixMicros = UnixMicros(1_760_000_000_000_000);
const NOW: UnixMs = UnixMs(1_760_000_000_000);
const SESSION: Session = Session { engine: Identity(7), lane: 0, sequence: 17 };

fn red() -> QueueName {
    "red".parse().unwrap()
}

fn id(text: &str) -> JobId {
    text.parse().unwrap()
}

fn story() -> Story {
    Story::since(NOW)
}

#[track_caller]
fn says(lines: &[Line], expected: &[&str]) {
    let said: Vec<_> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected);
}

fn entry(name: &str, due: Due) -> Entry {
    Entry { id: id(name), due, ttl_ms: 0, replace: false, edit: None, record: Bytes::from_static(b"abc") }
}

fn publish() -> Command {
    let jobs = vec![entry("a", Due::After { ms: 5_000 }), entry("b", Due::At(NOW + 90_000))];
    Command::Publish { queue: red(), session: SESSION, ceiling: Ceiling { jobs: 0, bytes: 0 }, jobs }
}

fn reserve(count: u16) -> Command {
    Command::Reserve { queue: red(), session: SESSION, count, lease_ms: 5_000, max_bytes: 1, wakeable: false }
}

fn settle(settlements: Vec<Settlement>) -> Command {
    let leases = ["a", "b", "c", "d", "e"].iter().zip(settlements);
    let leases = leases.map(|(name, settlement)| (id(name), Fence(9), settlement)).collect();
    Command::Settle { queue: red(), tidy: false, leases }
}

fn state(attempts: u16, reason: &str) -> State {
    State {
        phase: Phase::Leased,
        fence: Fence(1_760_000_000_000_001),
        attempts,
        verdict: None,
        max: 4,
        deliveries: attempts,
        flags: 0,
        due: NOW,
        extension: String::new(),
        reason: reason.into(),
    }
}

fn granted(jobs: Vec<Grant>) -> Reply {
    Reply::Granted {
        time: TIME,
        fence: Fence(1),
        lease_end: NOW + 5_000,
        backoff: None::<Backoff>,
        jobs,
        next: None,
        more: false,
        open: true,
    }
}

fn job(held: Option<Held>) -> Job {
    Job {
        held,
        lease: Lease { queue: red(), id: id("a"), fence: Fence(9), retry_ms: 0 },
        attempt: 2,
        max_attempts: 4,
        deliveries: 2,
        due: NOW,
        lease_ends: NOW + 5_000,
        late_ms: 3,
        published: NOW,
        content_type: None,
        headers: Vec::new(),
        trace: None,
        last_reason: Reason::default(),
        body: Bytes::new(),
    }
}

#[test]
fn commands_that_leave() {
    let dead = |ids| DeadLetters { ids, until: None, limit: 500 };
    let reason = || Reason::new("no such host");
    for (command, expected) in [
        (
            publish(),
            &[
                "red/a: publishes it, due in 5s, as sequence 17",
                "red/b: publishes it, due at +1m30s, as sequence 17",
            ][..],
        ),
        (reserve(12), &["red: reserve asks for up to 12 jobs of red for 5s, as sequence 17"]),
        (reserve(0), &["red: reserve takes this engine off the waiting list, as sequence 17"]),
        (
            settle(vec![
                Settlement::Ack,
                Settlement::Nack { after_ms: 1_500, reason: reason() },
                Settlement::Snooze { after_ms: 60_000 },
                Settlement::Release { after_ms: 0 },
                Settlement::Bury { reason: reason() },
            ]),
            &[
                "red/a: sends ack under fence 9",
                "red/b: sends nack, due again after 1s500ms, because \"no such host\" under fence 9",
                "red/c: sends snooze for 1m under fence 9",
                "red/d: sends release under fence 9",
                "red/e: sends bury, because \"no such host\" under fence 9",
            ],
        ),
        (
            Command::Extend { queue: red(), lease_ms: 30_000, leases: vec![(id("a"), Fence(9))] },
            &["red/a: asks to renew the lease of fence 9 for 30s"],
        ),
        (
            Command::Cancel { queue: red(), session: SESSION, ids: vec![id("a"), id("b")] },
            &["red/a: cancels it, as sequence 17", "red/b: cancels it, as sequence 17"],
        ),
        (
            Command::Peek {
                shard: crate::Shard(3),
                engine: Identity(7),
                entries: 64,
                lease_ms: 0,
                stay: true,
                queues: vec![],
            },
            &["gives up the pump lease of shard 3"],
        ),
        (Command::Requeue { queue: red(), dead: dead(None) }, &["red: makes all dead letters due"]),
        (
            Command::Purge { queue: red(), dead: dead(Some(vec![id("a")])) },
            &["red/a: removes this dead letter"],
        ),
        (Command::Pause { queue: red(), cfgver: None, paused: true }, &["red: pauses the queue"]),
    ] {
        says(&story().sent(&command), expected);
    }
}

#[test]
fn answers_of_the_store() {
    let (time, since) = (TIME, TIME);
    let full = crate::Full { jobs: 9, dead: 1, bytes: 700, ceiling: Ceiling { jobs: 9, bytes: 0 } };
    let outcomes = vec![PublishOutcome::New, PublishOutcome::Full];
    let grants =
        vec![Grant { id: id("a"), due: UnixMs(NOW.0 - 3), record: Bytes::new(), state: state(2, "timeout") }];
    for (command, reply, expected) in [
        (
            publish(),
            Reply::Published { time, since, outcomes, full: Some(full) },
            &[
                "red/a: accepted, due at +5s (in 5s)",
                "red/b: refused: the queue is full: it holds 9 jobs of 700 bytes, 1 of them dead, and may hold 9",
            ][..],
        ),
        (
            reserve(12),
            granted(grants),
            &[
                "red: granted 1 job",
                "red/a: granted attempt 2 of 4 under fence 1760000000000001, 3ms after it was due, its lease ending at +5s (in 5s); \
                 it failed before: \"timeout\"",
            ],
        ),
        (reserve(12), granted(Vec::new()), &["red: granted nothing"]),
        (
            settle(vec![Settlement::Ack, Settlement::Release { after_ms: 0 }]),
            Reply::Settled { time: None, outcomes: vec![SettleOutcome::Stale, SettleOutcome::Done] },
            &["red/a: ack refused: stale, the lease is another's or has ended", "red/b: release done"],
        ),
        (
            Command::Extend { queue: red(), lease_ms: 30_000, leases: vec![(id("a"), Fence(9))] },
            Reply::Extended { time, outcomes: vec![ExtendOutcome::Extended], lease_end: NOW + 30_000 },
            &["red/a: lease renewed, ending at +30s (in 30s)"],
        ),
        (
            settle(vec![Settlement::Ack]),
            Reply::Refused(Refusal::NoScript),
            &["red/a: settle refused: Redis does not know the script; it is sent with its source"],
        ),
        (
            reserve(1),
            Reply::Refused(Refusal::NotConnected),
            &["red: reserve refused, certainly not run: there is no connection to Redis; it is sent again"],
        ),
        (
            publish(),
            Reply::Superseded { time },
            &[
                "red/a: publish came too late and did nothing: a later batch of its lane has run",
                "red/b: publish came too late and did nothing: a later batch of its lane has run",
            ],
        ),
        (
            Command::Peek {
                shard: crate::Shard(0),
                engine: Identity(7),
                entries: 64,
                lease_ms: 1,
                stay: true,
                queues: vec![],
            },
            Reply::Peeked { time, holder: None, agenda: vec![(red(), NOW + 250)], firsts: vec![] },
            &["the pump lease is held by nobody; 1 queue on the agenda, red first, in 250ms"],
        ),
    ] {
        says(&story().answered(&command, &reply), expected);
    }
}

#[test]
fn a_loss_says_what_follows() {
    says(
        &story().lost(&reserve(2)),
        &["red: reserve lost: it may or may not have run; it is sent again as sequence 17"],
    );
    says(
        &story().lost(&settle(vec![Settlement::Ack])),
        &["red/a: settle lost: it may or may not have run; it is sent again"],
    );
}

#[test]
fn a_handle_is_told_as_the_job_it_stands_for() {
    let mut story = story();
    let held = Held(1 << 32);
    let run = story.told(&Event::Run(job(Some(held))));
    says(&run, &["red/a: run attempt 2 of 4, 3ms after it was due; the lease ends at +5s"]);
    says(&story.settled(held, &Verdict::Ack), &["red/a: the handler says ack"]);
    let settled = Event::Settled { held, outcome: SettleOutcome::Done };
    says(&story.told(&settled), &["red/a: the handler's verdict is done"]);
    says(&story.settled(held, &Verdict::Ack), &["ack of a job that is in hand no more"]);
    story.told(&Event::Run(job(Some(held))));
    let lost = story.told(&Event::Abandon(held));
    says(&lost, &["red/a: the lease is lost: its handler should stop, and its verdict counts no more"]);
}

#[test]
fn a_caller_is_told_as_what_it_asked_for() {
    let mut story = story();
    let mut new = NewJob::new(red(), id("a"), Bytes::from_static(b"{}"));
    new.attempts = Some(1);
    says(
        &story.published(Token(1), &new),
        &["red/a: publish it, due at once, within 30s, with 1 attempt, a body of 2 bytes"],
    );
    let fault = Event::Answered { token: Token(1), answer: Err(Fault::Draining) };
    says(&story.told(&fault), &["red/a: publish failed: shutting down: nothing new is accepted"]);
    let ask = Ask::Cancel { queue: red(), ids: vec![id("a"), id("b")] };
    says(
        &story.requested(Token(2), &Request { ask, timeout_ms: 1_000 }),
        &["red/a: cancel it, within 1s", "red/b: cancel it, within 1s"],
    );
    let outcomes = vec![crate::CancelOutcome::Cancelled, crate::CancelOutcome::Leased];
    let answer = Event::Answered { token: Token(2), answer: Ok(Answer::Cancelled(outcomes)) };
    says(&story.told(&answer), &["red/a: cancelled", "red/b: not cancelled: a consumer holds it"]);
    let take = Take { queues: vec![red()], count: 3, lease_ms: 30_000, wait_ms: 0 };
    says(&story.took(Token(3), &take), &["red: take up to 3 jobs for 30s, waiting 0s"]);
    let answer = Event::Answered { token: Token(3), answer: Ok(Answer::Taken(vec![job(None)])) };
    says(
        &story.told(&answer),
        &["red/a: handed out: run attempt 2 of 4, 3ms after it was due; the lease ends at +5s"],
    );
}

#[test]
fn the_world() {
    let story = story();
    says(&story.woken(&Wakeup::Ready(red())), &["red: woken: there is work"]);
    let head = Wakeup::Head(crate::Shard(1), NOW + 7);
    says(&story.woken(&head), &["told that the head of shard 1 is now at +7ms"]);
    says(&story.timed_out(Some(crate::TimeoutReason::Lease)), &["a lease is to be renewed, or ends"]);
}

#[test]
fn a_job_s_story_is_its_own_lines_and_those_of_all_jobs() {
    let own = About::Job(red(), id("a"));
    assert!(own.concerns(&red(), &id("a")) && !own.concerns(&red(), &id("b")));
    assert!(About::Jobs(red()).concerns(&red(), &id("a")));
    assert!(!About::Queue(red()).concerns(&red(), &id("a")) && !About::Nothing.concerns(&red(), &id("a")));
}

#[test]
fn times_without_a_base_are_those_of_redis() {
    let due = publish();
    let line = &Story::new().sent(&due)[1];
    assert_eq!(line.words, "publishes it, due at 1760000090000, as sequence 17");
}
