//! Runs that cron starts, in a world of virtual time: what they deliver, what they cost, and what they leave behind
//! wherever they are cut off.

mod fake;

use delayline_core::{
    Config, Engine, Fault, Forward, Identity, QueueConfig, Reason, Reply, Shards, Subscription, Verdict,
};
use delayline_wasm::calls::{self, NotOpened};
use delayline_wasm::{Ended, Failure, Limits, Summary, World, run};

use fake::{Fake, Fate};

fn limits() -> Limits {
    Limits { requests: 50, per_job: 1, ..Limits::default() }
}

fn config(limits: &Limits, queues: &[&str]) -> Config {
    let subscription = |name: &&str| Subscription { queue: name.parse().unwrap(), weight: 1, max: 200 };
    let subscriptions = queues.iter().map(subscription).collect();
    run::config(limits, Config { subscriptions, slots: 200, ..Config::default() })
}

/// One run over the queue `orders`; `None` if it was cut off at that await.
fn cron(fake: &Fake, limits: &Limits, dies_at: Option<u64>) -> Option<Result<Summary, Failure>> {
    thread_local!(static RUNS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
    RUNS.set(RUNS.get() + 1);
    let run = run::run(fake, config(limits, &["orders"]), limits.clone(), Identity(RUNS.get()), true);
    let (sent, delivered) = (fake.sent.get(), fake.delivered.borrow().len());
    let done = fake.play(run, dies_at);
    let deliveries = u32::try_from(fake.delivered.borrow().len() - delivered).unwrap();
    let requests = fake.sent.get() - sent + deliveries * limits.per_job;
    assert!(requests <= limits.requests, "{requests} requests of {}", limits.requests);
    if let Some(Ok(summary)) = &done {
        assert_eq!(summary.requests, requests, "{summary}");
    }
    done
}

fn jobs(count: usize, due_ms: u64) -> impl Iterator<Item = (String, u64)> {
    (0..count).map(move |number| (format!("j{number}"), due_ms))
}

#[test]
fn what_is_due_is_delivered_and_settled() {
    let fake = Fake::new();
    fake.publish("orders", jobs(30, 0));
    fake.pass(1);
    let summary = cron(&fake, &limits(), None).unwrap().unwrap();
    assert_eq!((summary.delivered, summary.acked, summary.ended), (30, 30, Ended::Idle), "{summary}");
    assert_eq!(fake.stats("orders").counters.acked, 30);
    assert!((2..=6).contains(&fake.most.get()), "{} at once", fake.most.get());
    let idle = cron(&fake, &limits(), None).unwrap().unwrap();
    assert_eq!((idle.requests, idle.ended, idle.next_ms), (1, Ended::Idle, None));
}

#[test]
fn a_run_waits_for_what_is_due_soon_and_names_what_is_due_later() {
    let fake = Fake::new();
    fake.publish("orders", [("soon".to_owned(), 10_000), ("later".to_owned(), 90_000)]);
    let began = fake.now_ms.get();
    let summary = cron(&fake, &limits(), None).unwrap().unwrap();
    let delivered = fake.delivered.borrow().clone();
    assert_eq!(delivered.len(), 1, "{summary}");
    let late = delivered[0].1 - (began + 10_000);
    assert!(late < 50, "{late} ms late");
    let next = summary.next_ms.unwrap();
    assert!((79_000..=81_000).contains(&next), "next in {next} ms");
}

#[test]
fn credit_is_never_exceeded_and_strands_nothing() {
    for requests in 0..60 {
        for per_job in 0..3 {
            let fake = Fake::new();
            fake.publish("orders", jobs(100, 0));
            fake.pass(1);
            let limits = Limits { requests, per_job, ..Limits::default() };
            let done = cron(&fake, &limits, None).unwrap();
            assert_eq!(done.is_ok(), requests > 0, "{requests}, {per_job}: {done:?}");
            let stats = fake.stats("orders");
            assert_eq!(stats.leased, 0, "{requests} requests, {per_job} a job: {done:?}");
            if requests > 2 * per_job + 6 {
                assert!(stats.counters.acked > 0, "{requests}, {per_job}: {done:?}");
            }
        }
    }
}

#[test]
fn runs_that_may_do_little_get_all_done_in_the_end() {
    for requests in [1, 3, 5, 10, 20] {
        let fake = Fake::new();
        fake.publish("orders", jobs(50, 0));
        fake.pass(1);
        let limits = Limits { requests, ..limits() };
        for round in 0..60 {
            let done = cron(&fake, &limits, None).unwrap();
            assert!(done.is_ok(), "{requests} requests, run {round}: {done:?}");
            assert_eq!(fake.stats("orders").leased, 0);
            fake.pass(60_000);
        }
        let acked = fake.stats("orders").counters.acked;
        assert_eq!(acked, if requests < 5 { 0 } else { 50 }, "{requests} requests");
    }
}

#[test]
fn a_run_that_dies_at_any_await_loses_nothing() {
    for per_job in [0, 1] {
        for dies_at in 1.. {
            let fake = Fake::new();
            fake.publish("orders", jobs(12, 0).chain([("late".to_owned(), 3_000)]));
            fake.pass(1);
            let limits = Limits { per_job, ..limits() };
            let done = cron(&fake, &limits, Some(dies_at));
            let lived = done.is_some();
            for _ in 0..5 {
                fake.pass(60_000);
                cron(&fake, &limits, None).unwrap().unwrap();
            }
            let stats = fake.stats("orders");
            assert_eq!(stats.counters.acked, 13, "died at await {dies_at}: {stats:?}");
            assert_eq!((stats.ready, stats.delayed, stats.leased, stats.dead), (0, 0, 0, 0));
            if lived {
                assert!(dies_at > 10, "a run of only {dies_at} awaits");
                break;
            }
        }
    }
}

#[test]
fn whatever_the_network_does_all_is_done_once_it_heals() {
    let fates = [Fate::Lost, Fate::Unanswered, Fate::Hangs].into_iter();
    let plans = fates.flat_map(|fate| (0..8).flat_map(move |at| [(fate, at, 0), (fate, at, 55_000)]));
    for (fate, at, stay_ms) in plans {
        let fake = Fake::new();
        fake.publish("orders", jobs(10, 0));
        fake.pass(1);
        *fake.fate.borrow_mut() = Box::new(move |number| if number == at { fate } else { Fate::Lands });
        let limits = Limits { stay_ms, ..limits() };
        let summary = cron(&fake, &limits, None).unwrap().unwrap();
        assert_eq!(summary.acked, 10, "{fate:?} at {at}, stays {stay_ms} ms: {summary}");
        assert_eq!(fake.stats("orders").counters.acked, 10);
        assert_eq!(fake.delivered.borrow().len(), 10, "{fate:?} at {at}");
    }
}

#[test]
fn a_redis_that_never_answers_is_a_failure_in_time() {
    for fate in [Fate::Lost, Fate::Unanswered, Fate::Hangs] {
        let fake = Fake::new();
        fake.publish("orders", jobs(1, 0));
        *fake.fate.borrow_mut() = Box::new(move |_| fate);
        let began = fake.now_ms.get();
        let failure = cron(&fake, &limits(), None).unwrap().unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }), "{failure}");
        let took = fake.now_ms.get() - began;
        assert!(took <= limits().longest_ms(), "{took} ms");
    }
}

