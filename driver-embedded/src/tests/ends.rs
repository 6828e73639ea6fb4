use super::*;
use delayline_core::{ExtendOutcome, Phase, State, VerdictKind};

fn config(bury_expired: bool) -> QueueConfig {
    QueueConfig { bury_expired, ..QueueConfig::default() }
}

#[test]
fn each_verdict_ends_a_lease_its_own_way() {
    use SettleOutcome::{Died, Done, Gone, Repeat, Stale};

    let mut bed = Bed::new();
    bed.publish(["ack", "bury", "nack", "release", "snooze"].map(|name| entry(name, 0)));
    let fence = bed.reserve(5).fence;
    bed.pass(100);
    let leases = [
        ("ack", fence, Settlement::Ack),
        ("nack", fence, nack(1_000)),
        ("snooze", fence, Settlement::Snooze { after_ms: 2_000 }),
        ("release", fence, Settlement::Release { after_ms: 0 }),
        ("bury", fence, bury()),
        ("none", fence, Settlement::Ack),
        ("nack", Fence(1), Settlement::Ack),
    ];
    assert_eq!(bed.settle_all(false, &leases), [Done, Done, Done, Done, Died, Gone, Stale]);
    assert_eq!(bed.settle_all(false, &leases), [Gone, Repeat, Repeat, Repeat, Repeat, Gone, Stale]);
    let mut shown = |name: &str| {
        let job = bed.inspect(name).unwrap();
        let state = job.state.unwrap();
        (job.at, state.phase, state.attempts, state.reason.as_str().to_owned())
    };
    assert_eq!(shown("nack"), (START + 1_101, Phase::Waiting, 1, "boom".to_owned()));
    assert_eq!(shown("snooze"), (START + 2_101, Phase::Waiting, 0, String::new()));
    assert_eq!(shown("release"), (START, Phase::Waiting, 0, String::new()));
    assert_eq!(shown("bury"), (START + 100, Phase::Dead, 1, "no good".to_owned()));
}

#[test]
fn one_lease_named_twice_is_settled_once() {
    use SettleOutcome::{Conflict, Done, Gone};

    let mut bed = Bed::new();
    bed.publish([entry("a", 0), entry("b", 0)]);
    let fence = bed.reserve(2).fence;
    let leases = [
        ("a", fence, Settlement::Ack),
        ("a", fence, Settlement::Ack),
        ("b", fence, nack(0)),
        ("b", fence, bury()),
    ];
    assert_eq!(bed.settle_all(false, &leases), [Done, Gone, Done, Conflict(VerdictKind::Nack)]);
    assert_eq!(bed.stats().counters.acked, 1);
}

#[test]
fn settling_acks_needs_no_clock() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0)]);
    let fence = bed.reserve(1).fence;
    let settle =
        |tidy| Command::Settle { queue: queue(), tidy, leases: vec![(id("a"), fence, Settlement::Ack)] };
    assert!(matches!(bed.run(&settle(false)), Reply::Settled { time: None, .. }));
    assert!(matches!(bed.run(&settle(true)), Reply::Settled { time: Some(_), .. }));
}

#[test]
fn an_ended_lease_is_good_until_it_is_reaped_and_lost_then() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0), entry("b", 0)]);
    let fence = bed.reserve(2).fence;
    bed.pass(40_000);
    assert_eq!(bed.settle("a", fence, nack(100_000)), SettleOutcome::Done);
    assert!(matches!(bed.tend(), Reply::Tended { ended: 1, .. }));
    assert_eq!(bed.settle("b", fence, Settlement::Ack), SettleOutcome::Stale);
    let b = bed.inspect("b").unwrap();
    assert_eq!((b.at, b.state.as_ref().unwrap().phase), (START + 30_001, Phase::Ended));
    let again = bed.reserve(2);
    assert_eq!((again.ids(), again.jobs[0].state.attempts), (vec!["b"], 2));
    assert_eq!(again.jobs[0].due, START + 30_001);
}

#[test]
fn a_lost_lease_waits_as_long_as_its_record_says() {
    let mut bed = Bed::new();
    let record = plain(&Record { lost_delay_ms: Some(5_000), ..Record::default() });
    bed.publish([Entry { record, ..entry("a", 0) }]);
    bed.reserve(1);
    bed.pass(31_000);
    let empty = bed.reserve(1);
    assert_eq!((empty.ids(), empty.next), (vec![], Some(START + 35_001)));
    assert_eq!(bed.meta("lo").as_deref(), Some(""));
}

#[test]
fn the_last_attempt_ends_among_the_dead() {
    let mut bed = Bed::new();
    bed.configure(QueueConfig { attempts: Some(1), ..QueueConfig::default() });
    bed.publish([entry("lease", 0), entry("nack", 0)]);
    let fence = bed.reserve(2).fence;
    assert_eq!(bed.settle("nack", fence, nack(0)), SettleOutcome::Died);
    bed.pass(31_000);
    bed.tend();
    let reason = |bed: &mut Bed, name| bed.inspect(name).unwrap().state.unwrap().reason;
    assert_eq!(reason(&mut bed, "lease").as_str(), "lease ended");
    assert_eq!(reason(&mut bed, "nack").as_str(), "boom");
    assert_eq!(bed.settle("lease", fence, Settlement::Ack), SettleOutcome::Stale);
    let nacked = SettleOutcome::Conflict(VerdictKind::Nack);
    assert_eq!(bed.settle("nack", fence, Settlement::Ack), nacked);
}

