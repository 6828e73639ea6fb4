use super::*;
use delayline_core::Shard;

const CAROL: Identity = Identity(3);

#[test]
fn the_longest_idle_engine_that_listens_is_woken() {
    let mut bed = Bed::new();
    for engine in [ALICE, BOB, CAROL] {
        assert!(bed.reserve_by(engine, 1).jobs.is_empty());
        bed.pass(1);
    }
    bed.store.subscribe(BOB);
    bed.store.subscribe(CAROL);
    bed.publish([entry("a", 0)]);
    assert_eq!(bed.notices(), [ready(BOB)]);
    bed.publish([entry("b", 0)]);
    assert_eq!(bed.notices(), [ready(CAROL)]);
    assert_eq!(bed.meta("w").as_deref(), Some("1"));
    bed.publish([entry("c", 0)]);
    assert_eq!((bed.notices(), bed.meta("w")), (vec![], None));
}

#[test]
fn a_wake_tries_four_engines() {
    let mut bed = Bed::new();
    for engine in 1..=5 {
        bed.reserve_by(Identity(engine), 1);
    }
    bed.store.subscribe(Identity(5));
    bed.publish([entry("a", 0)]);
    assert_eq!(bed.notices(), []);
    bed.publish([entry("b", 0)]);
    assert_eq!(bed.notices(), [ready(Identity(5))]);
}

#[test]
fn a_reserve_that_leaves_jobs_wakes_the_next_engine() {
    let mut bed = Bed::new();
    bed.reserve_by(BOB, 1);
    bed.store.subscribe(BOB);
    bed.publish([entry("later", 100), entry("later2", 100)]);
    bed.pass(101);
    assert!(bed.reserve_by(ALICE, 1).more);
    assert_eq!(bed.notices(), [ready(BOB)]);
}

#[test]
fn who_leaves_is_not_woken_and_hands_on_what_it_reaped() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0)]);
    bed.reserve_by(ALICE, 1);
    bed.reserve_by(BOB, 1);
    bed.reserve_by(CAROL, 1);
    for engine in [ALICE, BOB, CAROL] {
        bed.store.subscribe(engine);
    }
    bed.pass(31_000);
    assert!(bed.reserve_by(BOB, 0).jobs.is_empty());
    assert_eq!(bed.notices(), [ready(CAROL)]);
}

#[test]
fn tending_wakes_for_what_is_due_and_forgets_old_registrations() {
    let mut bed = Bed::new();
    bed.store.subscribe(ALICE);
    bed.reserve_by(ALICE, 1);
    bed.publish([entry("a", 500_000), entry("b", 700_000)]);
    bed.pass(500_001);
    bed.tend();
    assert_eq!(bed.notices(), [ready(ALICE)]);
    bed.reserve_by(ALICE, 2);
    bed.pass(600_000);
    bed.tend();
    assert_eq!((bed.notices(), bed.meta("w")), (vec![], None));
}

#[test]
fn a_new_head_is_announced_to_all_that_listen_if_it_is_near() {
    let mut bed = Bed::new();
    bed.store.subscribe_head(Shard(0), BOB);
    bed.store.subscribe_head(Shard(0), ALICE);
    bed.publish([entry("far", 60_000)]);
    // The queue comes to be: who tends the shard is to look at once.
    let birth = vec![head(ALICE, START), head(BOB, START)];
    assert_eq!((bed.notices(), bed.agenda()), (birth, Some(START + 60_001)));
    bed.publish([entry("near", 10_000)]);
    let at = START + 10_001;
    assert_eq!((bed.notices(), bed.agenda()), (vec![head(ALICE, at), head(BOB, at)], Some(at)));
    bed.store.unsubscribe_head(Shard(0), ALICE);
    bed.store.unsubscribe(BOB);
    bed.publish([entry("nearer", 5_000)]);
    assert_eq!(bed.notices(), []);
}

