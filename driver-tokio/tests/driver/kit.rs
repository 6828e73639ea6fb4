//! The test kit, as those who test with it use it.

use std::fmt::Write;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use delayline_tokio::kit::{Outcome, Runs};
use delayline_tokio::{
    Attempt, Backoff, CancelOutcome, Client, Context, Data, Failure, Invalid, Job, JobId, Place, Queue,
    QueueConfig, TestClock, Verdict, When, Worker, blocking, test, test_at,
};
use futures_util::FutureExt;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn mails(client: &Client) -> Queue<String> {
    client.queue("mails").unwrap()
}

/// What the code panics with.
async fn panic_of<T>(code: impl Future<Output = T>) -> String {
    let panic = AssertUnwindSafe(code).catch_unwind().await.err().expect("a panic");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap()
}

#[tokio::test]
async fn each_job_runs_at_its_very_millisecond() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| ()));
    for ms in [7, 86_399_999, 1, 3_600_000, 0, 59_999, 7] {
        queue.publish(&format!("{ms}")).delay(Duration::from_millis(ms)).await.unwrap();
    }
    let runs = time.advance(DAY).await;
    runs.assert_acked(7);
    for run in &*runs {
        assert_eq!(run.job::<String>(), run.at.as_millis().to_string());
        assert_eq!(run.delivery().late_ms, 0, "{run}");
    }
    assert!(runs.is_sorted_by_key(|run| run.at), "{runs}");
}

#[tokio::test]
async fn thirty_days_take_no_time() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| ()));
    queue.publish(&"ann".into()).delay(30 * DAY).await.unwrap();
    let begun = Instant::now();
    time.advance(29 * DAY).await.assert_none();
    time.advance(DAY).await.assert_acked(1);
    println!("30 days: {:?}", begun.elapsed());
    assert!(begun.elapsed() < MINUTE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_month_of_minutes_is_no_more_than_its_runs() {
    async fn tick(Job(left): Job<u32>, Data(ticks): Data<Queue<u32>>) -> Result<(), Failure> {
        if left > 1 {
            ticks.publish(&(left - 1)).delay(MINUTE).await?;
        }
        Ok(())
    }
    let (client, time) = test();
    let ticks = client.queue::<u32>("ticks").unwrap();
    time.start(Worker::new(&client).with_data(ticks.clone()).queue(&ticks, tick));
    ticks.publish(&20_000).delay(MINUTE).await.unwrap();
    let begun = Instant::now();
    let runs = time.advance(30 * DAY).await;
    println!("20,000 runs, one after another: {:?}", begun.elapsed());
    runs.assert_acked(20_000);
    for (before, run) in runs.iter().enumerate() {
        assert_eq!(run.at, MINUTE * u32::try_from(before + 1).unwrap());
    }
    assert!(begun.elapsed() < 5 * MINUTE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn retries_come_by_the_default_backoff() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| Err::<(), _>("the line is busy")));
    queue.publish(&"ann".into()).id("ann").attempts(5).await.unwrap();
    let runs = time.advance(HOUR).await;
    assert_eq!(runs.iter().map(|run| run.attempt).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    for (run, next) in runs.iter().zip(&runs[1..]) {
        let Outcome::Retried { after, reason } = &run.outcome else { panic!("{runs}") };
        let doubled = SECOND * 2u32.pow(u32::from(run.attempt) - 1);
        assert!(*after >= doubled * 9 / 10 && *after <= doubled * 11 / 10, "{run}");
        assert_eq!((next.at, &**reason), (run.at + *after, "the line is busy"));
    }
    assert_eq!(runs[4].outcome, Outcome::Died { reason: "the line is busy".into() });
    let dead = time.assert_dead::<String>(|letter| letter.job == "ann");
    assert_eq!((dead.attempts, &*dead.reason), (5, "the line is busy"));
}

#[tokio::test]
async fn retries_come_by_a_ladder() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| Err::<(), _>("no")));
    let ladder = "15s 3m 1h".parse::<Backoff>().unwrap();
    queue.publish(&"ann".into()).backoff(ladder).attempts(5).await.unwrap();
    let retried = |after| Outcome::Retried { after, reason: "no".into() };
    time.advance(DAY).await.assert_outcomes(&[
        retried(15 * SECOND),
        retried(3 * MINUTE),
        retried(HOUR),
        retried(HOUR),
        Outcome::Died { reason: "no".into() },
    ]);
}

