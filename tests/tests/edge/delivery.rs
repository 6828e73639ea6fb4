//! A worker that delivers to a handler, to a queue of Cloudflare's and over HTTP, and a request that panics beside it.

use std::thread;
use std::time::Duration;

use delayline_tests::edge::{Answer, Outcome, Push};
use delayline_tests::until;
use delayline_tokio::{Backoff, Place};
use serde_json::Value;

use crate::site::{Site, Which};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_handler_says_what_becomes_of_a_job() {
    let Some(site) = Site::start(Which::Courier, &[]) else { return };
    site.publish("sums", |queue| {
        ["1+2", "one+two", "snooze", "bury"]
            .map(|text| queue.publish_bytes(text).id(text).backoff(Backoff::Fixed { ms: 3_600_000 }))
            .into()
    });
    assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
    assert!(site.worker.log().contains("1+2=3"), "{}", site.worker.log());
    assert!(site.kept("sums", "1+2").is_none());
    let failed = site.kept("sums", "one+two").expect("it waits");
    assert_eq!((failed.place, failed.attempt()), (Place::Delayed, 1));
    assert!(failed.last_reason().is_some_and(|reason| reason.starts_with("one+two: invalid digit")));
    let snoozed = site.kept("sums", "snooze").expect("it waits");
    assert_eq!((snoozed.place, snoozed.attempt(), snoozed.deliveries()), (Place::Delayed, 0, 1));
    let buried = site.kept("sums", "bury").expect("it is a dead letter");
    assert_eq!((buried.place, buried.last_reason()), (Place::Dead, Some("not a sum")));
}

#[test]
fn jobs_are_handed_over_as_they_are_taken_but_for_the_lease() {
    let Some(site) = Site::start(Which::Courier, &[]) else { return };
    site.publish("notes", |queue| {
        vec![
            queue.publish_bytes(r#"{"to":"ann"}"#).id("json").content_type("application/json"),
            queue.publish_bytes([255].as_slice()).id("bytes"),
        ]
    });
    assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
    assert_eq!(site.stats("notes").counters.acked, 2, "done once it is handed over");
    let arrived = until("two notes", PATIENCE, || {
        let pushes = site.receiver.pushes();
        let notes: Vec<Value> =
            pushes.iter().filter_map(|push| serde_json::from_str(&push.text()).ok()).collect();
        (notes.len() == 2).then_some(notes)
    });
    let note = |id: &str| arrived.iter().find(|note| note["id"] == id).expect("it arrived");
    assert_eq!((&note("json")["payload"]["to"], &note("json")["queue"]), (&"ann".into(), &"notes".into()));
    assert_eq!((&note("bytes")["payload"], &note("bytes")["encoding"]), (&"/w==".into(), &"base64".into()));
    assert!(arrived.iter().all(|note| note.get("lease").is_none() && note["attempt"] == 1), "{arrived:?}");
}

/// Whatever ran in the isolate is lost with it; jobs come back when their leases end.
#[test]
fn a_panic_beside_a_run_loses_no_job() {
    let Some(site) = Site::start(Which::Courier, &[("DELAYLINE_FOR", "1s")]) else { return };
    site.receiver.answer(|_| Answer { delay: Duration::from_millis(500), ..Answer::default() });
    site.publish_due("orders", 3);
    thread::scope(|scope| {
        let cron = scope.spawn(|| site.worker.cron());
        site.receiver.wait(1, PATIENCE);
        assert_eq!(site.worker.get("/panic").status(), 500);
        assert_eq!(cron.join().expect("an outcome"), Outcome::Exception, "{}", site.worker.log());
    });
    assert_eq!(site.stats("orders").counters.acked, 0);
    site.receiver.answer(|_| Answer::default());
    until("all jobs", Duration::from_secs(60), || {
        assert_eq!(site.worker.cron(), Outcome::Ok, "{}", site.worker.log());
        let stats = site.stats("orders");
        (stats.counters.acked == 3 && stats.leased == 0).then_some(())
    });
    let mut bodies: Vec<String> = site.receiver.pushes().iter().map(Push::text).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies, ["0", "1", "2"]);
}
