//! Publishes that take the place of waiting jobs, on a real server.

use delayline_core::{
    Ceiling, Command, Due, Entry, Fence, Identity, JobId, Place, PublishOutcome, QueueConfig, Refusal, Reply,
    Session, SettleOutcome, Settlement, UnixMs,
};
use delayline_tests::{Contents, Dump};

use crate::invariants;
use crate::rig::{IntoReason, NO_LIMIT, Rig, START, batch, id, job, record};

const NOW: Due = Due::After { ms: 0 };
const LATER: Due = Due::After { ms: 60_000 };
const START_MS: u64 = START / 1000;

/// A waiting job, and what is to take its place.
struct Case {
    name: &'static str,
    waits: fn(&mut Rig),
    by: fn() -> Entry,
}

#[test]
fn what_it_leaves_is_what_a_cancel_and_a_publish_leave() {
    let mut rig = Rig::plain();
    for case in cases() {
        let [by_two, in_one] = [true, false].map(|in_two_steps| {
            rig.store.clear();
            rig.reset();
            let others = rig.publish(vec![job("other-1", LATER), large("other-2", 5_000)]);
            rig.run(&others);
            (case.waits)(&mut rig);
            let cancel = rig.cancel(vec![id("job-000")]);
            if in_two_steps {
                rig.run(&cancel);
            }
            let publish = rig.publish(vec![Entry { replace: !in_two_steps, ..(case.by)() }]);
            let outcome = if in_two_steps { PublishOutcome::New } else { PublishOutcome::Replaced };
            assert_eq!(outcomes(rig.run(&publish)), [outcome], "{}", case.name);
            let dump = rig.store.dump();
            let broken = invariants::broken(&dump, rig.store.keys(), &rig.queue, rig.now.floor_ms(), true);
            assert_eq!(broken, None, "{}", case.name);
            without_sessions(dump)
        });
        assert_eq!(in_one, by_two, "{}", case.name);
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case { name: "ready", waits: |rig| published(rig, job("job-000", NOW)), by: later },
        Case { name: "delayed, for now", waits: |rig| published(rig, later()), by: || job("job-000", NOW) },
        Case { name: "delayed, for earlier", waits: |rig| published(rig, later()), by: in_a_second },
        Case { name: "with a ttl, without", waits: |rig| published(rig, expiring()), by: later },
        Case { name: "without a ttl, with", waits: |rig| published(rig, later()), by: expiring },
        Case { name: "with a ttl, with", waits: |rig| published(rig, expiring()), by: expiring },
        Case { name: "expired unseen", waits: expired, by: later },
        Case { name: "large, small", waits: |rig| published(rig, large("job-000", 9_000)), by: later },
        Case { name: "small, large", waits: |rig| published(rig, later()), by: || large("job-000", 9_000) },
        Case {
            name: "large, larger",
            waits: |rig| published(rig, large("job-000", 5_000)),
            by: || large("job-000", 9_000),
        },
        Case { name: "failed", waits: |rig| failed(rig, job("job-000", NOW)), by: later },
        Case {
            name: "failed, with a ttl, large",
            waits: |rig| failed(rig, Entry { ttl_ms: 90_000, ..large_now() }),
            by: later,
        },
        Case {
            name: "released, by one with a ttl, large",
            waits: |rig| settled(rig, large_now(), &Settlement::Release { after_ms: 0 }),
            by: || Entry { ttl_ms: 90_000, ..large("job-000", 9_000) },
        },
        Case { name: "snoozed", waits: snoozed, by: expiring },
        Case { name: "requeued", waits: requeued, by: later },
        Case { name: "without a record", waits: without_a_record, by: later },
    ]
}

fn later() -> Entry {
    job("job-000", LATER)
}

fn in_a_second() -> Entry {
    job("job-000", Due::After { ms: 1_000 })
}

fn expiring() -> Entry {
    Entry { ttl_ms: 90_000, ..later() }
}

fn large(name: &str, bytes: usize) -> Entry {
    Entry { record: record(&vec![b'x'; bytes]), ..job(name, LATER) }
}