#[test]
fn verdicts_are_carried_out_and_counted() {
    let fake = Fake::new();
    fake.publish("orders", ["ack", "nack", "bury", "snooze"].map(|id| (id.to_owned(), 0)));
    fake.pass(1);
    *fake.verdict.borrow_mut() = Box::new(|job| match job.lease.id.as_str() {
        "nack" => Verdict::Nack { after_ms: Some(30_000), reason: Reason::new("HTTP 503") },
        "bury" => Verdict::Bury { reason: Reason::new("HTTP 410") },
        "snooze" => Verdict::Snooze { after_ms: 400_000 },
        _ => Verdict::Ack,
    });
    let summary = cron(&fake, &limits(), None).unwrap().unwrap();
    assert_eq!((summary.acked, summary.retried, summary.died), (1, 2, 1), "{summary}");
    assert!(summary.next_ms.is_some_and(|ms| (29_000..=30_000).contains(&ms)), "{summary}");
    let stats = fake.stats("orders");
    assert_eq!((stats.delayed, stats.dead), (2, 1));
}

#[test]
fn what_time_does_not_suffice_for_is_given_back_unspent() {
    let fake = Fake::new();
    fake.delivery_ms.set(9_000);
    fake.publish("orders", jobs(40, 0));
    fake.pass(1);
    let limits = Limits { for_ms: 20_000, ..limits() };
    let began = fake.now_ms.get();
    let summary = cron(&fake, &limits, None).unwrap().unwrap();
    let took = fake.now_ms.get() - began;
    assert!(took <= limits.longest_ms(), "{took} ms");
    assert_eq!(summary.ended, Ended::Time, "{summary}");
    assert_eq!(summary.acked + summary.released, 40, "{summary}");
    let stats = fake.stats("orders");
    assert_eq!((stats.leased, stats.ready), (0, summary.released));
    fake.delivery_ms.set(1);
    cron(&fake, &limits, None).unwrap().unwrap();
    assert_eq!(fake.stats("orders").counters.granted, 40 + summary.released);
    assert_eq!(fake.stats("orders").counters.released, summary.released);
}