/// A scenario with several queues, workers, retries, snoozes and handlers that publish, as text.
async fn story() -> String {
    async fn order(
        Job(number): Job<u32>,
        Attempt(attempt): Attempt,
        Data(client): Data<Client>,
    ) -> Result<(), Failure> {
        if number.is_multiple_of(3) && attempt < 3 {
            return Err("out of stock".into());
        }
        let mail = client.queue::<String>("mails")?.publish(&format!("order {number}"));
        mail.delay(Duration::from_millis(u64::from(number) * 37)).await?;
        if number.is_multiple_of(7) {
            client.queue::<u32>("orders")?.publish(&(number + 1)).delay(MINUTE).await?;
        }
        Ok(())
    }
    async fn mail(Job(text): Job<String>, context: Context) -> Result<(), Failure> {
        tokio::task::yield_now().await;
        match (text.len() % 2, context.deliveries) {
            (0, 1) => Err(Failure::snooze(10 * SECOND)),
            (0, 2) => Err(Failure::bury("nobody reads it")),
            _ => Ok(()),
        }
    }
    let (client, time) = test();
    let orders = client.queue::<u32>("orders").unwrap();
    for _ in 0..3 {
        let worker = Worker::new(&client).with_data(client.clone()).concurrency(2);
        time.start(worker.queue(&orders, order).queue(&mails(&client), mail));
    }
    let jobs = (0..60u32).map(|i| orders.publish(&i).delay(SECOND * (i % 5)));
    assert!(orders.publish_all(jobs).await.into_iter().all(|outcome| outcome.is_ok()));
    let mut story = String::new();
    for _ in 0..4 {
        let runs = time.advance(7 * SECOND).await;
        write!(story, "{runs}").unwrap();
    }
    let runs = time.advance(HOUR).await;
    write!(story, "{runs}\n{:?}", time.dead_letters::<String>()).unwrap();
    time.assert_nothing_scheduled::<u32>();
    time.assert_nothing_scheduled::<String>();
    story
}

#[tokio::test]
async fn two_runs_are_the_same() {
    let first = story().await;
    assert!(first.lines().count() > 150, "{first}");
    for _ in 0..5 {
        assert_eq!(story().await, first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_in_a_paused_runtime_is_the_same() {
    let first = story().await;
    assert_eq!(story().await, first);
}

#[tokio::test]
async fn a_job_is_due_at_a_time_of_the_clock() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| ()));
    time.advance(HOUR).await.assert_none();
    queue.publish(&"ann".into()).at(time.now() + MINUTE).await.unwrap();
    queue.publish(&"past".into()).at(time.now() - MINUTE).await.unwrap();
    assert_eq!(time.drain_due().await.one().job::<String>(), "past");
    let ann = time.assert_scheduled::<String>(|mail| mail.job == "ann");
    assert_eq!((ann.due, ann.due_in), (time.now() + MINUTE, MINUTE));
    assert_eq!(time.advance(DAY).await.one().at, HOUR + MINUTE);
}

#[tokio::test]
async fn the_time_begins_where_it_is_told_to() {
    let start = UNIX_EPOCH + 1_000 * DAY;
    let (client, time) = test_at(start);
    assert_eq!(time.now(), start);
    let published = mails(&client).publish(&"ann".into()).delay(DAY).await.unwrap();
    assert_eq!(UNIX_EPOCH + Duration::from_millis(published.due.unwrap().0), start + DAY);
    time.advance(DAY).await.assert_none();
    assert_eq!((time.now(), time.clone().now()), (start + DAY, start + DAY));
    let (_, time) = test();
    assert!(time.now() < SystemTime::now() + 3_650 * DAY);
}