fn large_now() -> Entry {
    Entry { due: NOW, ..large("job-000", 9_000) }
}

fn replacing(name: &str, due: Due, body: &[u8]) -> Entry {
    Entry { replace: true, record: record(body), ..job(name, due) }
}

fn published(rig: &mut Rig, entry: Entry) {
    let publish = rig.publish(vec![entry]);
    assert_eq!(outcomes(rig.run(&publish)), [PublishOutcome::New]);
}

fn expired(rig: &mut Rig) {
    published(rig, Entry { ttl_ms: 5, ..job("job-000", NOW) });
    rig.advance(6);
}

fn held(rig: &mut Rig, entry: Entry) -> Fence {
    published(rig, entry);
    let reserve = rig.reserve(1);
    let (jobs, fence) = rig.grants(&reserve);
    assert_eq!(jobs[0].id, id("job-000"));
    fence
}

fn settle(rig: &mut Rig, fence: Fence, how: &Settlement) -> SettleOutcome {
    let leases = vec![(id("job-000"), fence, how.clone())];
    match rig.run(&Command::Settle { queue: rig.queue.clone(), tidy: false, leases }) {
        Reply::Settled { outcomes, .. } => outcomes[0],
        other => panic!("{other:?}"),
    }
}

fn settled(rig: &mut Rig, entry: Entry, how: &Settlement) {
    let fence = held(rig, entry);
    settle(rig, fence, how);
}

fn nack() -> Settlement {
    Settlement::Nack { after_ms: 2_000, reason: "no".into_reason() }
}

fn failed(rig: &mut Rig, entry: Entry) {
    settled(rig, entry, &nack());
}

fn snoozed(rig: &mut Rig) {
    settled(rig, job("job-000", NOW), &Settlement::Snooze { after_ms: 500 });
}

fn buried(rig: &mut Rig) {
    settled(rig, job("job-000", NOW), &Settlement::Bury { reason: "bad".into_reason() });
}

fn requeued(rig: &mut Rig) {
    buried(rig);
    rig.run(&Command::Requeue { queue: rig.queue.clone(), dead: Rig::dead(1) });
}

fn without_a_record(rig: &mut Rig) {
    published(rig, later());
    let pool = rig.store.keys().queue_keys(&rig.queue)[3].clone();
    rig.store.connection().ask(&["HDEL", &pool, "job-000"]);
}

#[test]
fn the_new_job_runs_once_when_it_is_due_and_from_its_first_attempt() {
    let mut rig = Rig::plain();
    let old = held(&mut rig, job("job-000", NOW));
    settle(&mut rig, old, &nack());
    let publish = rig.publish(vec![replacing("job-000", Due::After { ms: 500 }, b"new")]);
    assert_eq!(outcomes(rig.run(&publish)), [PublishOutcome::Replaced]);
    let Reply::Found { job, .. } = rig.run(&rig.inspect(id("job-000"))) else { panic!("the job is gone") };
    assert_eq!((job.place, job.at, job.state), (Place::Delayed, UnixMs(START_MS + 500), None));
    assert_eq!(settle(&mut rig, old, &Settlement::Ack), SettleOutcome::Gone);
    rig.advance(500);
    let reserve = rig.reserve(10);
    let (jobs, fence) = rig.grants(&reserve);
    assert_eq!((jobs.len(), &jobs[0].record, jobs[0].state.attempts), (1, &record(b"new"), 1));
    assert_eq!(settle(&mut rig, old, &Settlement::Ack), SettleOutcome::Stale);
    assert_eq!(settle(&mut rig, fence, &Settlement::Ack), SettleOutcome::Done);
    let Reply::Counted { stats, .. } = rig.run(&rig.stats(0)) else { panic!("no stats") };
    assert_eq!((stats.counters.published, stats.counters.cancelled, stats.counters.acked), (2, 1, 1));
}

