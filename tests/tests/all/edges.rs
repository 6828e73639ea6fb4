//! What the contract says at its edges, on a real server: two stores could share a misreading.

use delayline_core::{
    CancelOutcome, Command, DeadLetters, Due, Fence, Identity, Phase, Place, PublishOutcome, QueueConfig,
    Refusal, Reply, RescheduleOutcome, Session, SettleOutcome, Settlement, UnixMs,
};
use delayline_tests::{Options, RedisServer};

use crate::rig::{IntoReason, LEASE_MS, NO_LIMIT, Rig, START, batch, id, ids, job};

const NOW: Due = Due::After { ms: 0 };
const LATER: Due = Due::After { ms: 60_000 };
const START_MS: u64 = START / 1000;

#[test]
fn nothing_is_delivered_before_its_millisecond() {
    let mut rig = Rig::plain();
    rig.now.0 = START + 1;
    let publish =
        rig.publish(vec![job("later", Due::After { ms: 5 }), job("at", Due::At(UnixMs(START_MS + 6)))]);
    rig.run(&publish);
    let first = START_MS * 1000 + 6_000;
    for (now, found) in [(first - 1, 0), (first, 2)] {
        rig.now.0 = now;
        let reserve = rig.reserve(10);
        assert_eq!(rig.grants(&reserve).0.len(), found, "at {now}");
    }
}

#[test]
fn a_repeated_reserve_answers_only_the_grants_still_held() {
    let mut rig = Rig::plain();
    let publish = rig.publish(batch("job", 4, NOW));
    rig.run(&publish);
    let reserve = rig.reserve(4);
    let (jobs, fence) = rig.grants(&reserve);
    let ack = rig.settle(&jobs[..1], fence, &Settlement::Ack, false);
    let nack = Settlement::Nack { after_ms: 0, reason: "no".into_reason() };
    let nack = rig.settle(&jobs[1..2], fence, &nack, false);
    rig.run(&ack);
    rig.run(&nack);
    rig.advance(1_000);
    let (again, same) = rig.grants(&reserve);
    assert_eq!((ids(&again), same), (ids(&jobs[2..]), fence));
    assert_eq!(again[0].record, jobs[2].record);
}

#[test]
fn a_repeated_reserve_after_its_leases_were_granted_anew_answers_nothing() {
    let mut rig = Rig::plain();
    let publish = rig.publish(batch("job", 2, NOW));
    rig.run(&publish);
    let first = rig.reserve(2);
    let (_, old) = rig.grants(&first);
    rig.advance(LEASE_MS + 1);
    rig.engine = Identity(8);
    let second = rig.reserve(2);
    let (jobs, new) = rig.grants(&second);
    assert_eq!(jobs.len(), 2);
    assert!(new > old);
    assert_eq!(rig.grants(&first).0, []);
}

#[test]
fn a_lower_sequence_does_nothing() {
    let mut rig = Rig::plain();
    let late = rig.publish(batch("late", 2, NOW));
    let next = rig.publish(batch("next", 1, NOW));
    rig.run(&next);
    let before = rig.store.dump();
    assert_eq!(rig.run(&late), Reply::Superseded { time: rig.now });
    assert_eq!(rig.store.dump(), before);
    let late = rig.reserve(1);
    let next = rig.reserve(1);
    assert_eq!(rig.grants(&next).0.len(), 1);
    let before = rig.store.dump();
    assert_eq!(rig.run(&late), Reply::Superseded { time: rig.now });
    assert_eq!(rig.store.dump(), before);
}

#[test]
fn a_late_cancel_spares_a_job_published_since() {
    let mut rig = Rig::plain();
    let publish = rig.publish(batch("job", 2, LATER));
    rig.run(&publish);
    let cancel = rig.cancel(vec![id("job-000"), id("none")]);
    let outcomes = vec![CancelOutcome::Cancelled, CancelOutcome::Gone];
    assert_eq!(rig.run(&cancel), Reply::Cancelled { time: rig.now, outcomes: outcomes.clone() });
    let publish = rig.publish(vec![job("job-000", LATER), job("none", LATER)]);
    rig.run(&publish);
    rig.advance(1);
    let before = rig.store.dump();
    assert_eq!(rig.run(&cancel), Reply::Cancelled { time: rig.now, outcomes });
    assert_eq!(rig.store.dump(), before);
}