#[test]
fn a_head_is_announced_before_a_wake() {
    let mut bed = Bed::new();
    bed.reserve_by(BOB, 1);
    bed.store.subscribe(BOB);
    bed.store.subscribe_head(Shard(0), ALICE);
    bed.publish([entry("later", 1_000), entry("now", 0)]);
    assert_eq!(bed.notices(), [head(ALICE, START + 1_001), ready(BOB)]);
}

#[test]
fn the_agenda_holds_the_next_event_whatever_it_is() {
    let mut bed = Bed::new();
    bed.publish([expiring("a", 0, 90_000), entry("b", 50_000)]);
    assert_eq!(bed.reserve(5).next, Some(START + 30_001));
    bed.pass(30_001);
    let granted = bed.reserve(5);
    assert_eq!((granted.ids(), granted.next), (vec!["a"], Some(START + 50_001)));
    bed.settle_all(true, &[("a", granted.fence, nack(70_000))]);
    assert_eq!(bed.agenda(), Some(START + 50_001));
    bed.cancel("b");
    assert_eq!(bed.agenda(), Some(START + 50_001));
    assert!(matches!(bed.tend(), Reply::Tended { next: Some(next), .. } if next == START + 90_001));
}

#[test]
fn overdue_jobs_that_nobody_wants_do_not_hold_the_agenda_in_the_past() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 10)]);
    bed.pass(20);
    assert!(matches!(bed.tend(), Reply::Tended { next: None, more: false, .. }));
    assert_eq!(bed.agenda(), None);
}

#[test]
fn a_limited_tend_stays_on_the_agenda() {
    let mut bed = Bed::new();
    bed.publish(["a", "b", "c"].map(|name| expiring(name, 0, 10)));
    bed.pass(20);
    let now = bed.now();
    for expired in [2, 1] {
        let reply = bed.tend_to(2, None);
        assert!(matches!(reply, Reply::Tended { expired: n, more, .. } if n == expired && more == (n == 2)));
        assert_eq!(bed.agenda(), (expired == 2).then_some(now));
    }
}

#[test]
fn tidying_announces_what_a_verdict_brought_near() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0)]);
    let fence = bed.reserve(1).fence;
    bed.store.subscribe_head(Shard(0), BOB);
    bed.settle_all(true, &[("a", fence, nack(1_000))]);
    assert_eq!(bed.notices(), [head(BOB, START + 1_001)]);
    assert_eq!((bed.agenda(), bed.meta("lo").as_deref()), (Some(START + 1_001), Some("")));
}

#[test]
fn the_pump_lease_has_one_holder() {
    let mut bed = Bed::new();
    let peek = |engine, lease_ms, stay| Command::Peek {
        shard: Shard(0),
        engine,
        entries: 1,
        lease_ms,
        stay,
        queues: vec![],
    };
    let holder = |reply| match reply {
        Reply::Peeked { holder, .. } => holder,
        other => panic!("{other:?}"),
    };
    assert_eq!(holder(bed.run(&peek(ALICE, 30_000, false))), None);
    let held = Some((ALICE, START + 30_000));
    assert_eq!(holder(bed.run(&peek(ALICE, 30_000, true))), held);
    assert_eq!(holder(bed.run(&peek(BOB, 30_000, true))), held);
    bed.pass(14_999);
    assert_eq!(holder(bed.run(&peek(ALICE, 30_000, true))), held);
    bed.pass(1);
    assert_eq!(holder(bed.run(&peek(ALICE, 30_000, false))), None);
    assert_eq!(holder(bed.run(&peek(ALICE, 30_000, true))), Some((ALICE, START + 45_000)));
    assert_eq!(holder(bed.run(&peek(BOB, 0, true))), Some((ALICE, START + 45_000)));
    assert_eq!(holder(bed.run(&peek(ALICE, 0, true))), None);
    assert!(!bed.dump().contains_key("{dl:0.0}:lease"));
    bed.publish([entry("a", 1)]);
    bed.pass(2);
    assert_eq!(holder(bed.run(&peek(BOB, 100, false))), Some((BOB, bed.now() + 100)));
}