#[test]
fn queues_that_are_not_its_own_are_tended() {
    let fake = Fake::new();
    fake.publish("mail", jobs(3, 1_000));
    let config = QueueConfig { forward: Some(Forward::List("work".into())), ..QueueConfig::default() };
    let queue = "mail".parse().unwrap();
    let configured = fake.execute(&delayline_core::Command::Configure { queue, cfgver: None, config });
    assert!(matches!(configured, Reply::Configured { .. }));
    fake.pass(5_000);
    let summary = cron(&fake, &limits(), None).unwrap().unwrap();
    assert_eq!((summary.tended, fake.stats("mail").counters.forwarded), (3, 3), "{summary}");
}

#[test]
fn runs_side_by_side_share_the_work() {
    let fake = Fake::new();
    fake.publish("orders", jobs(60, 0));
    fake.pass(1);
    let limits = Limits { requests: 1_000, ..limits() };
    let runs = (1..=3).map(|number| {
        run::run(&fake, config(&limits, &["orders"]), limits.clone(), Identity(1_000 + number), false)
    });
    let done = fake.play(futures_util::future::join_all(runs), None).unwrap();
    let acked: u64 = done.into_iter().map(|done| done.unwrap().acked).sum();
    assert_eq!((acked, fake.delivered.borrow().len()), (60, 60));
}

#[test]
fn limits_that_cannot_be_kept_are_told() {
    let fake = Fake::new();
    let limits = Limits { flight_ms: 1, ..limits() };
    let done = fake.play(run::run(&fake, config(&limits, &[]), limits, Identity(7), true), None).unwrap();
    assert!(matches!(done, Err(Failure::Config(_))), "{done:?}");
    assert_eq!(fake.sent.get(), 0);
}

#[test]
fn a_wrong_number_of_shards_is_told() {
    let fake = Fake::new();
    fake.execute(&delayline_core::Command::Open { shards: Shards::default() });
    let limits = limits();
    let config = Config { shards: Shards::new(4).unwrap(), ..config(&limits, &[]) };
    let done = fake.play(run::run(&fake, config, limits, Identity(7), true), None).unwrap();
    assert_eq!(done, Err(Failure::Shards { asked: 4, found: 1 }));
}

#[test]
fn what_was_to_follow_an_opening_that_failed_was_not_sent() {
    let fake = Fake::new();
    let open = |shards| {
        let mut engine =
            Engine::new(Config { shards, ..Config::default() }, Identity(5), fake.now()).unwrap();
        fake.play(calls::open(&fake, &mut engine, shards, 10_000), None).unwrap()
    };
    let silent = Err(NotOpened::Silent(Fault::NotSent(None)));
    for fate in [Fate::Lost, Fate::Unanswered, Fate::Hangs] {
        *fake.fate.borrow_mut() = Box::new(move |_| fate);
        let began = fake.now_ms.get();
        assert_eq!(open(Shards::default()), silent, "{fate:?}");
        assert!(fake.now_ms.get() - began <= 20_000, "{fate:?}");
    }
    *fake.fate.borrow_mut() = Box::new(|_| Fate::Lands);
    assert_eq!(open(Shards::default()), Ok(()));
    let other = Err(NotOpened::Other(Failure::Shards { asked: 4, found: 1 }));
    assert_eq!(open(Shards::new(4).unwrap()), other);
}
