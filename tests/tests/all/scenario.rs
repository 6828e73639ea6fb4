//! For each script, the states of a queue that make it take its different ways.

use delayline_core::{Command, DeadLetters, Due, Entry, Place, QueueConfig, Settlement, Shard, Shards};

use crate::rig::{IntoReason, LEASE_MS, Rig, batch, ids, job};

const NOW: Due = Due::After { ms: 0 };
const LATER: Due = Due::After { ms: 60_000 };

/// A script in one state of its queue.
pub(crate) struct Scenario {
    pub(crate) script: &'static str,
    pub(crate) name: &'static str,
    /// How many commands Redis counts, with EVALSHA.
    pub(crate) calls: u64,
    /// Whether it writes, and so must be refused whole or run to the end at maxmemory.
    pub(crate) writes: bool,
    /// Brings the queue into its state and says what to run.
    pub(crate) prepare: fn(&mut Rig) -> Command,
}

macro_rules! scenario {
    ($script:literal $name:literal $calls:literal $writes:literal, $prepare:expr) => {
        Scenario { script: $script, name: $name, calls: $calls, writes: $writes, prepare: $prepare }
    };
}

pub(crate) fn all() -> Vec<Scenario> {
    [publishing(), reserving(), settling(), waiting(), tending(), dead(), rest()]
        .into_iter()
        .flatten()
        .collect()
}

fn publishing() -> Vec<Scenario> {
    vec![
        scenario!("publish" "later" 9 true, |rig| {
            born(rig);
            rig.publish(batch("new", 100, LATER))
        }),
        scenario!("publish" "later, alone" 8 true, |rig| {
            born(rig);
            rig.publish(batch("new", 1, LATER))
        }),
        scenario!("publish" "expiring" 10 true, |rig| {
            born(rig);
            rig.publish(expiring(batch("new", 100, LATER)))
        }),
        scenario!("publish" "first of a queue" 11 true, |rig| rig.publish(batch("new", 1, LATER))),
        scenario!("publish" "due, wakes one" 10 true, |rig| {
            born(rig);
            waits(rig);
            rig.publish(batch("new", 100, NOW))
        }),
        scenario!("publish" "expiring and large" 13 true, |rig| {
            born(rig);
            let mut jobs = batch("new", 2, Due::After { ms: 1_000 });
            jobs[0].ttl_ms = 60_000;
            jobs[1].record = crate::rig::record(&[b'x'; 5_000]);
            rig.publish(jobs)
        }),
        scenario!("publish" "replaces" 10 true, |rig| {
            let first = rig.publish(batch("new", 100, NOW));
            rig.run(&first);
            rig.publish(replacing(batch("new", 100, LATER)))
        }),
        scenario!("publish" "replaces delivered, expiring and large" 15 true, |rig| {
            delivered_expiring_and_large(rig);
            let mut jobs = batch("job", 3, Due::After { ms: 1_000 });
            jobs[0].record = crate::rig::record(&[b'x'; 5_000]);
            jobs[1].ttl_ms = 60_000;
            rig.publish(replacing(jobs))
        }),
        scenario!("publish" "replaces what is held" 7 true, |rig| {
            rig.granted(10);
            rig.publish(replacing(batch("job", 10, LATER)))
        }),
        scenario!("publish" "duplicates" 9 true, |rig| {
            let jobs = batch("new", 10, LATER);
            let first = rig.publish(jobs.clone());
            rig.run(&first);
            rig.publish(jobs)
        }),
        scenario!("publish" "full" 8 true, |rig| {
            born(rig);
            let config = rig.configure(QueueConfig { max_jobs: Some(1), ..QueueConfig::default() });
            let one = rig.publish(batch("one", 1, LATER));
            rig.run(&config);
            rig.run(&one);
            rig.publish(batch("new", 10, LATER))
        }),
        scenario!("publish" "again" 3 false, |rig| {
            let publish = rig.publish(batch("new", 10, LATER));
            rig.run(&publish);
            publish
        }),
    ]
}