#[test]
fn a_late_reschedule_spares_a_later_one() {
    let mut rig = Rig::plain();
    let publish = rig.publish(batch("job", 2, LATER));
    rig.run(&publish);
    let both = [id("job-000"), id("none"), id("job-001")];
    let (first, cancel) = (rig.reschedule(&both, Due::After { ms: 10 }), rig.cancel(both.to_vec()));
    let Reply::Rescheduled { outcomes, dues, .. } = rig.run(&first) else { panic!("no answer") };
    rig.advance(5);
    let time = rig.now;
    assert_eq!(rig.run(&first), Reply::Rescheduled { time, outcomes, dues });
    let second = rig.reschedule(&both, Due::After { ms: 500 });
    rig.run(&second);
    let before = rig.store.dump();
    assert_eq!(rig.run(&first), Reply::Superseded { time });
    assert_eq!(rig.run(&cancel), Reply::Superseded { time });
    assert_eq!(rig.store.dump(), before);
}

#[test]
fn a_repeated_publish_of_a_finished_job_does_not_run_it_twice() {
    let mut rig = Rig::plain();
    let publish = rig.publish(batch("job", 1, NOW));
    let first = rig.run(&publish);
    let reserve = rig.reserve(1);
    let (jobs, fence) = rig.grants(&reserve);
    let ack = rig.settle(&jobs, fence, &Settlement::Ack, false);
    rig.run(&ack);
    rig.advance(500);
    let (Reply::Published { since, .. }, Reply::Published { time, since: again, outcomes, .. }) =
        (first, rig.run(&publish))
    else {
        panic!("no answers to publish")
    };
    assert_eq!((time, again, outcomes), (rig.now, since, vec![PublishOutcome::New]));
    let reserve = rig.reserve(1);
    assert_eq!(rig.grants(&reserve).0, []);
}

#[test]
fn a_fence_grows_though_the_clock_goes_back() {
    let mut rig = Rig::plain();
    let (jobs, first) = rig.granted(1);
    assert_eq!(first, Fence(START));
    let release = rig.settle(&jobs, first, &Settlement::Release { after_ms: 0 }, false);
    rig.run(&release);
    rig.now.0 -= 400;
    let reserve = rig.reserve(1);
    assert_eq!(rig.grants(&reserve).1, Fence(START + 1));
}

#[test]
fn a_lease_that_ended_can_be_settled_until_it_is_reaped() {
    let mut rig = Rig::plain();
    let (jobs, fence) = rig.granted(2);
    rig.advance(LEASE_MS + 1_000);
    let ack = rig.settle(&jobs[..1], fence, &Settlement::Ack, false);
    assert_eq!(outcomes(rig.run(&ack)), [SettleOutcome::Done]);
    let tend = rig.tend();
    rig.run(&tend);
    let ack = rig.settle(&jobs, fence, &Settlement::Ack, false);
    assert_eq!(outcomes(rig.run(&ack)), [SettleOutcome::Gone, SettleOutcome::Stale]);
}

#[test]
fn an_ended_lease_spends_its_attempt_and_is_due_as_of_its_end() {
    let mut rig = Rig::plain();
    rig.granted(1);
    rig.advance(LEASE_MS + 5_000);
    let tend = rig.tend();
    rig.run(&tend);
    let Reply::Found { job, .. } = rig.run(&rig.inspect(id("job-000"))) else { panic!("the job is gone") };
    let state = job.state.expect("a state");
    assert_eq!((job.place, job.at), (Place::Ready, UnixMs(START_MS + LEASE_MS)));
    assert_eq!((state.phase, state.attempts), (Phase::Ended, 1));
}