#[tokio::test]
async fn a_job_expires() {
    let (client, time) = test();
    let queue = mails(&client);
    queue.publish(&"ann".into()).id("ann").ttl(MINUTE).await.unwrap();
    time.advance(59 * SECOND).await.assert_none();
    time.assert_scheduled::<String>(|mail| mail.job == "ann");
    time.advance(SECOND).await.assert_none();
    time.assert_nothing_scheduled::<String>();
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| ()));
    time.advance(DAY).await.assert_none();
    assert_eq!(queue.stats(0).await.unwrap().counters.expired, 1);
}

#[tokio::test]
async fn a_paused_queue_delivers_when_it_is_resumed() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| ()));
    queue.publish(&"ann".into()).delay(MINUTE).await.unwrap();
    queue.pause().await.unwrap();
    time.advance(DAY).await.assert_none();
    time.assert_scheduled::<String>(|mail| mail.due_in.is_zero());
    queue.resume().await.unwrap();
    assert_eq!(time.drain_due().await.one().at, DAY);
}

#[tokio::test]
async fn waiting_jobs_are_cancelled_and_moved() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| ()));
    queue.publish(&"ann".into()).id("ann").delay(HOUR).await.unwrap();
    queue.publish(&"bob".into()).id("bob").delay(HOUR).await.unwrap();
    queue.publish(&"eve".into()).id("eve").delay(HOUR).await.unwrap();
    assert_eq!(queue.cancel("ann").await.unwrap(), CancelOutcome::Cancelled);
    queue.reschedule("bob", MINUTE).await.unwrap();
    queue.reschedule("eve", When::At(time.now() + DAY)).await.unwrap();
    time.assert_not_scheduled::<String>(|mail| mail.job == "ann");
    let runs = time.advance(2 * DAY).await;
    let ran: Vec<_> = runs.iter().map(|run| (run.job::<String>(), run.at)).collect();
    assert_eq!(ran, [("bob".to_owned(), MINUTE), ("eve".to_owned(), DAY)]);
}

#[tokio::test]
async fn dead_letters_are_seen_and_requeued() {
    let (client, time) = test();
    let queue = mails(&client);
    let is_mended = Arc::new(AtomicUsize::new(0));
    let mended = is_mended.clone();
    let handler = move |_: Job<String>| {
        let is_mended = mended.load(Ordering::SeqCst) > 0;
        async move { if is_mended { Ok(()) } else { Err(Failure::bury("no such address")) } }
    };
    time.start(Worker::new(&client).queue(&queue, handler));
    queue.publish(&"ann".into()).id("ann").await.unwrap();
    assert!(time.drain_due().await.one().is_dead());
    let dead = time.dead_letters::<String>();
    assert_eq!((dead.len(), &*dead[0].reason, &*dead[0].job), (1, "no such address", "ann"));
    is_mended.store(1, Ordering::SeqCst);
    assert_eq!(queue.requeue_all().await.unwrap().moved, 1);
    time.drain_due().await.assert_acked(1);
    assert_eq!(time.dead_letters::<String>(), []);
}

#[tokio::test]
async fn a_worker_is_started_by_the_clock_or_by_a_spawn() {
    let (client, time) = test();
    let queue = mails(&client);
    let worker = || Worker::new(&client).queue(&queue, async |_: Job<String>| ());
    let running = tokio::spawn(worker().run());
    queue.publish(&"ann".into()).await.unwrap();
    time.drain_due().await.assert_acked(1);
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    queue.publish(&"bob".into()).await.unwrap();
    time.drain_due().await.assert_none();
    time.start(worker());
    time.drain_due().await.assert_acked(1);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(worker().run_until(async move { drop(stopped.await) }));
    queue.publish(&"eve".into()).delay(DAY).await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    time.advance(DAY).await.assert_acked(1);
}

#[tokio::test]
async fn two_workers_share_the_jobs() {
    let (client, time) = test();
    let queue = mails(&client);
    let ran: Arc<Mutex<[usize; 2]>> = Arc::default();
    for which in 0..2 {
        let ran = ran.clone();
        let handler = move |_: Job<String>| {
            let ran = ran.clone();
            async move {
                ran.lock().unwrap()[which] += 1;
                tokio::task::yield_now().await;
            }
        };
        time.start(Worker::new(&client).concurrency(3).queue(&queue, handler));
    }
    let jobs = (0..200).map(|i| queue.publish(&"x".into()).delay(SECOND * (i / 10)));
    assert_eq!(queue.publish_all(jobs).await.len(), 200);
    time.advance(MINUTE).await.assert_acked(200);
    let ran = *ran.lock().unwrap();
    assert_eq!(ran[0] + ran[1], 200);
    assert!(ran[0] > 0 && ran[1] > 0, "{ran:?}");
}

