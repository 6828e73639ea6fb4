//! The example worker, started by cron: what it delivers, within what it may spend, whatever fails around it.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use delayline_core::UnixMs;
use delayline_http::push::Signed;
use delayline_tests::edge::{Answer, Fault, Outcome, Push};
use delayline_tests::measure;

use crate::site::{SECRET, Site, Which, unix_ms};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn due_jobs_are_pushed_signed_and_settled() {
    let Some(site) = Site::start(Which::Example, &[]) else { return };
    site.publish("orders", |queue| {
        vec![
            queue.publish_bytes("due").id("a.b").header("Tenant", "acme").content_type("text/plain"),
            queue.publish_bytes([0, 255, 10].as_slice()).id("bytes"),
            queue.publish_bytes("later").delay(Duration::from_secs(3_600)),
        ]
    });
    assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
    let mut pushes = site.receiver.pushes();
    pushes.sort_by(|one, other| one.body.cmp(&other.body));
    assert_eq!(pushes.len(), 2, "{}", site.worker.log());
    assert_eq!(&pushes[0].body[..], [0, 255, 10].as_slice());
    assert!(pushes.iter().all(is_signed), "{pushes:?}");
    let said = |name: &str| pushes[1].headers.get(name).and_then(|value| value.to_str().ok());
    for (name, value) in [
        ("webhook-id", "a%2Eb"),
        ("content-type", "text/plain"),
        ("delayline-queue", "orders"),
        ("delayline-attempt", "1"),
        ("delayline-header-tenant", "acme"),
    ] {
        assert_eq!(said(name), Some(value), "{name}");
    }
    let stats = site.stats("orders");
    assert_eq!((stats.counters.acked, stats.leased, stats.delayed), (2, 0, 1));
}

fn is_signed(push: &Push) -> bool {
    let said = |name: &str| push.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let signed = Signed {
        id: said("webhook-id"),
        timestamp: said("webhook-timestamp"),
        signatures: said("webhook-signature"),
        body: &push.body,
    };
    signed.verify(&[SECRET.parse().expect("a secret")], unix_ms() / 1000, 60).is_ok()
}

#[test]
fn crons_that_overlap_deliver_each_job_once() {
    let Some(site) = Site::start(Which::Example, &[("DELAYLINE_REQUESTS", "1000")]) else { return };
    site.receiver.answer(|_| Answer { delay: Duration::from_millis(20), ..Answer::default() });
    site.publish_due("orders", 60);
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let crons = [(); 4].map(|()| scope.spawn(|| site.worker.cron()));
        crons.into_iter().map(|cron| cron.join().expect("an outcome")).collect()
    });
    assert_eq!(outcomes, vec![Outcome::Ok; 4], "{}", site.worker.log());
    let pushed: BTreeSet<String> = site.pushed().into_iter().collect();
    assert_eq!((pushed.len(), site.receiver.pushes().len()), (60, 60));
    assert_eq!(site.stats("orders").counters.acked, 60);
}

/// Each fault meets the first, the second, … request of a run; what the run then does is what it would have done.
#[test]
fn whatever_one_request_meets_each_job_is_pushed_once() {
    let Some(site) = Site::start(Which::Example, &[]) else { return };
    let faults = [
        Fault::Status { status: 500 },
        Fault::Status { status: 429 },
        Fault::Drop,
        Fault::Garbage,
        Fault::Cut,
        Fault::Flush,
        Fault::Delay { ms: 300 },
    ];
    let mut jobs = 0;
    for fault in faults {
        for first in 0..3 {
            site.publish("orders", |queue| {
                (jobs..jobs + 5).map(|number| queue.publish_bytes(format!("{number}"))).collect()
            });
            jobs += 5;
            site.rest.fail(&[vec![Fault::Pass; first], vec![fault.clone()]].concat());
            assert_eq!(site.worker.cron(), Outcome::Ok, "{fault:?} at {first}: {}", site.worker.log());
            let pushed: BTreeSet<String> = site.pushed().into_iter().collect();
            let all = site.receiver.pushes().len();
            assert_eq!((pushed.len(), all), (jobs, jobs), "{fault:?} at {first}: {}", site.worker.log());
            assert_eq!(site.stats("orders").counters.acked, jobs as u64, "{fault:?} at {first}");
        }
    }
}

/// A request that is never answered is given up after 5 s, and made again.
#[test]
fn requests_that_hang_are_given_up() {
    let Some(site) = Site::start(Which::Example, &[]) else { return };
    for (round, fault) in [Fault::Hang, Fault::HangAfter].into_iter().enumerate() {
        site.publish("orders", |queue| vec![queue.publish_bytes(format!("{round}"))]);
        site.rest.fail(&[Fault::Pass, fault.clone()]);
        assert_eq!(site.worker.cron(), Outcome::Ok, "{fault:?}: {}", site.worker.log());
        assert_eq!(site.receiver.pushes().len(), round + 1, "{fault:?}: {}", site.worker.log());
        assert_eq!(site.stats("orders").counters.acked, round as u64 + 1, "{fault:?}");
    }
}