#[test]
fn released_jobs_come_first_again_and_keep_their_attempts() {
    let mut rig = Rig::plain();
    let (jobs, fence) = rig.granted(2);
    rig.advance(1_000);
    let publish = rig.publish(vec![job("a-younger", NOW)]);
    rig.run(&publish);
    let release = rig.settle(&jobs, fence, &Settlement::Release { after_ms: 0 }, false);
    rig.run(&release);
    let reserve = rig.reserve(10);
    let (again, _) = rig.grants(&reserve);
    assert_eq!(ids(&again), [id("job-000"), id("job-001"), id("a-younger")]);
    assert_eq!((again[0].state.attempts, again[0].state.deliveries), (1, 2));
}

#[test]
fn the_verdict_of_an_earlier_fence_is_stale_and_a_resent_one_is_known() {
    let mut rig = Rig::plain();
    let (jobs, first) = rig.granted(1);
    let nack = Settlement::Nack { after_ms: 0, reason: "no".into_reason() };
    let nack_first = rig.settle(&jobs, first, &nack, false);
    assert_eq!(outcomes(rig.run(&nack_first)), [SettleOutcome::Done]);
    assert_eq!(outcomes(rig.run(&nack_first)), [SettleOutcome::Repeat]);
    let reserve = rig.reserve(1);
    rig.grants(&reserve);
    assert_eq!(outcomes(rig.run(&nack_first)), [SettleOutcome::Stale]);
}

#[test]
fn an_extended_lease_never_ends_earlier_than_promised() {
    let mut rig = Rig::plain();
    let (jobs, fence) = rig.granted(1);
    let shorter = Command::Extend {
        queue: rig.queue.clone(),
        lease_ms: 1_000,
        leases: vec![(jobs[0].id.clone(), fence)],
    };
    rig.run(&shorter);
    rig.advance(LEASE_MS - 1);
    let tend = rig.tend();
    assert!(matches!(rig.run(&tend), Reply::Tended { ended: 0, .. }));
    rig.advance(1);
    assert!(matches!(rig.run(&tend), Reply::Tended { ended: 1, .. }));
}

#[test]
fn a_job_that_expires_while_it_is_held_can_still_be_acked() {
    let mut rig = Rig::plain();
    let mut jobs = batch("job", 2, NOW);
    for job in &mut jobs {
        job.ttl_ms = 10;
    }
    let publish = rig.publish(jobs);
    rig.run(&publish);
    let reserve = rig.reserve(2);
    let (jobs, fence) = rig.grants(&reserve);
    rig.advance(20);
    let tend = rig.tend();
    assert!(matches!(rig.run(&tend), Reply::Tended { expired: 2, .. }));
    let ack = rig.settle(&jobs[..1], fence, &Settlement::Ack, false);
    let snooze = rig.settle(&jobs[1..], fence, &Settlement::Snooze { after_ms: 5 }, false);
    assert_eq!(outcomes(rig.run(&ack)), [SettleOutcome::Done]);
    assert_eq!(outcomes(rig.run(&snooze)), [SettleOutcome::Expired]);
    let Reply::Counted { stats, .. } = rig.run(&rig.stats(0)) else { panic!("no stats") };
    assert_eq!((stats.counters.acked, stats.counters.expired), (1, 1));
    assert_eq!((stats.ready, stats.delayed, stats.leased, stats.dead), (0, 0, 0, 0));
}

#[test]
fn no_job_is_moved_past_its_expiry() {
    let mut rig = Rig::plain();
    let mut jobs = batch("job", 1, Due::After { ms: 10 });
    jobs[0].ttl_ms = 100;
    let publish = rig.publish(jobs);
    rig.run(&publish);
    for (ms, outcome) in [(100, RescheduleOutcome::Moved), (101, RescheduleOutcome::Expires)] {
        let reschedule = rig.reschedule(&[id("job-000")], Due::After { ms });
        let Reply::Rescheduled { outcomes, .. } = rig.run(&reschedule) else { panic!("no answer") };
        assert_eq!(outcomes, [outcome], "{ms}");
    }
}