fn reserving() -> Vec<Scenario> {
    vec![
        scenario!("reserve" "full" 13 true, |rig| {
            known(rig);
            let publish = rig.publish(batch("new", 101, NOW));
            rig.run(&publish);
            rig.reserve(100)
        }),
        scenario!("reserve" "of few" 11 true, |rig| {
            known(rig);
            let publish = rig.publish(batch("new", 17, NOW));
            rig.run(&publish);
            rig.reserve(16)
        }),
        scenario!("reserve" "of what expires" 12 true, |rig| {
            known(rig);
            let publish = rig.publish(expiring(batch("new", 17, NOW)));
            rig.run(&publish);
            rig.reserve(16)
        }),
        scenario!("reserve" "of one" 11 true, |rig| {
            known(rig);
            let publish = rig.publish(batch("new", 2, NOW));
            rig.run(&publish);
            rig.reserve(1)
        }),
        scenario!("reserve" "nothing, again and again" 9 true, |rig| {
            known(rig);
            rig.reserve(100)
        }),
        scenario!("reserve" "full, of a new lane" 12 true, |rig| {
            born(rig);
            let publish = rig.publish(batch("new", 101, NOW));
            rig.run(&publish);
            rig.reserve(100)
        }),
        scenario!("reserve" "full, nothing left" 12 true, |rig| {
            born(rig);
            let publish = rig.publish(batch("new", 100, NOW));
            rig.run(&publish);
            rig.reserve(100)
        }),
        scenario!("reserve" "short" 13 true, |rig| {
            born(rig);
            let publish = rig.publish(batch("new", 50, NOW));
            rig.run(&publish);
            rig.reserve(100)
        }),
        scenario!("reserve" "empty" 9 true, |rig| {
            born(rig);
            rig.reserve(100)
        }),
        scenario!("reserve" "of ended leases" 18 true, |rig| {
            born(rig);
            rig.granted(100);
            rig.advance(LEASE_MS + 1_000);
            rig.reserve(100)
        }),
        scenario!("reserve" "again" 6 false, |rig| {
            born(rig);
            let publish = rig.publish(batch("new", 100, NOW));
            rig.run(&publish);
            let reserve = rig.reserve(100);
            rig.run(&reserve);
            reserve
        }),
        scenario!("reserve" "off the list" 6 true, |rig| {
            born(rig);
            waits(rig);
            rig.reserve(0)
        }),
        scenario!("reserve" "of what cannot be read" 15 true, |rig| {
            born(rig);
            let mut jobs = batch("new", 3, NOW);
            jobs[0].record = b"not a record".as_slice().into();
            jobs[1].record = b"2".repeat(20).into();
            let publish = rig.publish(jobs);
            rig.run(&publish);
            rig.reserve(100)
        }),
    ]
}

fn settling() -> Vec<Scenario> {
    vec![
        scenario!("settle" "acks" 6 true, |rig| {
            let (jobs, fence) = rig.granted(100);
            rig.settle(&jobs, fence, &Settlement::Ack, false)
        }),
        scenario!("settle" "acks of what expires" 9 true, |rig| {
            let (publish, reserve) = (rig.publish(expiring(batch("new", 9, NOW))), rig.reserve(9));
            rig.run(&publish);
            let (jobs, fence) = rig.grants(&reserve);
            rig.settle(&jobs, fence, &Settlement::Ack, false)
        }),
        scenario!("settle" "acks, tidy" 11 true, |rig| {
            let (jobs, fence) = rig.granted(100);
            rig.settle(&jobs, fence, &Settlement::Ack, true)
        }),
        scenario!("settle" "nacks" 10 true, |rig| {
            let (jobs, fence) = rig.granted(100);
            let nack = Settlement::Nack { after_ms: 1_000, reason: "no".into_reason() };
            rig.settle(&jobs, fence, &nack, false)
        }),
        scenario!("settle" "of all kinds" 13 true, |rig| {
            let (jobs, fence) = rig.granted(5);
            let kinds = [
                Settlement::Ack,
                Settlement::Nack { after_ms: 1_000, reason: "no".into_reason() },
                Settlement::Snooze { after_ms: 2_000 },
                Settlement::Release { after_ms: 0 },
                Settlement::Bury { reason: "bad".into_reason() },
            ];
            let leases = jobs.iter().zip(kinds).map(|(job, how)| (job.id.clone(), fence, how)).collect();
            Command::Settle { queue: rig.queue.clone(), tidy: false, leases }
        }),
        scenario!("settle" "stale" 2 false, |rig| {
            let (jobs, _) = rig.granted(10);
            rig.settle(&jobs, delayline_core::Fence(1), &Settlement::Ack, false)
        }),
        scenario!("extend" "held" 5 true, |rig| {
            let (jobs, fence) = rig.granted(100);
            rig.advance(1_000);
            let leases = ids(&jobs).into_iter().map(|id| (id, fence)).collect();
            Command::Extend { queue: rig.queue.clone(), lease_ms: LEASE_MS, leases }
        }),
        scenario!("extend" "gone" 4 false, |rig| {
            let leases = vec![(crate::rig::id("none"), delayline_core::Fence(1))];
            Command::Extend { queue: rig.queue.clone(), lease_ms: LEASE_MS, leases }
        }),
    ]
}

