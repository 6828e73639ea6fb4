use super::*;
use delayline_core::{Phase, PublishOutcome, RescheduleOutcome, State};

use crate::Bug;

#[test]
fn a_delay_rounds_up_and_nothing_is_granted_before_it() {
    let mut bed = Bed::new();
    bed.publish([entry("later", 10), entry("now", 0)]);
    assert_eq!(bed.reserve(10).ids(), ["now"]);
    bed.pass(10);
    let granted = bed.reserve(10);
    assert_eq!((granted.ids(), granted.next), (vec![], Some(START + 11)));
    bed.us += 500;
    assert_eq!(bed.reserve(10).ids(), ["later"]);
}

#[test]
fn the_order_is_by_due_time_then_by_id() {
    let mut bed = Bed::new();
    bed.publish([entry("b", 5), entry("a", 5), entry("C", 5), entry("first", 1)]);
    bed.pass(10);
    let granted = bed.reserve(3);
    assert_eq!(granted.ids(), ["first", "C", "a"]);
    assert!(granted.more);
}

#[test]
fn a_repeated_publish_is_answered_as_before_even_when_its_job_is_gone() {
    let mut bed = Bed::new();
    let session = bed.session(ALICE);
    let first = bed.publish_as(session, vec![entry("a", 0), entry("a", 0)]);
    let (outcomes, since) = (vec![PublishOutcome::New, PublishOutcome::Duplicate], UnixMicros(START_US));
    assert_eq!(first, Reply::Published { time: since, since, outcomes: outcomes.clone(), full: None });
    let fence = bed.reserve_by(BOB, 1).fence;
    assert_eq!(bed.settle("a", fence, Settlement::Ack), SettleOutcome::Done);
    bed.pass(7);
    let again = bed.publish_as(session, vec![entry("a", 0), entry("a", 0)]);
    assert_eq!(again, Reply::Published { time: UnixMicros(bed.us), since, outcomes, full: None });
    assert!(bed.inspect("a").is_none());
}

#[test]
fn a_replacing_publish_takes_the_place_of_what_waits_and_of_nothing_else() {
    let mut bed = Bed::new();
    let replacing = |name: &str, body: &str| Entry { replace: true, record: record(body), ..entry(name, 10) };
    bed.publish([entry("held", 0), entry("failed", 0), entry("dead", 0), expiring("waits", 50, 60)]);
    let fence = bed.reserve(3).fence;
    bed.settle("failed", fence, nack(5));
    bed.settle("dead", fence, bury());
    let jobs = ["waits", "failed", "held", "dead", "none", "none"].map(|name| replacing(name, "new"));
    let Reply::Published { outcomes, .. } = bed.publish(jobs) else { panic!("no answer") };
    let [new, replaced, duplicate] =
        [PublishOutcome::New, PublishOutcome::Replaced, PublishOutcome::Duplicate];
    assert_eq!(outcomes, [replaced, replaced, duplicate, duplicate, new, replaced]);
    for name in ["waits", "failed", "none"] {
        let job = bed.inspect(name).unwrap();
        assert_eq!((job.at, job.state, job.expires, job.record), (START + 11, None, None, record("new")));
    }
    let stats = bed.stats();
    assert_eq!((stats.counters.published, stats.counters.cancelled), (8, 3));
    assert_eq!((stats.delayed, stats.leased, stats.dead), (3, 1, 1));
    assert_eq!(bed.meta("exp").as_deref(), Some("0"));
}

#[test]
fn a_repeated_reserve_is_answered_what_is_still_held() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0), entry("b", 0), entry("c", 0)]);
    let session = bed.session(BOB);
    let first = granted(bed.reserve_as(session, 2, 1 << 20));
    bed.settle("a", first.fence, Settlement::Ack);
    let again = granted(bed.reserve_as(session, 2, 1 << 20));
    assert_eq!((again.ids(), again.fence), (vec!["b"], first.fence));
    assert_eq!(again.jobs[0], first.jobs[1]);
    assert_eq!(bed.stats().counters.granted, 2);
}