#[test]
fn extending_never_shortens_a_lease() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0)]);
    let fence = bed.reserve(1).fence;
    let extend = |fence, lease_ms| Command::Extend {
        queue: queue(),
        lease_ms,
        leases: vec![(id("a"), fence), (id("none"), fence)],
    };
    let outcomes = |bed: &mut Bed, fence, lease_ms| match bed.run(&extend(fence, lease_ms)) {
        Reply::Extended { outcomes, .. } => outcomes[0],
        other => panic!("{other:?}"),
    };
    assert_eq!(outcomes(&mut bed, fence, 1_000), ExtendOutcome::Extended);
    assert_eq!(bed.inspect("a").unwrap().at, START + 30_001);
    assert_eq!(outcomes(&mut bed, fence, 60_000), ExtendOutcome::Extended);
    assert_eq!(bed.inspect("a").unwrap().at, START + 60_001);
    assert_eq!(outcomes(&mut bed, Fence(1), 60_000), ExtendOutcome::Stale);
}

#[test]
fn what_expires_is_dropped_or_dies_as_the_config_says() {
    for bury_expired in [false, true] {
        for by_reserve in [false, true] {
            let mut bed = Bed::new();
            bed.configure(config(bury_expired));
            bed.publish([expiring("a", 0, 1_000), expiring("b", 5_000, 1_000)]);
            bed.pass(1_001);
            if by_reserve {
                assert!(bed.reserve(1).jobs.is_empty());
                assert!(bed.inspect("b").is_some());
            } else {
                assert!(matches!(bed.tend(), Reply::Tended { expired: 2, .. }));
            }
            let a = bed.inspect("a").map(|job| job.state.unwrap().reason);
            assert_eq!(a, bury_expired.then(|| Reason::new("expired")));
            let counters = bed.stats().counters;
            let gone = if by_reserve { 1 } else { 2 };
            let want = if bury_expired { (0, gone) } else { (gone, 0) };
            assert_eq!((counters.expired, counters.died), want);
        }
    }
}

#[test]
fn what_expires_while_it_is_held_keeps_its_lease() {
    for bury_expired in [false, true] {
        let mut bed = Bed::new();
        bed.configure(config(bury_expired));
        bed.publish(["a", "b", "c"].map(|name| expiring(name, 0, 1_000)));
        let fence = bed.reserve(3).fence;
        bed.pass(2_000);
        bed.tend();
        assert!(bed.inspect("a").unwrap().state.unwrap().has(State::EXPIRED));
        assert_eq!(bed.settle("a", fence, Settlement::Ack), SettleOutcome::Done);
        assert_eq!(bed.settle("b", fence, nack(0)), SettleOutcome::Expired);
        bed.pass(30_000);
        bed.tend();
        let counters = bed.stats().counters;
        let (gone, dead) = if bury_expired { (0, 2) } else { (2, 0) };
        assert_eq!((counters.acked, counters.expired, counters.died), (1, gone, dead));
        assert_eq!(bed.inspect("c").is_some(), bury_expired);
    }
}

#[test]
fn dead_letters_are_requeued_with_fresh_attempts_or_purged() {
    let mut bed = Bed::new();
    bed.publish(["a", "b", "c"].map(|name| entry(name, 0)));
    let fence = bed.reserve(3).fence;
    bed.settle_all(false, &[("a", fence, bury()), ("b", fence, bury())]);
    bed.pass(10);
    bed.settle("c", fence, bury());
    let until = Some(START);
    let dead = DeadLetters { ids: Some(["a", "a", "c", "x"].map(id).to_vec()), until, limit: 500 };
    let moved = bed.run(&Command::Requeue { queue: queue(), dead: dead.clone() });
    let time = UnixMicros(bed.us);
    let want = |moved, left, outcomes: &[bool]| Reply::DeadMoved {
        time,
        until: START,
        moved,
        left,
        outcomes: outcomes.to_vec(),
    };
    assert_eq!(moved, want(1, 2, &[true, false, false, false]));
    assert_eq!(bed.run(&Command::Requeue { queue: queue(), dead }), want(0, 2, &[false; 4]));
    let again = bed.reserve(1);
    assert_eq!(
        (again.ids(), again.jobs[0].state.attempts, again.jobs[0].state.deliveries),
        (vec!["a"], 1, 2)
    );
    let purged = bed.run(&Command::Purge { queue: queue(), dead: all_dead(1) });
    assert!(matches!(purged, Reply::DeadMoved { moved: 1, left: 1, .. }), "{purged:?}");
    assert!(bed.inspect("b").is_none());
    assert_eq!(bed.stats().counters.purged, 1);
}

#[test]
fn retention_purges_what_is_dead_long_enough() {
    let mut bed = Bed::new();
    bed.configure(QueueConfig { retention_ms: Some(1_000), ..QueueConfig::default() });
    bed.publish([entry("a", 0)]);
    let fence = bed.reserve(1).fence;
    bed.settle_all(true, &[("a", fence, bury())]);
    assert_eq!(bed.agenda(), Some(START + 1_000));
    bed.pass(999);
    assert!(matches!(bed.tend(), Reply::Tended { purged: 0, .. }));
    bed.pass(1);
    assert!(matches!(bed.tend(), Reply::Tended { purged: 1, next: None, .. }));
    assert_eq!(bed.agenda(), None);
}