#[test]
fn a_job_that_is_held_or_dead_stays() {
    let held_until_after: fn(&mut Rig) = |rig| {
        held(rig, job("job-000", NOW));
        rig.advance(crate::rig::LEASE_MS + 1);
    };
    let held_now: fn(&mut Rig) = |rig| {
        held(rig, Entry { ttl_ms: 90_000, ..job("job-000", NOW) });
    };
    for (name, is) in [("held", held_now), ("held, ended unseen", held_until_after), ("dead", buried)] {
        let mut rig = Rig::plain();
        is(&mut rig);
        let before = without_sessions(rig.store.dump());
        let publish = rig.publish(vec![replacing("job-000", LATER, &[b'x'; 5_000])]);
        assert_eq!(outcomes(rig.run(&publish)), [PublishOutcome::Duplicate], "{name}");
        assert_eq!(without_sessions(rig.store.dump()), before, "{name}");
    }
}

#[test]
fn where_none_waits_it_is_published_as_any_other() {
    let mut rig = Rig::plain();
    let publish = rig.publish(vec![replacing("first", LATER, b"1"), replacing("second", NOW, b"2")]);
    assert_eq!(outcomes(rig.run(&publish)), [PublishOutcome::New; 2]);
    let Reply::Counted { stats, .. } = rig.run(&rig.stats(0)) else { panic!("no stats") };
    assert_eq!((stats.counters.published, stats.counters.cancelled), (2, 0));
    assert_eq!((stats.ready, stats.delayed), (1, 1));
}

#[test]
fn the_jobs_of_a_batch_replace_each_other_in_their_order() {
    let mut rig = Rig::plain();
    published(&mut rig, Entry { ttl_ms: 90_000, ..large("old", 9_000) });
    let publish = rig.publish(vec![
        replacing("old", NOW, &[b'1'; 5_000]),
        job("new", LATER),
        Entry { ttl_ms: 70_000, ..replacing("new", NOW, &[b'2'; 5_000]) },
        job("old", NOW),
        replacing("old", LATER, b"3"),
        replacing("new", LATER, b"4"),
        job("new", NOW),
    ]);
    let [new, replaced, duplicate] =
        [PublishOutcome::New, PublishOutcome::Replaced, PublishOutcome::Duplicate];
    let all = [replaced, new, replaced, duplicate, replaced, replaced, duplicate];
    assert_eq!(outcomes(rig.run(&publish)), all);
    for (name, body) in [("old", b"3"), ("new", b"4")] {
        let Reply::Found { job, .. } = rig.run(&rig.inspect(id(name))) else { panic!("{name} is gone") };
        assert_eq!((job.record, job.at), (record(body), UnixMs(START_MS + 60_000)), "{name}");
    }
    let Reply::Counted { stats, .. } = rig.run(&rig.stats(0)) else { panic!("no stats") };
    assert_eq!((stats.counters.published, stats.counters.cancelled), (6, 4));
    assert_eq!(stats.mean_bytes, record(b"3").len() as u64);
    let dump = rig.store.dump();
    let broken = invariants::broken(&dump, rig.store.keys(), &rig.queue, rig.now.floor_ms(), true);
    assert_eq!(broken, None);
    assert!(dump.keys().all(|key| !key.ends_with(":exp") && !key.ends_with(":big")), "{dump:?}");
}

#[test]
fn a_full_queue_keeps_the_old_job() {
    for config in [
        QueueConfig { max_jobs: Some(1), ..QueueConfig::default() },
        QueueConfig { max_bytes: Some(1), ..QueueConfig::default() },
    ] {
        let mut rig = Rig::plain();
        published(&mut rig, later());
        rig.run(&rig.configure(config));
        let before = without_sessions(rig.store.dump());
        let publish = rig.publish(vec![replacing("job-000", NOW, b"new"), replacing("other", NOW, b"new")]);
        let Reply::Published { outcomes, full, .. } = rig.run(&publish) else { panic!("no answer") };
        let ceiling = full.map(|full| full.ceiling).expect("how full");
        assert_eq!(outcomes, [PublishOutcome::Full; 2]);
        assert!(ceiling == Ceiling { jobs: 1, bytes: 0 } || ceiling == Ceiling { jobs: 0, bytes: 1 });
        assert_eq!(without_sessions(rig.store.dump()), before);
    }
}