#[test]
fn a_lower_sequence_does_nothing() {
    let mut bed = Bed::new();
    let (late, next) = (bed.session(ALICE), bed.session(ALICE));
    bed.publish_as(next, vec![entry("a", 0)]);
    let time = UnixMicros(bed.us);
    assert_eq!(bed.publish_as(late, vec![entry("b", 0)]), Reply::Superseded { time });
    assert!(bed.inspect("b").is_none());
    bed.reserve_as(next, 1, 1 << 20);
    let before = bed.dump();
    assert_eq!(bed.reserve_as(late, 1, 1 << 20), Reply::Superseded { time });
    assert_eq!(bed.dump(), before);
}

#[test]
fn without_sessions_a_repeat_runs_twice() {
    let mut bed = Bed::new();
    bed.store.plant(Some(Bug::SessionIgnored));
    let session = bed.session(ALICE);
    bed.publish_as(session, vec![entry("a", 0)]);
    let fence = bed.reserve(1).fence;
    bed.settle("a", fence, Settlement::Ack);
    bed.publish_as(session, vec![entry("a", 0)]);
    assert_eq!(bed.stats().counters.published, 2);
}

#[test]
fn a_full_queue_says_how_full_and_takes_nothing() {
    let mut bed = Bed::new();
    bed.configure(QueueConfig { max_jobs: Some(2), ..QueueConfig::default() });
    bed.publish([entry("a", 0), entry("b", 0)]);
    let fence = bed.reserve(1).fence;
    bed.settle("a", fence, bury());
    let Reply::Published { outcomes, full: Some(full), .. } = bed.publish([entry("c", 0)]) else {
        panic!("not full");
    };
    assert_eq!(outcomes, [PublishOutcome::Full]);
    assert_eq!((full.jobs, full.dead, full.bytes), (2, 1, 2 * bed.stats().mean_bytes));
    assert_eq!(full.ceiling, Ceiling { jobs: 2, bytes: 0 });
    bed.cancel("b");
    bed.publish([entry("c", 0)]);
    assert!(bed.inspect("c").is_some());
}

#[test]
fn a_reply_holds_as_many_bytes_as_asked_for_but_always_one_job() {
    let mut bed = Bed::new();
    let big = |name: &str| Entry { record: record(&"x".repeat(10_000)), ..entry(name, 0) };
    bed.publish([big("a"), entry("b", 0), entry("c", 0), entry("d", 0)]);
    let session = bed.session(ALICE);
    let first = granted(bed.reserve_as(session, 4, 1));
    assert_eq!((first.ids(), first.more), (vec!["a"], true));
    let session = bed.session(ALICE);
    assert_eq!(granted(bed.reserve_as(session, 4, 8_192)).ids(), ["b", "c"]);
    assert!(first.jobs[0].state.has(State::BIG));
}

#[test]
fn fences_follow_the_clock_and_never_come_back() {
    let mut bed = Bed::new();
    bed.publish([entry("a", 0), entry("b", 0), entry("c", 0)]);
    let first = bed.reserve(1).fence;
    assert_eq!(first, Fence(START_US));
    bed.us -= 1000;
    bed.publish([Entry { due: Due::At(UnixMs(1)), ..entry("early", 0) }]);
    assert_eq!(bed.reserve(1).fence, Fence(START_US + 1));
}

#[test]
fn what_cannot_be_read_is_dead_and_what_is_newer_waits() {
    let mut bed = Bed::new();
    bed.publish([entry("bad", 0), entry("good", 0), entry("lost", 0), entry("newer", 0)]);
    bed.store.put_record(&queue(), id("bad"), Bytes::from_static(b"junk"));
    bed.store.put_record(&queue(), id("newer"), Bytes::from_static(b"2"));
    bed.store.drop_record(&queue(), &id("lost"));
    let granted = bed.reserve(10);
    assert_eq!((granted.ids(), granted.more), (vec!["good"], false));
    let bad = bed.inspect("bad").unwrap();
    let state = bad.state.unwrap();
    assert_eq!((state.phase, state.reason.as_str()), (Phase::Dead, "unreadable"));
    assert_eq!((&bad.record[..], bad.at), (&b"junk"[..], START));
    let newer = bed.inspect("newer").unwrap();
    assert_eq!((newer.at, newer.state), (START + 60_000, None));
    assert!(bed.inspect("lost").is_none());
    let counters = bed.stats().counters;
    assert_eq!((counters.unreadable, counters.died, counters.newer, counters.lost), (1, 1, 1, 1));
}