#[test]
fn a_redis_that_only_fails_is_an_exception_and_nothing_is_lost() {
    let Some(site) = Site::start(Which::Example, &[("DELAYLINE_REQUESTS", "6")]) else { return };
    site.publish_due("orders", 3);
    site.rest.fail(&vec![Fault::Status { status: 503 }; 6]);
    assert_eq!(site.worker.cron(), Outcome::Exception);
    assert_eq!(site.receiver.pushes().len(), 0);
    assert_eq!(site.rest.left(), vec![], "all requests were made");
    for _ in 0..3 {
        assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
    }
    assert_eq!((site.pushed().len(), site.stats("orders").counters.acked), (3, 3));
}

#[test]
fn a_wrong_token_is_an_exception() {
    let Some(site) = Site::start(Which::Example, &[("UPSTASH_REDIS_REST_TOKEN", "wrong")]) else { return };
    assert_eq!(site.worker.cron(), Outcome::Exception);
    assert_eq!(site.receiver.pushes().len(), 0);
}

#[test]
fn a_run_waits_for_a_job_and_delivers_it_within_100_ms() {
    let Some(site) = Site::alone(Which::Example) else { return };
    site.worker.cron();
    let mut before = 0;
    measure("how late a job that was 10 s away arrives", || {
        let due = unix_ms() + 10_000;
        site.publish("orders", |queue| {
            let at = std::time::UNIX_EPOCH + Duration::from_millis(due);
            vec![queue.publish_bytes("in ten seconds").at(at)]
        });
        assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
        let pushes = site.receiver.pushes();
        assert_eq!(pushes.len(), before + 1, "{}", site.worker.log());
        let late = pushes[before].arrived_ms.checked_sub(due).expect("never early");
        before += 1;
        if late <= 100 { Ok(format!("{late} ms")) } else { Err(format!("{late} ms, more than 100")) }
    });
}

#[test]
fn the_limit_of_requests_is_kept_and_strands_no_lease() {
    for limit in [1, 3, 5, 10, 20] {
        let Some(site) = Site::start(Which::Example, &[("DELAYLINE_REQUESTS", &limit.to_string())]) else {
            return;
        };
        site.publish_due("orders", 50);
        for _ in 0..3 {
            let before = site.rest.requests() + site.receiver.pushes().len() as u64;
            assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
            let made = site.rest.requests() + site.receiver.pushes().len() as u64 - before;
            assert!(made <= limit, "{made} requests of {limit}: {}", site.worker.log());
            assert_eq!(site.stats("orders").leased, 0, "{}", site.worker.log());
        }
        let acked = site.stats("orders").counters.acked;
        assert_eq!(acked, site.receiver.pushes().len() as u64);
        assert!(limit < 5 || acked > 0, "{acked} jobs with {limit} requests");
    }
}

#[test]
fn answers_decide_what_becomes_of_a_job() {
    let Some(site) = Site::start(Which::Example, &[]) else { return };
    let statuses = [("ok", 204), ("gone", 410), ("bad", 400), ("busy", 503), ("slow", 429), ("moved", 302)];
    site.receiver.answer(move |push| {
        let status =
            statuses.iter().find(|(body, _)| *body == push.text()).map_or(200, |(_, status)| *status);
        let headers = match status {
            503 => vec![("retry-after", "600".to_owned())],
            302 => vec![("location", "/elsewhere".to_owned())],
            _ => Vec::new(),
        };
        Answer { status, headers, body: format!("I say {status}"), ..Answer::default() }
    });
    site.publish("orders", |queue| {
        statuses.iter().map(|(body, _)| queue.publish_bytes(*body).id(*body)).collect()
    });
    let now = UnixMs(unix_ms());
    assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
    let stats = site.stats("orders");
    assert_eq!((stats.counters.acked, stats.dead), (1, 2), "{}", site.worker.log());
    let kept = |id: &str| site.kept("orders", id).expect("the job is there");
    assert_eq!(kept("gone").last_reason(), Some("answered 410: I say 410"));
    assert_eq!(kept("busy").last_reason(), Some("answered 503: I say 503"));
    let waits = kept("busy").due().expect("a due time").since(now);
    assert!((590_000..=620_000).contains(&waits), "{waits} ms");
    assert!(kept("slow").due().is_some() && kept("moved").due().is_some());
    let paths: BTreeSet<String> = site.receiver.pushes().iter().map(|push| push.uri.to_string()).collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["/"], "no redirect is followed");
}

#[test]
fn a_push_that_is_not_answered_is_tried_again() {
    let Some(site) = Site::start(Which::Example, &[]) else { return };
    site.receiver.answer(|_| Answer { delay: Duration::from_secs(12), ..Answer::default() });
    site.publish_due("orders", 1);
    assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
    site.receiver.wait(1, PATIENCE);
    let reason = site.kept("orders", "job-0").and_then(|job| job.last_reason().map(String::from));
    assert!(reason.is_some_and(|reason| reason.starts_with("no answer within 10000 ms")));
}