#[test]
fn the_last_attempt_ends_in_a_dead_letter() {
    let mut rig = Rig::plain();
    rig.run(&rig.configure(QueueConfig { attempts: Some(1), ..QueueConfig::default() }));
    let (jobs, fence) = rig.granted(1);
    let nack = Settlement::Nack { after_ms: 1_000, reason: "broken".into_reason() };
    let nack = rig.settle(&jobs, fence, &nack, false);
    assert_eq!(outcomes(rig.run(&nack)), [SettleOutcome::Died]);
    let requeue = Command::Requeue { queue: rig.queue.clone(), dead: Rig::dead(1) };
    rig.run(&requeue);
    let reserve = rig.reserve(1);
    let (again, _) = rig.grants(&reserve);
    assert_eq!((again[0].state.attempts, again[0].state.reason.as_str()), (1, "broken"));
    rig.advance(LEASE_MS);
    let tend = rig.tend();
    rig.run(&tend);
    let Reply::Found { job, .. } = rig.run(&rig.inspect(id("job-000"))) else { panic!("the job is gone") };
    assert_eq!(
        (job.place, job.state.map(|state| state.reason)),
        (Place::Dead, Some("lease ended".into_reason()))
    );
}

#[test]
fn a_repeated_purge_spares_what_died_since() {
    let mut rig = Rig::plain();
    rig.buried(2);
    let purge = |until, limit| DeadLetters { ids: None, until, limit };
    let command = Command::Purge { queue: rig.queue.clone(), dead: purge(None, 1) };
    let Reply::DeadMoved { until, moved: 1, left: 1, .. } = rig.run(&command) else {
        panic!("not one purged")
    };
    rig.advance(5);
    let (publish, reserve) = (rig.publish(batch("young", 1, NOW)), rig.reserve(1));
    rig.run(&publish);
    let (jobs, fence) = rig.grants(&reserve);
    let bury = rig.settle(&jobs, fence, &Settlement::Bury { reason: "bad".into_reason() }, false);
    rig.run(&bury);
    let command = Command::Purge { queue: rig.queue.clone(), dead: purge(Some(until), 500) };
    assert!(matches!(rig.run(&command), Reply::DeadMoved { moved: 1, left: 1, .. }));
}

#[test]
fn a_failed_forward_keeps_its_jobs_and_comes_again() {
    let mut rig = Rig::plain();
    rig.store.connection().ask(&["SET", "taken", "by a string"]);
    let forward: delayline_core::Forward = "list:taken".parse().expect("a destination");
    rig.run(&rig.configure(QueueConfig { forward: Some(forward.clone()), ..QueueConfig::default() }));
    let publish = rig.publish(batch("job", 3, NOW));
    rig.run(&publish);
    let tend = Command::Tend { queue: rig.queue.clone(), limit: 256, forward: Some(forward) };
    let retry = UnixMs(START_MS + 10_000);
    assert!(matches!(rig.run(&tend), Reply::Tended { forwarded: 0, next: Some(at), .. } if at == retry));
    let Reply::Counted { stats, .. } = rig.run(&rig.stats(0)) else { panic!("no stats") };
    assert_eq!(stats.ready, 3);
    assert!(stats.forward_error.is_some_and(|error| error.starts_with("WRONGTYPE")));
    rig.store.connection().ask(&["DEL", "taken"]);
    assert!(matches!(rig.run(&tend), Reply::Tended { forwarded: 3, more: false, .. }));
}

#[test]
fn a_queue_that_forwards_elsewhere_by_now_is_not_forwarded_to_the_old_place() {
    let mut rig = Rig::plain();
    let forward = "list:new".parse().ok();
    rig.run(&rig.configure(QueueConfig { forward: forward.clone(), ..QueueConfig::default() }));
    let publish = rig.publish(batch("job", 1, NOW));
    rig.run(&publish);
    for old in [None, "list:old".parse().ok()] {
        let tend = Command::Tend { queue: rig.queue.clone(), limit: 256, forward: old };
        let Reply::Tended { forwarded, next, more, forward: told, .. } = rig.run(&tend) else {
            panic!("no answer")
        };
        assert_eq!((forwarded, next, more), (0, Some(UnixMs(START_MS + 10_000)), false));
        assert_eq!(told, forward);
    }
}

