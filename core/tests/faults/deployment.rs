use delayline_core::{
    Answer, Ask, Command, Config, Event, Fault, Keyspace, Prefix, Pumping, Reply, Request, Shards, Take,
    Token, Verdict,
};
use delayline_embedded::Store;

use crate::bed::{Bed, queue, shards, worker};

const PUMP_LEASE_MS: u64 = 30_000;

fn of(count: u16, config: Config) -> Config {
    Config { shards: shards(count), ..config }
}

fn has_config(store: &Store, count: u16) -> bool {
    let keys = Keyspace::new(&Prefix::default(), shards(count));
    store.dump(&keys).contains_key(keys.config())
}

/// Whoever is not in the bed opens the deployment first, with other shards.
fn usurp(bed: &mut Bed, live: u16, other: u16) {
    bed.flush(shards(live));
    let reply = bed.execute(&Command::Open { shards: shards(other) });
    assert!(matches!(reply, Reply::Opened { shards: found, .. } if found == shards(other)), "{reply:?}");
}

fn is_other(answer: &Result<Answer, Fault>, wanted: u16, other: u16) -> bool {
    let found = (shards(wanted), shards(other));
    matches!(answer, Err(Fault::OtherDeployment { wanted, found: there, .. }) if (*wanted, *there) == found)
}

#[test]
fn a_config_that_is_gone_is_written_again_within_a_pump_lease() {
    for config in [worker("orders"), Config { pump: Pumping::Always, ..Config::default() }] {
        let mut bed = Bed::new([of(4, config)]);
        bed.pass(1_000);
        assert!(has_config(&bed.store, 4), "an engine that pumps opens the deployment");
        bed.flush(shards(4));
        bed.pass(PUMP_LEASE_MS);
        assert!(has_config(&bed.store, 4));
        let [live, late] = [4, 2].map(|count| bed.execute(&Command::Open { shards: shards(count) }));
        let fixed = |reply: &Reply| match reply {
            Reply::Opened { shards, .. } => Some(*shards),
            _ => None,
        };
        assert_eq!((fixed(&live), fixed(&late)), (Some(shards(4)), Some(shards(4))));
    }
}

#[test]
fn a_producer_looks_along_with_what_it_sends_and_is_not_woken_for_it() {
    let mut bed = Bed::new([of(4, Config::default())]);
    bed.pass(600_000);
    assert_eq!(bed.nodes[0].trips, [], "an idle producer asks nothing");
    let mut opens = 0;
    for token in 0..200 {
        bed.publish(0, token, "orders", 0);
        bed.pass(1_000);
    }
    for (_, commands) in &bed.nodes[0].trips {
        let looks = commands.iter().filter(|command| matches!(command, Command::Open { .. })).count();
        assert!(looks < commands.len(), "it looks along with something else");
        opens += looks;
    }
    assert!((7..=14).contains(&opens), "{opens} times in 200 s");
}

#[test]
fn every_engine_stops_loudly_where_another_number_of_shards_was_fixed() {
    let of_takes = Config { pump: Pumping::WhileTaking, ..Config::default() };
    for config in [worker("orders"), of_takes, Config::default()] {
        let pump = config.pump;
        let mut bed = Bed::new([of(4, config)]);
        bed.publish(0, 1, "orders", 3_600_000);
        bed.pass(PUMP_LEASE_MS);
        usurp(&mut bed, 4, 2);
        // Only who asks something anyway looks: a producer publishes, a taker takes.
        match pump {
            Pumping::Always => {}
            Pumping::WhileTaking => take(&mut bed, 2, 60_000),
            _ => bed.publish(0, 2, "orders", 0),
        }
        bed.pass(PUMP_LEASE_MS);
        let ends = bed.nodes[0].told.iter().filter(|(_, event)| matches!(event, Event::Ended(_))).count();
        assert_eq!(ends, 1, "{pump:?}: {:?}", bed.nodes[0].told);
        assert!(bed.engine(0).is_drained());
        if pump == Pumping::WhileTaking {
            let (_, answer) = bed.answer(0, 2).expect("an answer");
            assert!(is_other(&answer, 4, 2), "{answer:?}");
        }
        // Whatever it is told from now on.
        bed.publish(0, 3, "orders", 0);
        take(&mut bed, 4, 0);
        let (now, ask) = (bed.now, Ask::Stats { queue: queue("orders"), hours: 0 });
        bed.engine(0).request(now, Token(5), Request { ask, timeout_ms: 1_000 }).expect("room");
        bed.settle();
        for token in [3, 4, 5] {
            let (_, answer) = bed.answer(0, token).expect("an answer");
            assert!(is_other(&answer, 4, 2), "{pump:?}, {token}: {answer:?}");
        }
    }
}

