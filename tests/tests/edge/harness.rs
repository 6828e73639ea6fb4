//! That the bundler's workers run, and that what surrounds them in these tests does as it is told.

use std::thread;
use std::time::Duration;

use delayline_tests::edge::{Answer, Fault, Outcome};
use delayline_tests::until;

use crate::fixture::Fixture;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn cron_asks_redis_and_pushes() {
    let Some(Fixture { worker, receiver, rest, .. }) = &Fixture::start() else { return };
    assert_eq!(worker.cron(), Outcome::Ok);
    let pushes = receiver.pushes();
    assert_eq!(pushes.len(), 1);
    assert_eq!((pushes[0].method.as_str(), pushes[0].text()), ("POST", r#"[{"result":"PONG"}]"#.to_string()));
    assert_eq!((rest.requests(), rest.left()), (1, vec![]));
}

#[test]
fn a_cron_that_fails_is_an_exception() {
    let Some(Fixture { worker, receiver, rest, .. }) = &Fixture::start() else { return };
    rest.fail(&[Fault::Status { status: 500 }, Fault::Drop, Fault::Pass]);
    assert_eq!(worker.cron(), Outcome::Exception);
    assert_eq!(rest.left(), [Fault::Drop, Fault::Pass]);
    assert_eq!(worker.cron(), Outcome::Exception);
    receiver.answer(|_| Answer { status: 503, ..Answer::default() });
    assert_eq!(worker.cron(), Outcome::Exception);
    assert_eq!((receiver.pushes().len(), rest.left()), (1, vec![]));
}

/// The invocation that waited is lost, as on Cloudflare; those that come after it are not.
#[test]
fn a_panic_takes_what_runs_and_nothing_else() {
    let Some(fixture) = &Fixture::start() else { return };
    let Fixture { worker, receiver, .. } = fixture;
    receiver.answer(|_| Answer { delay: Duration::from_millis(300), ..Answer::default() });
    thread::scope(|scope| {
        let cron = scope.spawn(|| worker.cron());
        receiver.wait(1, PATIENCE);
        assert_eq!(worker.get("/panic").status(), 500);
        assert_eq!(cron.join().expect("an outcome"), Outcome::Exception);
    });
    assert!(worker.log().contains("this was asked for"), "the panic is logged");
    for _ in 0..3 {
        assert_eq!(worker.get("/").body(), "hello");
        assert_eq!(worker.cron(), Outcome::Ok);
    }
    assert_eq!(worker.log().matches("panicked at").count(), 1);
}

#[test]
fn an_object_outlives_panics() {
    let Some(Fixture { worker, receiver, .. }) = &Fixture::start() else { return };
    let asked = || worker.get("/ticker/count").into_body();
    assert_eq!([asked(), asked()], ["1", "2"]);
    assert_eq!(worker.get("/panic").status(), 500);
    assert_eq!([asked(), asked()], ["1", "2"]);
    assert_eq!(worker.get("/ticker/panic").status(), 500);
    assert_eq!([asked(), asked()], ["1", "2"]);
    assert_eq!(worker.get("/ticker/alarm").body(), "3");
    assert_eq!(receiver.wait(1, PATIENCE)[0].text(), "alarm");
}

#[test]
fn a_message_reaches_the_consumer() {
    let Some(fixture) = &Fixture::start() else { return };
    assert_eq!(fixture.worker.get("/note/first").body(), "noted");
    until("a note", PATIENCE, || (fixture.pushed() == ["first"]).then_some(()));
}

#[cfg(target_os = "linux")]
#[test]
fn crons_cost_cpu() {
    const CRONS: u32 = 20;
    let Some(Fixture { worker, .. }) = &Fixture::start() else { return };
    worker.cron();
    let before = worker.cpu();
    for _ in 0..CRONS {
        worker.cron();
    }
    let each = worker.cpu().saturating_sub(before) / CRONS;
    println!("{each:?} of CPU a cron");
    assert!(each > Duration::ZERO && each < Duration::from_secs(1), "{each:?}");
}