#[tokio::test]
async fn a_client_may_be_closed_in_the_middle() {
    let (client, time) = test();
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| ()));
    queue.publish(&"ann".into()).await.unwrap();
    queue.publish(&"bob".into()).delay(DAY).await.unwrap();
    time.drain_due().await.assert_acked(1);
    client.close().await;
    time.advance(2 * DAY).await.assert_none();
    time.assert_scheduled::<String>(|mail| mail.job == "bob");
}

#[tokio::test]
async fn a_take_waits_by_the_clock() {
    let (client, time) = test();
    let queue = mails(&client);
    let taking = tokio::spawn(queue.take().wait(MINUTE).into_future());
    time.advance(59 * SECOND).await.assert_none();
    assert!(!taking.is_finished());
    time.advance(SECOND).await.assert_none();
    assert_eq!(taking.await.unwrap().unwrap(), []);

    let taking = tokio::spawn(client.take([&queue]).wait(5 * MINUTE).into_future());
    queue.publish(&"ann".into()).delay(2 * MINUTE).await.unwrap();
    time.advance(2 * MINUTE).await.assert_none();
    let taken = taking.await.unwrap().unwrap();
    assert_eq!((taken.len(), taken[0].late_ms), (1, 0));
    time.advance(MINUTE).await.assert_none();
    let again = queue.take().await.unwrap();
    assert_eq!(again[0].deliveries, 2, "the lease has ended by the clock");
    client.settle(again[0].lease.clone(), Verdict::Ack).await.unwrap();
    time.assert_nothing_scheduled::<String>();

    let (taken, runs) = tokio::join!(queue.take().wait(MINUTE).into_future(), time.advance(HOUR));
    assert_eq!(taken.unwrap(), []);
    runs.assert_none();
}

#[tokio::test(start_paused = true)]
async fn handlers_may_wait_for_the_timers_of_a_paused_runtime() {
    let (client, time) = test();
    let queue = mails(&client);
    let handler = async |Job(to): Job<String>| {
        tokio::time::sleep(HOUR).await;
        match tokio::time::timeout(SECOND, std::future::pending::<()>()).await {
            Err(_) if to == "ann" => Err("timed out"),
            _ => Ok(()),
        }
    };
    time.start(Worker::new(&client).queue(&queue, handler));
    for to in ["ann", "bob"] {
        queue
            .publish(&to.to_owned())
            .id(to)
            .delay(DAY)
            .attempts(2)
            .backoff(Backoff::Fixed { ms: 1_000 })
            .await
            .unwrap();
    }
    let runs = time.advance(2 * DAY).await;
    assert_eq!(runs.iter().filter(|run| run.is_acked()).count(), 1, "{runs}");
    assert_eq!(runs.iter().map(|run| run.at).max(), Some(DAY + SECOND), "{runs}");
    time.assert_dead::<String>(|letter| letter.reason == "timed out");
}