#[test]
fn a_tidy_settle_keeps_a_forwarding_queue_on_the_agenda() {
    let mut rig = Rig::plain();
    let (jobs, fence) = rig.granted(1);
    rig.run(&rig.configure(QueueConfig { forward: "list:to".parse().ok(), ..QueueConfig::default() }));
    let nack = Settlement::Nack { after_ms: 0, reason: "no".into_reason() };
    let nack = rig.settle(&jobs, fence, &nack, true);
    rig.run(&nack);
    assert_eq!(agenda(&mut rig), [rig.now.floor_ms()]);
}

#[test]
fn a_tidy_settle_tells_of_an_earlier_head() {
    let mut rig = Rig::plain();
    let (jobs, fence) = rig.granted(1);
    rig.store.subscribe(rig.engine);
    let nack = Settlement::Nack { after_ms: 2_000, reason: "no".into_reason() };
    let nack = rig.settle(&jobs, fence, &nack, true);
    rig.run(&nack);
    let heard = rig.store.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].1, (START_MS + 2_000).to_string());
}

#[test]
fn a_record_of_another_format_waits_for_those_who_read_it() {
    let mut rig = Rig::plain();
    let mut jobs = batch("job", 1, NOW);
    jobs[0].record = b"2 with a head of its own".as_slice().into();
    let (publish, reserve) = (rig.publish(jobs), rig.reserve(1));
    rig.run(&publish);
    assert_eq!(rig.grants(&reserve).0, []);
    let Reply::Found { job, .. } = rig.run(&rig.inspect(id("job-000"))) else { panic!("the job is gone") };
    assert_eq!((job.place, job.at, job.state), (Place::Delayed, UnixMs(START_MS + 60_000), None));
}

#[test]
fn pages_of_delayed_jobs_go_on_past_what_has_become_due() {
    let mut rig = Rig::plain();
    let jobs = (1..=9).map(|i| job(&format!("job-{i}"), Due::After { ms: i * 10 })).collect();
    let publish = rig.publish(jobs);
    rig.run(&publish);
    let cursor = Some((UnixMs(START_MS + 20), id("job-2")));
    rig.advance(60);
    let Reply::Listed { jobs, more, .. } = rig.run(&rig.list(Place::Delayed, 2, cursor)) else {
        panic!("no page")
    };
    let listed: Vec<_> = jobs.into_iter().map(|job| job.id).collect();
    assert_eq!((listed, more), (vec![id("job-7"), id("job-8")], true));
}

#[test]
fn pages_are_in_order_of_bytes() {
    let mut rig = Rig::plain();
    let names = ["B", "_", "a", "~", "0", "-"];
    let publish = rig.publish(names.map(|name| job(name, Due::After { ms: 1_000 })).into());
    rig.run(&publish);
    let (mut seen, mut cursor) = (Vec::new(), None);
    while let Reply::Listed { jobs, .. } = rig.run(&rig.list(Place::Delayed, 1, cursor)) {
        let Some(job) = jobs.into_iter().next() else { break };
        seen.push(job.id.to_string());
        cursor = Some((job.at, job.id));
    }
    assert_eq!(seen, ["-", "0", "B", "_", "a", "~"]);
}

#[test]
fn a_hundred_jobs_of_one_batch_are_counted_one_by_one() {
    let mut rig = Rig::plain();
    let (jobs, fence) = rig.granted(100);
    rig.run(&rig.settle(&jobs, fence, &Settlement::Ack, false));
    let Reply::Counted { stats, .. } = rig.run(&rig.stats(0)) else { panic!("no stats") };
    assert_eq!((stats.counters.published, stats.counters.granted, stats.counters.acked), (100, 100, 100));
}