#[test]
fn attempts_are_the_records_else_the_configs_else_ten() {
    let mut bed = Bed::new();
    let own = plain(&Record { attempts: Some(3), ..Record::default() });
    bed.publish([entry("a", 0), Entry { record: own, ..entry("b", 0) }]);
    let max = |granted: &Granted| granted.jobs.iter().map(|job| job.state.max).collect::<Vec<_>>();
    let first = bed.reserve(2);
    assert_eq!(max(&first), [10, 3]);
    bed.settle_all(false, &[("a", first.fence, nack(0)), ("b", first.fence, nack(0))]);
    bed.configure(QueueConfig { attempts: Some(5), ..QueueConfig::default() });
    assert_eq!(max(&bed.reserve(2)), [5, 3]);
}

#[test]
fn cancel_and_reschedule_reach_waiting_jobs_only() {
    use CancelOutcome::Cancelled;
    use RescheduleOutcome::{Dead, Expires, Gone, Leased, Moved};

    let mut bed = Bed::new();
    bed.publish([entry("held", 0), entry("dead", 0)]);
    let fence = bed.reserve(2).fence;
    bed.settle("dead", fence, bury());
    bed.publish([entry("waits", 5_000), expiring("short", 0, 100)]);
    let all = ["held", "dead", "none", "short", "waits"];
    let jobs = all.map(|name| (id(name), Due::After { ms: 200 })).to_vec();
    let session = bed.session(ALICE);
    let reschedule = Command::Reschedule { queue: queue(), session, jobs };
    let Reply::Rescheduled { outcomes, dues, .. } = bed.run(&reschedule) else {
        panic!("no reply");
    };
    assert_eq!(outcomes, [Leased, Dead, Gone, Expires, Moved]);
    assert_eq!((dues[4], bed.inspect("waits").unwrap().at), (START + 201, START + 201));
    assert_eq!(bed.cancel("waits"), Cancelled);
    assert_eq!(bed.cancel("waits"), CancelOutcome::Gone);
    assert_eq!(bed.cancel("held"), CancelOutcome::Leased);
    assert_eq!(bed.cancel("dead"), CancelOutcome::Dead);
    assert_eq!(bed.cancel("short"), Cancelled);
    assert_eq!(bed.meta("exp").as_deref(), Some("0"));
    assert!(!bed.dump().contains_key("{dl:0.0}:orders:exp"));
}

#[test]
fn lists_go_page_by_page() {
    use delayline_core::Place::{Delayed, Ready};

    let mut bed = Bed::new();
    bed.publish([entry("a", 0), entry("b", 0), entry("x", 10), entry("y", 20), entry("z", 30)]);
    let list = |bed: &mut Bed, place, limit, after| {
        let max_bytes = 1 << 20;
        match bed.run(&Command::List { queue: queue(), place, limit, max_bytes, after }) {
            Reply::Listed { jobs, more, .. } => {
                (jobs.iter().map(|job| job.id.to_string()).collect::<Vec<_>>(), more)
            }
            other => panic!("{other:?}"),
        }
    };
    let of = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(list(&mut bed, Ready, 1, None), (of(&["a"]), true));
    assert_eq!(list(&mut bed, Ready, 1, Some((START, id("a")))), (of(&["b"]), false));
    assert_eq!(list(&mut bed, Delayed, 1, None), (of(&["x"]), true));
    bed.pass(22);
    assert_eq!(list(&mut bed, Delayed, 1, Some((START + 11, id("x")))), (of(&["z"]), false));
}

#[test]
fn a_command_without_jobs_is_broken_and_changes_nothing() {
    let mut bed = Bed::new();
    let session = bed.session(ALICE);
    let cancel = Command::Cancel { queue: queue(), session, ids: vec![] };
    for reply in [bed.publish([]), bed.run(&cancel)] {
        assert!(matches!(reply, Reply::Broken(_)), "{reply:?}");
    }
    assert!(bed.dump().is_empty());
}