#[test]
fn all_that_waits_is_answered_when_an_engine_stops_and_what_runs_may_end() {
    let mut bed = Bed::new([of(4, worker("orders"))]);
    bed.publish(0, 1, "orders", 0);
    bed.pass(14_000);
    let held = bed.nodes[0].told.iter().find_map(|(_, event)| match event {
        Event::Run(job) => job.held,
        _ => None,
    });
    let held = held.expect("a job runs");
    usurp(&mut bed, 4, 1);
    // From now on only the config is answered.
    bed.instead = Box::new(|command| {
        let refused = Reply::Refused(delayline_core::Refusal::Loading);
        (!matches!(command, Command::Open { .. })).then_some(refused)
    });
    bed.publish(0, 2, "orders", 0);
    take(&mut bed, 3, 200_000);
    let lease = delayline_core::Lease {
        queue: queue("orders"),
        id: "x".parse().expect("an id"),
        fence: delayline_core::Fence(1),
        retry_ms: 0,
    };
    let asks = [
        Ask::Settle { lease: lease.clone(), verdict: Verdict::Ack },
        Ask::Extend { lease, lease_ms: 5_000 },
        Ask::Cancel { queue: queue("orders"), ids: vec!["x".parse().expect("an id")] },
        Ask::Pause { queue: queue("orders"), paused: true },
    ];
    for (ask, token) in asks.into_iter().zip(4..) {
        let now = bed.now;
        bed.engine(0).request(now, Token(token), Request { ask, timeout_ms: 200_000 }).expect("room");
    }
    bed.pass(PUMP_LEASE_MS);
    for token in 2..8 {
        let answer = bed.answer(0, token).map(|(_, answer)| answer);
        assert!(answer.as_ref().is_some_and(|answer| is_other(answer, 4, 1)), "{token}: {answer:?}");
    }
    assert!(!bed.engine(0).is_drained(), "a job still runs");
    let now = bed.now;
    bed.engine(0).settle(now, held, Verdict::Ack);
    bed.instead = Box::new(|_| None);
    bed.pass(PUMP_LEASE_MS);
    assert!(bed.engine(0).is_drained());
}

#[test]
fn a_run_that_cron_starts_leaves_the_looking_to_its_driver() {
    let mut bed = Bed::new([Config { pump: Pumping::WhenDue, ..worker("orders") }]);
    bed.pass(PUMP_LEASE_MS);
    let opens =
        |(_, commands): &(_, Vec<Command>)| commands.iter().any(|c| matches!(c, Command::Open { .. }));
    assert!(!bed.nodes[0].trips.iter().any(opens));
}

/// An idle worker stands on no waiting list any more, so nobody wakes it: it learnt of a new job by its slow poll.
#[test]
fn after_a_flush_an_idle_worker_learns_of_a_job_within_half_a_pump_lease() {
    let config = Config { poll_ms: 540_000, ..worker("orders") };
    let mut bed = Bed::new([config, Config::default()]);
    bed.pass(100_000);
    for token in 0..8 {
        bed.pass(token * 1_777);
        bed.flush(Shards::default());
        bed.publish(1, token, "orders", 0);
        let (published, seen) = (bed.now, bed.runs(0).len());
        bed.pass(PUMP_LEASE_MS);
        let runs = bed.runs(0);
        assert_eq!(runs.len(), seen + 1, "flush {token}: {runs:?}");
        let late_ms = runs[seen].0.since(published);
        assert!(late_ms <= PUMP_LEASE_MS / 2 + 1, "{late_ms} ms");
        for (_, event) in bed.nodes[0].told.clone() {
            if let Event::Run(job) = event {
                let now = bed.now;
                bed.engine(0).settle(now, job.held.expect("a managed job"), Verdict::Ack);
            }
        }
    }
}

fn take(bed: &mut Bed, token: u64, wait_ms: u64) {
    let want = Take { queues: vec![queue("orders")], count: 1, lease_ms: 5_000, wait_ms };
    let now = bed.now;
    bed.engine(0).take(now, Token(token), want).expect("room");
}