fn waiting() -> Vec<Scenario> {
    vec![
        scenario!("cancel" "waiting" 8 true, |rig| {
            let publish = rig.publish(batch("new", 100, LATER));
            rig.run(&publish);
            rig.cancel(batch("new", 100, LATER).into_iter().map(|job| job.id).collect())
        }),
        scenario!("cancel" "gone" 7 true, |rig| {
            born(rig);
            rig.cancel(vec![crate::rig::id("none")])
        }),
        scenario!("cancel" "no queue" 5 false, |rig| rig.cancel(vec![crate::rig::id("none")])),
        scenario!("cancel" "again" 3 false, |rig| {
            born(rig);
            let cancel = rig.cancel(vec![crate::rig::id("none")]);
            rig.run(&cancel);
            cancel
        }),
        scenario!("reschedule" "later" 9 true, |rig| {
            let publish = rig.publish(batch("new", 100, LATER));
            rig.run(&publish);
            let ids: Vec<_> = batch("new", 100, LATER).into_iter().map(|job| job.id).collect();
            rig.reschedule(&ids, Due::After { ms: 120_000 })
        }),
        scenario!("reschedule" "to now, wakes one" 10 true, |rig| {
            waits(rig);
            let publish = rig.publish(batch("new", 1, LATER));
            rig.run(&publish);
            rig.reschedule(&[crate::rig::id("new-000")], NOW)
        }),
        scenario!("reschedule" "gone" 7 true, |rig| {
            born(rig);
            rig.reschedule(&[crate::rig::id("none")], NOW)
        }),
        scenario!("reschedule" "no queue" 5 false, |rig| rig.reschedule(&[crate::rig::id("none")], NOW)),
        scenario!("reschedule" "again" 3 false, |rig| {
            born(rig);
            let reschedule = rig.reschedule(&[crate::rig::id("none")], NOW);
            rig.run(&reschedule);
            reschedule
        }),
        scenario!("inspect" "waiting" 6 false, |rig| {
            let publish = rig.publish(vec![job("one", LATER)]);
            rig.run(&publish);
            rig.inspect(crate::rig::id("one"))
        }),
        scenario!("inspect" "gone" 4 false, |rig| rig.inspect(crate::rig::id("one"))),
        scenario!("list" "dead" 6 false, |rig| {
            rig.buried(10);
            rig.list(Place::Dead, 5, None)
        }),
        scenario!("list" "delayed" 7 false, |rig| {
            let publish = rig.publish(batch("new", 10, LATER));
            rig.run(&publish);
            rig.list(Place::Delayed, 5, None)
        }),
        scenario!("stats" "alone" 8 false, |rig| {
            born(rig);
            rig.stats(0)
        }),
        scenario!("stats" "with hours" 10 false, |rig| {
            born(rig);
            rig.stats(2)
        }),
    ]
}

fn tending() -> Vec<Scenario> {
    vec![
        scenario!("peek" "another holds it" 4 false, |rig| {
            let take = peek(rig, 1, true);
            rig.run(&take);
            peek(rig, 2, true)
        }),
        scenario!("peek" "takes it" 6 true, |rig| peek(rig, 1, true)),
        scenario!("peek" "gives it up" 6 true, |rig| {
            let take = peek(rig, 1, true);
            rig.run(&take);
            let (shard, engine) = (Shard(0), delayline_core::Identity(1));
            Command::Peek { shard, engine, entries: 16, lease_ms: 0, stay: false, queues: vec![] }
        }),
        scenario!("tend" "idle" 7 true, |rig| {
            born(rig);
            rig.tend()
        }),
        scenario!("tend" "ended leases" 14 true, |rig| {
            rig.granted(100);
            rig.advance(LEASE_MS + 1_000);
            rig.tend()
        }),
        scenario!("tend" "expired and purged" 24 true, |rig| {
            rig.buried(5);
            let config =
                QueueConfig { retention_ms: Some(1_000), bury_expired: true, ..QueueConfig::default() };
            let mut jobs = batch("brief", 5, LATER);
            for job in &mut jobs {
                job.ttl_ms = 61_000;
            }
            let (configure, publish) = (rig.configure(config), rig.publish(jobs));
            rig.run(&configure);
            rig.run(&publish);
            rig.advance(62_000);
            rig.tend()
        }),
        scenario!("tend" "learns where to forward" 9 true, |rig| {
            forwards(rig, "list:orders-list");
            rig.tend()
        }),
        scenario!("tend" "forwards to a list" 15 true, |rig| forwards(rig, "list:orders-list")),
        scenario!("tend" "forwards to a stream" 19 true, |rig| forwards(rig, "stream:orders-stream")),
    ]
}