#[test]
fn at_maxmemory_the_old_job_stays_and_a_repeat_replaces_it() {
    let mut rig = Rig::plain();
    failed(&mut rig, Entry { ttl_ms: 90_000, ..large_now() });
    let before = rig.store.dump();
    let publish = rig.publish(vec![replacing("job-000", NOW, b"smaller")]);
    rig.store.connection().ask(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(rig.run(&publish), Reply::Refused(Refusal::OutOfMemory));
    assert_eq!(rig.store.dump(), before);
    rig.store.connection().ask(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(outcomes(rig.run(&publish)), [PublishOutcome::Replaced]);
}

#[test]
fn a_repeat_answers_as_before_and_spares_what_came_since() {
    let mut rig = Rig::plain();
    published(&mut rig, later());
    let earlier = rig.publish(vec![replacing("job-000", LATER, b"earlier")]);
    let publish = rig.publish(vec![replacing("job-000", NOW, b"new")]);
    let Reply::Published { since, outcomes, .. } = rig.run(&publish) else { panic!("no answer") };
    assert_eq!(outcomes, [PublishOutcome::Replaced]);
    rig.advance(5);
    let by_another = Command::Publish {
        queue: rig.queue.clone(),
        session: Session { engine: Identity(8), lane: 0, sequence: 1 },
        ceiling: NO_LIMIT,
        jobs: vec![replacing("job-000", LATER, b"newest")],
    };
    rig.run(&by_another);
    let before = rig.store.dump();
    let again = Reply::Published { time: rig.now, since, outcomes, full: None };
    assert_eq!(rig.run(&publish), again);
    assert_eq!(rig.run(&earlier), Reply::Superseded { time: rig.now });
    assert_eq!(rig.store.dump(), before);
}

#[test]
fn whoever_waits_for_a_job_hears_of_one_that_is_due_in_place_of_a_later_one() {
    let mut rig = Rig::plain();
    rig.store.subscribe(rig.engine);
    published(&mut rig, later());
    let reserve = rig.reserve(1);
    rig.run(&reserve);
    rig.store.heard();
    let publish = rig.publish(vec![replacing("job-000", NOW, b"new")]);
    rig.run(&publish);
    let heard = rig.store.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].1, "orders");
}

#[test]
fn a_batch_replaces_as_many_as_it_may_hold() {
    let mut rig = Rig::plain();
    let most = u16::try_from(Command::JOBS_MAX).expect("few");
    let first = rig.publish(batch("job", most, NOW));
    rig.run(&first);
    let reserve = rig.reserve(Command::GRANTS_MAX);
    let (jobs, fence) = rig.grants(&reserve);
    rig.run(&rig.settle(&jobs, fence, &nack(), false));
    let by: Vec<Entry> = batch("job", most, LATER);
    let names: Vec<JobId> = by.iter().map(|job| job.id.clone()).collect();
    let publish = rig.publish(by.into_iter().map(|job| Entry { replace: true, ..job }).collect());
    assert_eq!(outcomes(rig.run(&publish)), vec![PublishOutcome::Replaced; names.len()]);
    let Reply::Counted { stats, .. } = rig.run(&rig.stats(0)) else { panic!("no stats") };
    assert_eq!((stats.ready, stats.delayed, stats.counters.cancelled), (0, 500, 500));
}

fn outcomes(reply: Reply) -> Vec<PublishOutcome> {
    match reply {
        Reply::Published { outcomes, .. } => outcomes,
        other => panic!("{other:?}"),
    }
}

/// What commands leave beside their own answers.
fn without_sessions(mut dump: Dump) -> Dump {
    for (_, contents) in dump.iter_mut().filter(|(key, _)| key.ends_with(":meta")) {
        if let Contents::Hash(fields) = contents {
            fields.retain(|field, _| field != "sessions" && (!field.starts_with(b"s") || field == "snoozed"));
        }
    }
    dump
}
