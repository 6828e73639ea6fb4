//! One answer that makes no sense, to each command: it is asked again, and nobody notices.

use delayline_core::{
    Answer, Ask, Command, Config, Due, Event, ExtendOutcome, Fence, Kind, Lease, Place, Pumping, QueueConfig,
    Reply, Request, SettleOutcome, Take, Token, UnixMicros, Verdict,
};

use crate::bed::{Bed, queue, worker};

/// What an answer may be instead of what it should.
fn senseless() -> [Reply; 3] {
    let time = UnixMicros(1_763_700_000_000_000);
    [
        Reply::Broken("ERR Error running script".to_owned()),
        Reply::Destroyed { time, waiting: u64::MAX, leased: 0, dead: 7 },
        Reply::Cancelled { time, outcomes: Vec::new() },
    ]
}

/// Answers the first command of this kind so.
fn puzzle(bed: &mut Bed, kind: Kind, reply: Reply) {
    let mut reply = Some(reply);
    bed.instead = Box::new(move |command| {
        let fits = command.kind() == kind;
        reply.take_if(|_| fits)
    });
}

fn ask(bed: &mut Bed, token: u64, ask: Ask) {
    let now = bed.now;
    bed.engine(0).request(now, Token(token), Request { ask, timeout_ms: 10_000 }).expect("room");
}

fn run(bed: &Bed) -> Option<delayline_core::Job> {
    bed.nodes[0].told.iter().find_map(|(_, event)| match event {
        Event::Run(job) => Some(job.clone()),
        _ => None,
    })
}

/// Jobs that are renewed for ten minutes, with each renewal in turn answered by nonsense.
#[test]
fn an_extend_is_tried_again_and_no_job_is_abandoned() {
    for lease_ms in [1_000, 2_500, 30_000] {
        for reply in senseless() {
            for times in 1..=2 {
                let mut bed = Bed::new([Config { lease_ms, ..worker("orders") }]);
                for token in 1..=3 {
                    bed.publish(0, token, "orders", 0);
                }
                bed.pass(10);
                assert_eq!(bed.runs(0).len(), 3);
                let (answer, mut left) = (reply.clone(), times);
                bed.instead = Box::new(move |command| {
                    let fits = left > 0 && matches!(command, Command::Extend { .. });
                    left -= u32::from(fits);
                    fits.then(|| answer.clone())
                });
                bed.pass(20 * lease_ms);
                assert_eq!(bed.runs(0).len(), 3, "none ran twice: {lease_ms}, {times} times {reply:?}");
                let lost = bed.nodes[0].told.iter().any(|(_, event)| matches!(event, Event::Abandon(_)));
                assert!(!lost, "{lease_ms}, {times} times {reply:?}");
            }
        }
    }
}

#[test]
fn a_verdict_is_sent_again_and_counts() {
    for reply in senseless() {
        let mut bed = Bed::new([worker("orders")]);
        bed.publish(0, 1, "orders", 0);
        bed.pass(10);
        let (now, held) = (bed.now, run(&bed).and_then(|job| job.held).expect("a job runs"));
        puzzle(&mut bed, Kind::Settle, reply.clone());
        bed.engine(0).settle(now, held, Verdict::Ack);
        bed.pass(120_000);
        let settled = Event::Settled { held, outcome: SettleOutcome::Done };
        assert!(bed.nodes[0].told.iter().any(|(_, event)| *event == settled), "{reply:?}");
        assert_eq!(bed.runs(0).len(), 1, "{reply:?}");
    }
}

#[test]
fn a_reserve_is_sent_again_and_its_jobs_run_at_once() {
    for reply in senseless() {
        let mut bed = Bed::new([worker("orders")]);
        bed.pass(100);
        puzzle(&mut bed, Kind::Reserve, reply.clone());
        bed.publish(0, 1, "orders", 0);
        let published = bed.now;
        bed.pass(60_000);
        let runs = bed.runs(0);
        assert_eq!(runs.len(), 1, "{reply:?}");
        assert!(runs[0].0.since(published) <= 100, "{reply:?}: {runs:?}");
    }
}

#[test]
fn a_shard_is_tended_though_a_peek_or_a_tend_was_answered_by_nonsense() {
    for kind in [Kind::Peek, Kind::Tend] {
        for reply in senseless() {
            let mut bed = Bed::new([Config { pump: Pumping::Always, ..Config::default() }]);
            puzzle(&mut bed, kind, reply.clone());
            bed.pass(100);
            let entry = delayline_core::NewJob {
                ttl_ms: Some(5_000),
                due: Due::After { ms: 5_000 },
                ..delayline_core::NewJob::new(
                    queue("orders"),
                    "a".parse().expect("an id"),
                    bytes::Bytes::new(),
                )
            };
            bed.publish_job(0, 1, entry);
            bed.pass(8_000);
            let expired =
                bed.nodes[0].told.iter().any(|(_, event)| matches!(event, Event::Tended { expired: 1, .. }));
            assert!(expired, "{kind:?} {reply:?}: {:?}", bed.nodes[0].told);
        }
    }
}