#[tokio::test(start_paused = true)]
async fn a_take_waits_by_the_clock_in_a_paused_runtime_too() {
    let (client, time) = test();
    let queue = mails(&client);
    let taking = tokio::spawn(queue.take().wait(5 * MINUTE).into_future());
    time.start(Worker::new(&client).queue(&client.queue::<u32>("slow").unwrap(), async |_: Job<u32>| {
        tokio::time::sleep(HOUR).await;
    }));
    client.queue::<u32>("slow").unwrap().publish(&1).delay(MINUTE).await.unwrap();
    queue.publish(&"ann".into()).delay(4 * MINUTE).await.unwrap();
    time.advance(4 * MINUTE).await.assert_acked(1);
    assert_eq!(taking.await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn blocking_handlers_publish() {
    let (client, time) = test();
    let (asks, answers) = (client.queue::<u32>("asks").unwrap(), client.queue::<u32>("answers").unwrap());
    let to = answers.clone();
    let ask = move |Job(number): Job<u32>| to.publish(&(number + 1)).delay(DAY).blocking().map(drop);
    time.start(Worker::new(&client).queue(&asks, blocking(ask)).queue(&answers, async |_: Job<u32>| ()));
    asks.publish(&1).delay(DAY).await.unwrap();
    let runs = time.advance(3 * DAY).await;
    runs.assert_acked(2);
    assert_eq!((runs.of(&answers).one().at, runs.of(&answers).one().job::<u32>()), (2 * DAY, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_runtime_of_many_threads_will_do() {
    for _ in 0..20 {
        let (client, time) = test();
        let queue = mails(&client);
        let (own, other) = (client.clone(), queue.clone());
        let handler = move |Job(left): Job<String>| {
            let queue = other.clone();
            async move {
                tokio::task::yield_now().await;
                match left.len() {
                    0 => Ok(()),
                    _ => queue.publish(&left[1..].to_owned()).delay(HOUR).await.map(drop),
                }
            }
        };
        time.start(Worker::new(&client).queue(&queue, handler.clone()));
        let running = tokio::spawn(Worker::new(&own).queue(&queue, handler).run());
        let jobs = (0..20).map(|_| queue.publish(&"xxx".into()).delay(MINUTE));
        assert_eq!(queue.publish_all(jobs).await.len(), 20);
        let runs = time.advance(DAY).await;
        runs.assert_acked(80);
        for run in &*runs {
            let hours = 3 - u32::try_from(run.job::<String>().len()).unwrap();
            assert_eq!(run.at, MINUTE + HOUR * hours, "{runs}");
        }
        client.close().await;
        running.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_worker_of_a_test_has_a_config_of_the_queue() {
    let (client, time) = test();
    let queue = mails(&client);
    let config = QueueConfig {
        attempts: Some(2),
        backoff: Some(Backoff::Fixed { ms: 5_000 }),
        ..QueueConfig::default()
    };
    queue.configure(config, None).await.unwrap();
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| Err::<(), _>("no")));
    queue.publish(&"ann".into()).await.unwrap();
    let runs = time.advance(DAY).await;
    assert_eq!((runs.len(), runs[1].at, runs[1].is_dead()), (2, 5 * SECOND, true), "{runs}");
}

#[tokio::test]
async fn a_job_that_is_run_is_seen_from_its_handler() {
    let (client, time) = test();
    let queue = mails(&client);
    let (inside, own) = (time.clone(), queue.clone());
    time.start(Worker::new(&client).queue(&queue, move |id: JobId| {
        let (time, queue) = (inside.clone(), own.clone());
        async move {
            time.assert_nothing_scheduled::<String>();
            let found = queue.inspect(&id).await?.ok_or("gone")?;
            if found.place == Place::Leased { Ok(()) } else { Err(Failure::bury("not leased")) }
        }
    }));
    queue.publish(&"ann".into()).await.unwrap();
    time.drain_due().await.assert_acked(1);
}

#[tokio::test]
async fn assertions_say_what_was_there_instead() {
    let (client, time) = test();
    let queue = mails(&client);
    let handler = async |Attempt(attempt): Attempt| if attempt > 1 { Ok(()) } else { Err("busy") };
    time.start(Worker::new(&client).queue(&queue, handler));
    let says = async |code: &dyn Fn()| panic_of(async { code() }).await;

    assert_eq!(
        says(&|| drop(time.assert_scheduled::<String>(|_| true))).await,
        "no such alloc::string::String waits; what waits is:\n  nothing"
    );
    queue.publish(&"ann".into()).id("one").delay(90 * SECOND).await.unwrap();
    let waits = "\n  queue mails, job one, in 1m30s, 0 attempts spent: \"ann\"";
    assert_eq!(
        says(&|| drop(time.assert_scheduled::<String>(|mail| mail.job == "bob"))).await,
        format!("no such alloc::string::String waits; what waits is:{waits}")
    );
    assert_eq!(
        says(&|| time.assert_nothing_scheduled::<String>()).await,
        format!("no such alloc::string::String was to wait, and these do:{waits}")
    );
    assert_eq!(
        says(&|| drop(time.assert_dead::<String>(|_| true))).await,
        "no such alloc::string::String is dead; what is dead is:\n  nothing"
    );
    let none = time.advance(SECOND).await;
    assert_eq!(
        says(&|| {
            _ = none.one();
        })
        .await,
        "one run was expected, and there were 0:\n  nothing"
    );
    assert_eq!(says(&|| none.assert_acked(1)).await, "1 runs were to end well, and there were 0:\n  nothing");

    let failed: Runs = time.advance(89 * SECOND).await;
    let after = match &failed.one().outcome {
        Outcome::Retried { after, .. } => delayline_tokio::Span(u64::try_from(after.as_millis()).unwrap()),
        outcome => panic!("{outcome}"),
    };
    let ran = format!("\n  at 1m30s, queue mails, job one, attempt 1: failed, again after {after}: busy");
    assert_eq!(says(&|| failed.assert_none()).await, format!("nothing was to run, but this did:{ran}"));
    assert_eq!(
        says(&|| failed.assert_acked(1)).await,
        format!("1 runs were to end well, and there were 1:{ran}")
    );
    assert_eq!(
        says(&|| failed.assert_outcomes(&[Outcome::Acked])).await,
        format!("these outcomes were expected:\n  acked\nand these runs were there:{ran}")
    );
    assert_eq!(
        says(&|| {
            _ = failed.one().job::<u32>();
        })
        .await,
        format!("{}: no client has this queue as one of u32", ran.trim_start())
    );
    queue.publish(&"bob".into()).await.unwrap();
    let two = time.advance(HOUR).await;
    assert_eq!(
        says(&|| {
            _ = two.one();
        })
        .await,
        format!("one run was expected, and there were {}:{two}", two.len())
    );

    client.bytes("mails").unwrap().publish_bytes("{").id("bad").delay(DAY).await.unwrap();
    let unread = says(&|| drop(time.scheduled::<String>())).await;
    assert!(
        unread
            .starts_with("job bad of queue mails cannot be read as alloc::string::String: invalid type: map"),
        "{unread}"
    );
}

#[test]
fn a_test_without_a_runtime_is_told_what_it_needs() {
    let panic = std::panic::catch_unwind(test).unwrap_err();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("tokio runtime") && said.contains("#[tokio::test]"), "{said}");
}

#[tokio::test]
async fn a_worker_that_cannot_begin_is_told_why() {
    let (client, time) = test();
    let (other, _) = test();
    let elsewhere = mails(&other);
    let worker = || Worker::new(&client).queue(&elsewhere, async |_: Job<String>| ());
    let said = panic_of(async { time.start(worker()) }).await;
    let why = Invalid::OtherClient("mails".into()).to_string();
    assert_eq!(said, format!("the worker cannot begin: {why}"));
}

#[tokio::test]
async fn a_handler_that_never_ends_is_named() {
    let (client, time) = test();
    let time = time.patience(Duration::from_millis(200));
    let queue = mails(&client);
    time.start(Worker::new(&client).queue(&queue, async |_: Job<String>| std::future::pending::<()>().await));
    queue.publish(&"ann".into()).id("one").await.unwrap();
    let said = panic_of(time.advance(HOUR)).await;
    assert!(said.starts_with("job one of queue mails did not end in 200ms;"), "{said}");
    assert!(said.contains("must not wait for it to pass"), "{said}");
}

#[tokio::test]
async fn a_job_that_comes_again_and_again_without_time_is_named() {
    let (client, time) = test();
    let time: TestClock = time.patience(Duration::from_millis(200));
    let queue = mails(&client);
    let handler = async |_: Job<String>| Err::<(), _>(Failure::snooze(Duration::ZERO));
    time.start(Worker::new(&client).queue(&queue, handler));
    queue.publish(&"ann".into()).id("one").await.unwrap();
    let said = panic_of(time.advance(HOUR)).await;
    assert!(said.contains("job one of queue mails") && said.contains("at the same time"), "{said}");
}