fn dead() -> Vec<Scenario> {
    vec![
        scenario!("requeue" "all" 10 true, |rig| {
            rig.buried(100);
            Command::Requeue { queue: rig.queue.clone(), dead: Rig::dead(500) }
        }),
        scenario!("requeue" "none" 5 false, |rig| {
            born(rig);
            Command::Requeue { queue: rig.queue.clone(), dead: Rig::dead(500) }
        }),
        scenario!("purge" "by ids" 10 true, |rig| {
            let ids = Some(ids(&rig.buried(100)));
            Command::Purge { queue: rig.queue.clone(), dead: DeadLetters { ids, until: None, limit: 500 } }
        }),
        scenario!("purge" "none" 5 false, |rig| {
            born(rig);
            Command::Purge { queue: rig.queue.clone(), dead: Rig::dead(500) }
        }),
    ]
}

fn rest() -> Vec<Scenario> {
    vec![
        scenario!("configure" "attempts" 5 true, |rig| {
            born(rig);
            rig.configure(QueueConfig { attempts: Some(3), ..QueueConfig::default() })
        }),
        scenario!("configure" "a new queue" 5 true, |rig| {
            rig.configure(QueueConfig { attempts: Some(3), ..QueueConfig::default() })
        }),
        scenario!("configure" "forwards no more, wakes one" 8 true, |rig| {
            let forward = "list:orders-list".parse().ok();
            let configure = rig.configure(QueueConfig { forward, ..QueueConfig::default() });
            rig.run(&configure);
            waits(rig);
            rig.configure(QueueConfig::default())
        }),
        scenario!("configure" "conflict" 3 false, |rig| {
            born(rig);
            let (queue, config) = (rig.queue.clone(), QueueConfig::default());
            Command::Configure { queue, cfgver: Some(9), config }
        }),
        scenario!("pause" "pauses" 5 true, |rig| {
            born(rig);
            rig.pause(true)
        }),
        scenario!("pause" "resumes, wakes one" 10 true, |rig| {
            born(rig);
            waits(rig);
            let pause = rig.pause(true);
            rig.run(&pause);
            rig.pause(false)
        }),
        scenario!("destroy" "all" 9 true, |rig| {
            rig.buried(10);
            Command::Destroy { queue: rig.queue.clone(), born: rig.now }
        }),
        scenario!("destroy" "gone" 3 false, |rig| Command::Destroy { queue: rig.queue.clone(), born: rig.now }),
        scenario!("open" "first" 6 true, |_| Command::Open { shards: Shards::default() }),
    ]
}

/// The queue exists: a job came and went.
fn born(rig: &mut Rig) {
    let publish = rig.publish(vec![job("first", LATER)]);
    rig.run(&publish);
    let cancel = rig.cancel(vec![crate::rig::id("first")]);
    rig.run(&cancel);
}

/// The same with a TTL.
fn expiring(jobs: Vec<Entry>) -> Vec<Entry> {
    jobs.into_iter().map(|job| Entry { ttl_ms: 90_000, ..job }).collect()
}

/// The queue exists, and has granted to this engine before.
fn known(rig: &mut Rig) {
    born(rig);
    let reserve = rig.reserve(1);
    rig.run(&reserve);
    rig.store.unsubscribe(rig.engine);
}

/// Waiting jobs: one with a TTL, a large one, and one whose attempt failed.
fn delivered_expiring_and_large(rig: &mut Rig) {
    let mut jobs = batch("job", 3, NOW);
    jobs[0].ttl_ms = 60_000;
    jobs[1].record = crate::rig::record(&[b'x'; 5_000]);
    let (publish, reserve) = (rig.publish(jobs), rig.reserve(3));
    rig.run(&publish);
    let (jobs, fence) = rig.grants(&reserve);
    let nack = Settlement::Nack { after_ms: 500, reason: "no".into_reason() };
    rig.run(&rig.settle(&jobs, fence, &nack, false));
}

fn replacing(jobs: Vec<Entry>) -> Vec<Entry> {
    jobs.into_iter().map(|job| Entry { replace: true, ..job }).collect()
}

/// An idle engine waits to be woken.
fn waits(rig: &mut Rig) {
    rig.store.subscribe(rig.engine);
    let reserve = rig.reserve(1);
    rig.run(&reserve);
}

fn peek(_: &Rig, engine: u64, stay: bool) -> Command {
    let engine = delayline_core::Identity(engine);
    Command::Peek { shard: Shard(0), engine, entries: 16, lease_ms: LEASE_MS, stay, queues: vec![] }
}

fn forwards(rig: &mut Rig, to: &str) -> Command {
    let forward: delayline_core::Forward = to.parse().expect("a destination");
    let config = QueueConfig { forward: Some(forward.clone()), ..QueueConfig::default() };
    let (configure, publish) = (rig.configure(config), rig.publish(batch("new", 5, NOW)));
    rig.run(&configure);
    rig.run(&publish);
    Command::Tend { queue: rig.queue.clone(), limit: 256, forward: Some(forward) }
}
