use delayline_core::{
    Answer, Ask, Command, Config, Due, Fault, Fence, JobId, Lease, Place, Refusal, Request, Shard, Take,
    Token, Verdict,
};

use crate::bed::{Bed, away, queue};

fn lease() -> Lease {
    Lease { queue: queue("orders"), id: "one".parse().expect("an id"), fence: Fence(1), retry_ms: 0 }
}

fn ids(count: usize) -> Vec<JobId> {
    (0..count).map(|number| format!("job-{number}").parse().expect("an id")).collect()
}

fn ask(bed: &mut Bed, token: u64, ask: Ask, timeout_ms: u64) {
    let now = bed.now;
    bed.engine(0).request(now, Token(token), Request { ask, timeout_ms }).expect("room");
}

#[test]
fn an_ack_and_an_extend_say_not_sent_where_redis_certainly_did_nothing() {
    let mut bed = Bed::new([Config::default()]);
    bed.instead = away();
    ask(&mut bed, 1, Ask::Settle { lease: lease(), verdict: Verdict::Ack }, 1_000);
    ask(&mut bed, 2, Ask::Extend { lease: lease(), lease_ms: 5_000 }, 1_000);
    bed.settle();
    // These ride behind what is refused.
    ask(&mut bed, 3, Ask::Settle { lease: lease(), verdict: Verdict::Release }, 900);
    ask(&mut bed, 4, Ask::Extend { lease: lease(), lease_ms: 5_000 }, 900);
    bed.pass(1_000);
    for token in 1..=4 {
        let answer = bed.answer(0, token).map(|(_, answer)| answer);
        let refused = Err(Fault::NotSent(Some(Refusal::NotConnected)));
        assert_eq!(answer, Some(refused), "{token}");
    }
    // What was called not sent is not carried out after all.
    bed.nodes[0].trips.clear();
    bed.instead = Box::new(|_| None);
    bed.pass(60_000);
    assert_eq!(bed.nodes[0].trips, []);
}

#[test]
fn an_ack_and_an_extend_that_may_have_run_are_unknown() {
    let mut bed = Bed::new([Config::default()]);
    bed.silent = true;
    ask(&mut bed, 1, Ask::Settle { lease: lease(), verdict: Verdict::Ack }, 1_000);
    ask(&mut bed, 2, Ask::Extend { lease: lease(), lease_ms: 5_000 }, 1_000);
    bed.pass(1_000);
    for token in 1..=2 {
        assert_eq!(bed.answer(0, token).map(|(_, answer)| answer), Some(Err(Fault::Unknown)), "{token}");
    }
}

#[test]
fn a_request_beyond_a_limit_is_refused_and_nothing_is_sent() {
    let mut bed = Bed::new([Config::default()]);
    let due = |id| (id, Due::After { ms: 1 });
    let name = || queue("orders");
    let asks = [
        Ask::Cancel { queue: name(), ids: ids(10_000) },
        Ask::Cancel { queue: name(), ids: ids(Command::JOBS_MAX + 1) },
        Ask::Reschedule { queue: name(), jobs: ids(501).into_iter().map(due).collect() },
        Ask::Requeue { queue: name(), ids: Some(ids(501)) },
        Ask::Requeue { queue: name(), ids: Some(Vec::new()) },
        Ask::Purge { queue: name(), ids: Some(ids(501)) },
        Ask::List { queue: name(), place: Place::Dead, limit: 257, after: None },
        Ask::List { queue: name(), place: Place::Dead, limit: 0, after: None },
        Ask::Stats { queue: name(), hours: 49 },
        Ask::Queues { shard: Shard(0), cursor: 0, count: 0 },
        Ask::Extend { lease: lease(), lease_ms: 999 },
        Ask::Extend { lease: lease(), lease_ms: 86_400_001 },
    ];
    for (asked, token) in asks.into_iter().zip(1..) {
        ask(&mut bed, token, asked.clone(), 1_000);
        bed.settle();
        let answer = bed.answer(0, token).map(|(_, answer)| answer);
        assert!(matches!(answer, Some(Err(Fault::Invalid(_)))), "{asked:?}: {answer:?}");
    }
    assert_eq!(bed.nodes[0].trips, []);
    for (asked, token) in [
        Ask::Cancel { queue: name(), ids: ids(500) },
        Ask::Stats { queue: name(), hours: 48 },
        Ask::List { queue: name(), place: Place::Dead, limit: 256, after: None },
        Ask::Purge { queue: name(), ids: Some(ids(500)) },
    ]
    .into_iter()
    .zip(101..)
    {
        ask(&mut bed, token, asked, 1_000);
        bed.settle();
        let answer = bed.answer(0, token).map(|(_, answer)| answer);
        assert!(matches!(answer, Some(Ok(_))), "{answer:?}");
    }
}

#[test]
fn a_drained_engine_refuses_all_and_one_that_drains_still_settles() {
    let mut bed = Bed::new([Config::default()]);
    bed.publish(0, 1, "orders", 0);
    bed.silent = true;
    bed.settle();
    let now = bed.now;
    bed.engine(0).drain(now);
    ask(&mut bed, 2, Ask::Settle { lease: lease(), verdict: Verdict::Ack }, 20_000);
    bed.silent = false;
    bed.pass(10_000);
    assert!(matches!(bed.answer(0, 2), Some((_, Ok(Answer::Settled(_))))), "{:?}", bed.answer(0, 2));
    assert!(bed.engine(0).is_drained());

    ask(&mut bed, 3, Ask::Settle { lease: lease(), verdict: Verdict::Ack }, 20_000);
    ask(&mut bed, 4, Ask::Cancel { queue: queue("orders"), ids: ids(1) }, 20_000);
    ask(&mut bed, 5, Ask::Server, 20_000);
    bed.publish(0, 6, "orders", 0);
    let now = bed.now;
    let want = Take { queues: vec![queue("orders")], count: 1, lease_ms: 5_000, wait_ms: 0 };
    bed.engine(0).take(now, Token(7), want).expect("room");
    bed.engine(0).open(now, Token(8), delayline_core::Shards::default(), 1_000).expect("room");
    bed.settle();
    for token in 3..=8 {
        assert_eq!(bed.answer(0, token).map(|(_, answer)| answer), Some(Err(Fault::Draining)), "{token}");
    }
}