#[test]
fn a_wake_up_goes_to_one_who_listens() {
    let mut rig = Rig::plain();
    let (deaf, listening) = (Identity(1), Identity(2));
    rig.store.subscribe(listening);
    for engine in [deaf, listening] {
        rig.engine = engine;
        let reserve = rig.reserve(1);
        rig.run(&reserve);
        rig.advance(1);
    }
    rig.store.heard();
    let publish = rig.publish(batch("job", 1, NOW));
    rig.run(&publish);
    let mut heard = rig.store.heard();
    heard.retain(|(channel, _)| !channel.ends_with("head"));
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].0.ends_with(&format!("wake:{listening}")) && heard[0].1 == "orders", "{heard:?}");
}

#[test]
fn users_without_channels_can_do_all_but_wake() {
    let user = "worker on nopass ~* resetchannels +@all -@dangerous";
    let options = Options { users: vec![user.to_string()], ..Options::default() };
    let mut rig = Rig::new(RedisServer::start(options));
    rig.store.connection().ask(&["AUTH", "worker", "any"]);
    let reserve = rig.reserve(1);
    rig.run(&reserve);
    let publish = rig.publish(batch("job", 1, NOW));
    assert!(matches!(rig.run(&publish), Reply::Published { .. }));
}

#[test]
fn a_script_that_the_server_forgot_is_sent_again() {
    let mut rig = Rig::plain();
    let publish = rig.publish(batch("job", 1, NOW));
    rig.store.connection().ask(&["SCRIPT", "FLUSH"]);
    let raw = rig.store.raw(Some(rig.now), &publish, delayline_core::wire::Form::Sha);
    let reply = delayline_core::wire::decode(publish.kind(), raw);
    assert_eq!(reply, Reply::Refused(Refusal::NoScript));
    assert!(matches!(rig.run(&publish), Reply::Published { .. }));
}

#[test]
fn a_restarted_server_still_has_what_it_accepted() {
    let options = Options { append: delayline_tests::Append::Always, ..Options::default() };
    let mut rig = Rig::new(RedisServer::start(options));
    let publish = rig.publish(batch("job", 3, NOW));
    rig.run(&publish);
    let before = rig.store.dump();
    for end in [RedisServer::kill, RedisServer::stop] {
        end(&mut rig.server);
        rig.server.restart();
        rig.store = delayline_tests::RedisStore::new(&rig.server, delayline_core::Shards::default());
        assert_eq!(rig.store.dump(), before);
    }
}

#[test]
fn a_full_queue_takes_jobs_again_when_some_are_done() {
    let mut rig = Rig::plain();
    let session = |sequence| Session { engine: Identity(9), lane: 0, sequence };
    let publish = |rig: &Rig, sequence, name: &str| Command::Publish {
        queue: rig.queue.clone(),
        session: session(sequence),
        ceiling: delayline_core::Ceiling { jobs: 2, ..NO_LIMIT },
        jobs: batch(name, 2, NOW),
    };
    let first = publish(&rig, 1, "first");
    rig.run(&first);
    let second = publish(&rig, 2, "second");
    let Reply::Published { outcomes, full: Some(full), .. } = rig.run(&second) else { panic!("not full") };
    assert_eq!((outcomes, full.jobs), (vec![PublishOutcome::Full; 2], 2));
    let reserve = rig.reserve(2);
    let (jobs, fence) = rig.grants(&reserve);
    rig.run(&rig.settle(&jobs, fence, &Settlement::Ack, false));
    let third = publish(&rig, 3, "second");
    assert!(matches!(rig.run(&third), Reply::Published { full: None, .. }));
}

fn outcomes(reply: Reply) -> Vec<SettleOutcome> {
    match reply {
        Reply::Settled { outcomes, .. } => outcomes,
        other => panic!("{other:?}"),
    }
}

fn agenda(rig: &mut Rig) -> Vec<UnixMs> {
    let peek = Command::Peek {
        shard: delayline_core::Shard(0),
        engine: rig.engine,
        entries: 16,
        lease_ms: 0,
        stay: false,
        queues: vec![],
    };
    match rig.run(&peek) {
        Reply::Peeked { agenda, .. } => agenda.into_iter().map(|(_, at)| at).collect(),
        other => panic!("{other:?}"),
    }
}