/// What each call is answered, if the store answers its command properly.
#[test]
fn each_call_is_answered_as_if_nothing_had_been() {
    let id = |name: &str| name.parse().expect("an id");
    let lease = Lease { queue: queue("orders"), id: id("none"), fence: Fence(1), retry_ms: 0 };
    let name = || queue("orders");
    let asks = || {
        [
            (Kind::Open, Ask::Open { shards: delayline_core::Shards::default() }),
            (Kind::Server, Ask::Server),
            (Kind::Settle, Ask::Settle { lease: lease.clone(), verdict: Verdict::Ack }),
            (Kind::Extend, Ask::Extend { lease: lease.clone(), lease_ms: 5_000 }),
            (Kind::Cancel, Ask::Cancel { queue: name(), ids: vec![id("waits")] }),
            (
                Kind::Reschedule,
                Ask::Reschedule { queue: name(), jobs: vec![(id("waits"), Due::After { ms: 5 })] },
            ),
            (Kind::Inspect, Ask::Inspect { queue: name(), id: id("waits") }),
            (
                Kind::List(Place::Delayed),
                Ask::List { queue: name(), place: Place::Delayed, limit: 9, after: None },
            ),
            (Kind::Stats, Ask::Stats { queue: name(), hours: 2 }),
            (Kind::Queues, Ask::Queues { shard: delayline_core::Shard(0), cursor: 0, count: 9 }),
            (Kind::Requeue, Ask::Requeue { queue: name(), ids: None }),
            (Kind::Purge, Ask::Purge { queue: name(), ids: Some(vec![id("waits")]) }),
            (Kind::Configure, Ask::Configure { queue: name(), cfgver: None, config: QueueConfig::default() }),
            (Kind::Pause, Ask::Pause { queue: name(), paused: true }),
            (Kind::Destroy, Ask::Destroy { queue: name() }),
        ]
    };
    let outcome = |kind: Kind, puzzled: Option<Reply>, asked: Ask| {
        let mut bed = Bed::new([Config::default()]);
        bed.publish(0, 1, "orders", 3_600_000);
        bed.pass(10);
        let job = delayline_core::NewJob {
            due: Due::After { ms: 3_600_000 },
            ..delayline_core::NewJob::new(queue("orders"), id("waits"), bytes::Bytes::new())
        };
        bed.publish_job(0, 2, job);
        bed.pass(10);
        if let Some(reply) = puzzled {
            puzzle(&mut bed, kind, reply);
        }
        ask(&mut bed, 3, asked);
        bed.settle();
        bed.pass(5_000);
        bed.answer(0, 3).map(|(_, answer)| answer)
    };
    for place in 0..asks().len() {
        let expected = outcome(Kind::Open, None, asks()[place].1.clone());
        assert!(matches!(expected, Some(Ok(_))), "{expected:?}");
        for reply in senseless() {
            let (kind, asked) = asks()[place].clone();
            if kind == Kind::Destroy && matches!(reply, Reply::Destroyed { .. }) {
                continue;
            }
            let found = outcome(kind, Some(reply.clone()), asked);
            let alike = match (&found, &expected) {
                // The clock has gone on by a pause.
                (Some(Ok(Answer::Rescheduled(found))), Some(Ok(Answer::Rescheduled(expected)))) => {
                    found[0].0 == expected[0].0
                }
                (Some(Ok(Answer::Extended(found, _))), _) => *found == ExtendOutcome::Gone,
                // It may have been carried out the first time.
                (Some(Ok(Answer::Settled(found))), _) => *found == SettleOutcome::Done,
                (found, expected) => found == expected,
            };
            assert!(alike, "{kind:?} answered {reply:?}: {found:?}, not {expected:?}");
        }
    }
}

#[test]
fn a_publish_and_a_take_are_answered_as_if_nothing_had_been() {
    for reply in senseless() {
        let mut bed = Bed::new([Config::default()]);
        puzzle(&mut bed, Kind::Publish, reply.clone());
        bed.publish(0, 1, "orders", 0);
        bed.pass(100);
        let answer = bed.answer(0, 1).map(|(_, answer)| answer);
        assert!(matches!(answer, Some(Ok(Answer::Published { .. }))), "{reply:?}: {answer:?}");
        puzzle(&mut bed, Kind::Reserve, reply.clone());
        let now = bed.now;
        let want = Take { queues: vec![queue("orders")], count: 2, lease_ms: 5_000, wait_ms: 0 };
        bed.engine(0).take(now, Token(2), want).expect("room");
        bed.pass(100);
        let answer = bed.answer(0, 2).map(|(_, answer)| answer);
        assert!(matches!(&answer, Some(Ok(Answer::Taken(jobs))) if jobs.len() == 1), "{reply:?}: {answer:?}");
    }
}
