use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use delayline_tokio::{
    Backoff, CancelOutcome, Client, Context, Error, ExtendOutcome, Invalid, JobId, Place, QueueConfig,
    Reason, RescheduleOutcome, SettleOutcome, Verdict, Worker,
};
use tokio::sync::{mpsc, oneshot};

use crate::{eventually, unix_ms};

on_both_stores! {
    a_job_is_published_taken_and_acked
    options_reach_the_consumer
    a_repeat_of_an_id_is_a_duplicate
    many_are_published_together
    a_take_waits_for_a_job_and_one_that_is_dropped_gives_it_back
    waiting_jobs_are_cancelled_and_rescheduled
    failed_attempts_end_as_a_dead_letter_that_can_be_requeued_or_purged
    queues_are_configured_paused_listed_and_destroyed
    bad_options_are_refused_with_what_to_do
    no_job_is_early
    a_handler_keeps_its_lease_for_as_long_as_it_takes
    a_handler_that_blocks_its_runtime_keeps_its_lease
    a_panic_fails_the_attempt
    a_shutdown_waits_for_handlers_then_gives_back
    a_dropped_worker_gives_back_at_once
    a_closed_client_flushes_and_refuses
    a_dropped_client_flushes
    two_workers_share_a_queue
    jobs_stay_punctual_when_whoever_tends_them_leaves
}

async fn a_job_is_published_taken_and_acked(client: Client) {
    let orders = client.bytes("orders").unwrap();
    let published = orders.publish_bytes("one").await.unwrap();
    assert!(!published.duplicate);
    let jobs = orders.take().lease(Duration::from_secs(10)).await.unwrap();
    let [job] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!((&job.lease.id, &job.body[..], job.attempt), (&published.id, &b"one"[..], 1));
    assert_eq!(Some(job.due), published.due);

    let extended = client.extend(job.lease.clone(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(extended.outcome, ExtendOutcome::Extended);
    assert!(extended.ends.since(job.lease_ends) >= 49_000);
    assert_eq!(client.settle(job.lease.clone(), Verdict::Ack).await.unwrap(), SettleOutcome::Done);
    let again = client.settle(job.lease.clone(), Verdict::Ack).await.unwrap();
    assert_eq!(again, SettleOutcome::Gone);
    assert_eq!(orders.inspect(&published.id).await.unwrap(), None);
    assert_eq!(orders.take().await.unwrap(), []);
    client.ping().await.unwrap();
}

async fn options_reach_the_consumer(client: Client) {
    let queue = client.bytes("options").unwrap();
    let id: JobId = "order:17".parse().unwrap();
    let before = unix_ms();
    let published = queue
        .publish_bytes(vec![0, 159, 146, 150])
        .id(id.clone())
        .delay(Duration::from_secs(3_600))
        .ttl(Duration::from_secs(7_200))
        .attempts(7)
        .backoff(Backoff::Fixed { ms: 1_234 })
        .lost_delay(Duration::from_secs(5))
        .header("colour", "blue")
        .content_type("image/png")
        .trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap())
        .await
        .unwrap();
    let due = published.due.unwrap().0;
    assert!((before + 3_600_000..=unix_ms() + 3_600_001).contains(&due));

    let found = queue.inspect(&id).await.unwrap().unwrap();
    assert_eq!((found.place, found.due(), found.attempt()), (Place::Delayed, published.due, 0));
    assert_eq!(found.max_attempts(), Some(7));
    assert!(found.expires.unwrap().0 >= before + 7_200_000);
    let contents = found.contents.unwrap();
    assert_eq!(contents.headers, [("colour".to_owned(), "blue".to_owned())]);
    assert_eq!(contents.lost_delay, Some(Duration::from_secs(5)));
    assert_eq!(contents.backoff, Some(Backoff::Fixed { ms: 1_234 }));
    assert!(contents.published.0 >= before);

    let at = SystemTime::now();
    assert_eq!(queue.reschedule(&id, at).await.unwrap().outcome, RescheduleOutcome::Moved);
    let [job] = &queue.take().wait(Duration::from_secs(10)).await.unwrap()[..] else { panic!() };
    assert_eq!((job.max_attempts, job.lease.retry_ms), (7, 1_234));
    assert_eq!(job.content_type.as_deref(), Some("image/png"));
    assert_eq!(&job.body[..], [0, 159, 146, 150]);
    assert_eq!(
        job.trace.as_ref().unwrap().to_string(),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    );
    let found = queue.inspect(&id).await.unwrap().unwrap();
    assert_eq!((found.place, found.lease_ends()), (Place::Leased, Some(job.lease_ends)));
}

async fn a_repeat_of_an_id_is_a_duplicate(client: Client) {
    let queue = client.bytes("names").unwrap();
    let id: JobId = "only-one".parse().unwrap();
    let hour = Duration::from_secs(3_600);
    let first = queue.publish_bytes("first").id(id.clone()).delay(hour).await.unwrap();
    let second = queue.publish_bytes("second").id(id.clone()).await.unwrap();
    assert!(!first.duplicate && second.duplicate && second.due.is_none());
    let found = queue.inspect(&id).await.unwrap().unwrap();
    assert_eq!((found.due(), &found.contents.unwrap().body[..]), (first.due, &b"first"[..]));
}

async fn many_are_published_together(client: Client) {
    let (left, right) = (client.bytes("left").unwrap(), client.bytes("right").unwrap());
    let jobs = (0..1_200)
        .map(|i| if i % 3 == 0 { right.publish_bytes("r") } else { left.publish_bytes(format!("{i}")) });
    let jobs = jobs.chain([left.publish_bytes("x").attempts(0)]);
    let published = left.publish_all(jobs).await;
    assert_eq!(published.len(), 1_201);
    assert_eq!(published[1_200], Err(Error::Invalid(Invalid::Attempts(0))));
    let ids: BTreeSet<_> = published[..1_200].iter().map(|one| one.as_ref().unwrap().id.clone()).collect();
    assert_eq!(ids.len(), 1_200);
    assert_eq!(left.stats(0).await.unwrap().ready, 800);
    assert_eq!(right.stats(0).await.unwrap().ready, 400);
    let jobs = client.take([&right, &left]).count(256).await.unwrap();
    assert_eq!(jobs.len(), 256);
    assert!(jobs.iter().all(|job| job.lease.queue == *right.name()));
}

async fn a_take_waits_for_a_job_and_one_that_is_dropped_gives_it_back(client: Client) {
    let queue = client.bytes("waiting").unwrap();
    let waiting = tokio::spawn(queue.take().wait(Duration::from_secs(60)).into_future_of());
    queue.publish_bytes("soon").delay(Duration::from_millis(300)).await.unwrap();
    let [job] = &waiting.await.unwrap().unwrap()[..] else { panic!() };
    assert!(unix_ms() >= job.due.0);
    assert!(job.late_ms < 1_000, "{} ms late", job.late_ms);
    client.settle(job.lease.clone(), Verdict::Ack).await.unwrap();

    for round in 0..50 {
        let dropped = tokio::spawn(
            queue.take().lease(Duration::from_secs(60)).wait(Duration::from_secs(60)).into_future_of(),
        );
        let id = queue.publish_bytes("who takes me").await.unwrap().id;
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        dropped.abort();
        if let Ok(Ok(taken)) = dropped.await {
            assert_eq!(taken.len(), 1);
            client.settle(taken[0].lease.clone(), Verdict::Ack).await.unwrap();
            continue;
        }
        let [job] = &queue.take().wait(Duration::from_secs(20)).await.unwrap()[..] else {
            panic!("round {round}: {:?}", queue.inspect(&id).await)
        };
        assert_eq!((&job.lease.id, job.attempt), (&id, 1));
        client.settle(job.lease.clone(), Verdict::Ack).await.unwrap();
    }
    let begun = Instant::now();
    assert_eq!(queue.take().wait(Duration::from_millis(200)).await.unwrap(), []);
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

trait IntoFutureOf: IntoFuture + Sized {
    fn into_future_of(self) -> Self::IntoFuture {
        self.into_future()
    }
}

impl<T: IntoFuture> IntoFutureOf for T {}

async fn waiting_jobs_are_cancelled_and_rescheduled(client: Client) {
    let queue = client.bytes("later").unwrap();
    let hour = Duration::from_secs(3_600);
    let ids: Vec<JobId> = queue
        .publish_all((0..600).map(|_| queue.publish_bytes("x").delay(hour)))
        .await
        .into_iter()
        .map(|published| published.unwrap().id)
        .collect();
    let moved = queue.reschedule(&ids[0], Duration::from_secs(10)).await.unwrap();
    assert_eq!(moved.outcome, RescheduleOutcome::Moved);
    assert!((unix_ms() + 9_000..unix_ms() + 10_002).contains(&moved.due.unwrap().0));
    assert_eq!(queue.cancel(&ids[0]).await.unwrap(), CancelOutcome::Cancelled);
    assert_eq!(queue.cancel(&ids[0]).await.unwrap(), CancelOutcome::Gone);
    let gone = queue.reschedule(&ids[0], hour).await.unwrap();
    assert_eq!((gone.outcome, gone.due), (RescheduleOutcome::Gone, None));
    let outcomes = queue.cancel_all(ids).await.unwrap();
    assert_eq!(outcomes[0], CancelOutcome::Gone);
    assert!(outcomes[1..].iter().all(|outcome| *outcome == CancelOutcome::Cancelled));
    let stats = queue.stats(0).await.unwrap();
    assert_eq!((stats.delayed, stats.counters.cancelled), (0, 600));
}

async fn failed_attempts_end_as_a_dead_letter_that_can_be_requeued_or_purged(client: Client) {
    let queue = client.bytes("failing").unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(&client).queue(&client.bytes("failing").unwrap(), move |job: Context| {
        let _ = tell.send(job.attempt);
        async move { Err::<(), _>(format!("attempt {} failed", job.attempt)) }
    });
    let running = tokio::spawn(worker.run_until(async move { drop(stopped.await) }));
    let fast = Backoff::Ladder(vec![1, 20]);
    let id = queue.publish_bytes("x").attempts(3).backoff(fast).await.unwrap().id;
    for attempt in 1..=3 {
        assert_eq!(told.recv().await, Some(attempt));
    }
    eventually("the job is dead", async || queue.stats(0).await.unwrap().dead == 1).await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();

    let page = queue.dead_letters(10, None).await.unwrap();
    let [dead] = &page.items[..] else { panic!("{page:?}") };
    assert_eq!((dead.last_reason(), dead.attempt()), (Some("attempt 3 failed"), 3));
    assert!(dead.died().is_some() && page.next.is_none());
    let moved = queue.requeue(vec![id.clone(), "nobody".parse().unwrap()]).await.unwrap();
    assert_eq!((moved.moved, moved.left, &moved.outcomes[..]), (1, 0, &[true, false][..]));
    let [job] = &queue.take().await.unwrap()[..] else { panic!() };
    assert_eq!(job.attempt, 1);
    let bury = Verdict::Bury { reason: Reason::new("no use") };
    assert_eq!(client.settle(job.lease.clone(), bury).await.unwrap(), SettleOutcome::Died);
    assert_eq!(queue.purge_all().await.unwrap().moved, 1);
    assert_eq!(queue.requeue_all().await.unwrap().moved, 0);
    assert_eq!(queue.inspect(&id).await.unwrap(), None);
}

async fn queues_are_configured_paused_listed_and_destroyed(client: Client) {
    for i in 0..25 {
        client.bytes(format!("q{i}")).unwrap().publish_bytes("x").await.unwrap();
    }
    let (mut names, mut cursor) = (BTreeSet::new(), None);
    loop {
        let page = client.queues(cursor.as_ref(), 10).await.unwrap();
        names.extend(page.items);
        let Some(next) = page.next else { break };
        cursor = Some(next.to_string().parse().unwrap());
    }
    assert_eq!(names.len(), 25);

    let queue = client.bytes("q7").unwrap();
    let config = QueueConfig { attempts: Some(3), ..QueueConfig::default() };
    let version = queue.configure(config.clone(), None).await.unwrap();
    let conflict = queue.configure(QueueConfig::default(), Some(version + 5)).await.unwrap_err();
    assert_eq!(conflict, Error::Conflict { queue: queue.name().clone(), cfgver: version });
    queue.pause().await.unwrap();
    assert_eq!(queue.take().await.unwrap(), []);
    let stats = queue.stats(2).await.unwrap();
    assert_eq!((stats.paused, stats.config, stats.hours.len()), (true, config, 2));
    queue.resume().await.unwrap();
    assert_eq!(queue.take().await.unwrap().len(), 1);
    assert_eq!(queue.destroy().await.unwrap().unwrap().leased, 1);
    assert_eq!(queue.destroy().await.unwrap(), None);

    let queue = client.bytes("pages").unwrap();
    queue.publish_all((0..7).map(|i| queue.publish_bytes("x").delay(Duration::from_secs(60 + i)))).await;
    let (mut sizes, mut cursor) = (Vec::new(), None);
    loop {
        let page = queue.list(Place::Delayed, 3, cursor.as_ref()).await.unwrap();
        sizes.push(page.items.len());
        let Some(next) = page.next else { break };
        cursor = Some(next.to_string().parse().unwrap());
    }
    assert_eq!(sizes, [3, 3, 1]);
}

async fn bad_options_are_refused_with_what_to_do(client: Client) {
    let queue = client.bytes("strict").unwrap();
    let years = |years: u64| Duration::from_secs(years * 366 * 86_400);
    assert!(client.bytes("a b").unwrap_err().to_string().contains("use 1 to 255 of A-Z a-z"));
    let refused = [
        queue.publish_bytes("x").delay(years(11)).await.unwrap_err(),
        queue.publish_bytes("x").at(SystemTime::now() + years(11)).await.unwrap_err(),
        queue.publish_bytes("x").delay(years(1)).ttl(years(1) / 2).await.unwrap_err(),
        queue.publish_bytes("x").attempts(0).await.unwrap_err(),
        queue.publish_bytes("x").attempts(1_000).await.unwrap_err(),
        queue.publish_bytes("x").backoff(Backoff::Ladder(vec![])).await.unwrap_err(),
        queue.publish_bytes("x").lost_delay(years(1)).await.unwrap_err(),
        queue.take().count(0).await.unwrap_err(),
        queue.take().count(257).await.unwrap_err(),
        queue.take().wait(Duration::from_secs(301)).await.unwrap_err(),
        queue.take().lease(Duration::from_millis(999)).await.unwrap_err(),
        queue.stats(49).await.unwrap_err(),
        client.take(Vec::<delayline_tokio::QueueName>::new()).await.unwrap_err(),
        Worker::new(&client).run().await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    }
    let large = queue.publish_bytes(vec![0; (1 << 20) + 1]).await.unwrap_err();
    assert_eq!(large, Error::TooLarge { bytes: (1 << 20) + 1, limit: 1 << 20 });
    queue.publish_bytes(vec![7; 1 << 20]).await.unwrap();
    assert_eq!(queue.take().await.unwrap()[0].body.len(), 1 << 20);
    let headers = queue.publish_bytes("x").header("h", "v".repeat(4_000)).await.unwrap_err();
    assert!(matches!(headers, Error::Record(_)), "{headers:?}");
}

async fn no_job_is_early(client: Client) {
    let queue = client.bytes("punctual").unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = Worker::new(&client).concurrency(100).queue(
        &client.bytes("punctual").unwrap(),
        move |job: Context| {
            let _ = tell.send((unix_ms(), job.due.0));
            async {}
        },
    );
    let running = tokio::spawn(worker.run());
    let jobs = (0..300u64).map(|i| queue.publish_bytes("x").delay(Duration::from_millis(i * 7 % 900)));
    for published in queue.publish_all(jobs).await {
        published.unwrap();
    }
    for _ in 0..300 {
        let (now, due) = told.recv().await.unwrap();
        assert!(now >= due, "{} ms early", due - now);
    }
    client.close().await;
    running.await.unwrap().unwrap();
}

async fn a_handler_keeps_its_lease_for_as_long_as_it_takes(client: Client) {
    let queue = client.bytes("slow").unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let worker = Worker::new(&client).lease(Duration::from_secs(2)).queue(
        &client.bytes("slow").unwrap(),
        move |_: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(5))
        },
    );
    let running = tokio::spawn(worker.run());
    queue.publish_bytes("x").await.unwrap();
    eventually("acked", async || queue.stats(0).await.unwrap().counters.acked == 1).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(queue.stats(0).await.unwrap().counters.ended, 0);
    client.close().await;
    running.await.unwrap().unwrap();
}

async fn a_handler_that_blocks_its_runtime_keeps_its_lease(client: Client) {
    let queue = client.bytes("blocking").unwrap();
    let id = queue.publish_bytes("x").await.unwrap().id;
    let own = client.clone();
    let blocked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (done, is_done) = mpsc::unbounded_channel();
        let is_done = Mutex::new(is_done);
        let worker = Worker::new(&own).lease(Duration::from_secs(2)).queue(
            &own.bytes("blocking").unwrap(),
            move |_: Context| {
                let done = done.clone();
                async move {
                    std::thread::sleep(Duration::from_secs(5));
                    done.send(()).unwrap();
                }
            },
        );
        runtime.block_on(worker.run_until(async move {
            is_done.into_inner().unwrap().recv().await;
        }))
    });
    let mut looks = 0;
    eventually("acked", async || {
        let found = queue.inspect(&id).await.unwrap();
        looks += usize::from(found.as_ref().is_some_and(|job| job.place == Place::Leased));
        found.is_none()
    })
    .await;
    assert!(looks > 0);
    blocked.join().unwrap().unwrap();
    let counters = queue.stats(0).await.unwrap().counters;
    assert_eq!((counters.granted, counters.acked, counters.ended), (1, 1, 0));
}

async fn a_panic_fails_the_attempt(client: Client) {
    let queue = client.bytes("panicking").unwrap();
    let worker = Worker::new(&client).queue(&client.bytes("panicking").unwrap(), |job: Context| {
        assert!(job.attempt > 1, "before the first await");
        async move {
            tokio::task::yield_now().await;
            assert_eq!(job.attempt, 0, "after an await");
        }
    });
    let running = tokio::spawn(worker.run());
    let id = queue.publish_bytes("x").attempts(2).backoff(Backoff::Fixed { ms: 400 }).await.unwrap().id;
    let reason = async || {
        let found = queue.inspect(&id).await.unwrap().unwrap();
        found.last_reason().unwrap_or_default().to_owned()
    };
    eventually("the first", async || reason().await == "panicked: before the first await").await;
    eventually("the second", async || reason().await.contains("after an await")).await;
    assert_eq!(queue.inspect(&id).await.unwrap().unwrap().place, Place::Dead);
    client.close().await;
    running.await.unwrap().unwrap();
}

async fn a_shutdown_waits_for_handlers_then_gives_back(client: Client) {
    let queue = client.bytes("stopping").unwrap();
    for body in ["short", "endless"] {
        queue.publish_bytes(body).await.unwrap();
    }
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = begun.clone();
    let worker = Worker::new(&client).grace(Duration::from_secs(3)).queue(
        &client.bytes("stopping").unwrap(),
        move |job: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let short = &job.body[..] == b"short";
                tokio::time::sleep(Duration::from_millis(if short { 300 } else { 3_600_000 })).await;
            }
        },
    );
    worker.run_until(eventually("both run", async || begun.load(Ordering::SeqCst) == 2)).await.unwrap();
    let stats = queue.stats(0).await.unwrap();
    assert_eq!((stats.counters.acked, stats.counters.released, stats.ready), (1, 1, 1));
    let [job] = &queue.take().await.unwrap()[..] else { panic!() };
    assert_eq!((&job.body[..], job.attempt, job.deliveries), (&b"endless"[..], 1, 2));
}

async fn a_dropped_worker_gives_back_at_once(client: Client) {
    let queue = client.bytes("dropped").unwrap();
    queue.publish_bytes("x").await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = Worker::new(&client).queue(&client.bytes("dropped").unwrap(), move |_: Context| {
        let _ = tell.send(());
        std::future::pending::<()>()
    });
    tokio::select! {
        _ = worker.run() => panic!(),
        _ = told.recv() => {}
    }
    let [job] = &queue.take().wait(Duration::from_secs(20)).await.unwrap()[..] else { panic!() };
    assert_eq!((job.attempt, job.deliveries), (1, 2));
}

async fn a_closed_client_flushes_and_refuses(client: Client) {
    let queue = client.bytes("closing").unwrap();
    let taking =
        tokio::spawn(client.bytes("empty").unwrap().take().wait(Duration::from_secs(300)).into_future_of());
    let publishing: Vec<_> =
        (0..500).map(|_| tokio::spawn(queue.publish_bytes("x").into_future_of())).collect();
    tokio::task::yield_now().await;
    client.clone().close().await;
    let mut accepted = 0;
    for published in publishing {
        match published.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(error) => assert_eq!(error, Error::Closed),
        }
    }
    let taken = taking.await.unwrap();
    assert!(taken == Ok(Vec::new()) || taken == Err(Error::Closed), "{taken:?}");
    assert_eq!(queue.publish_bytes("x").await, Err(Error::Closed));
    assert_eq!(client.ping().await, Err(Error::Closed));
    println!("{accepted} of 500 were accepted before the close");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publish_that_meets_the_close_is_refused_not_unknown() {
    for _ in 0..200 {
        let client = Client::connect("memory://").await.unwrap();
        let publishing: Vec<_> = (0..4)
            .map(|_| {
                let queue = client.bytes("closing").unwrap();
                tokio::spawn(async move {
                    loop {
                        if let Err(error) = queue.publish_bytes("x").await {
                            return error;
                        }
                    }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        client.close().await;
        for refused in publishing {
            assert_eq!(refused.await.unwrap(), Error::Closed);
        }
    }
}

async fn a_dropped_client_flushes(client: Client) {
    let queue = client.bytes("dropping").unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = Worker::new(&client).queue(&client.bytes("dropping").unwrap(), move |_: Context| {
        let _ = tell.send(());
        async {}
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(worker.run_until(async move { drop(stopped.await) }));
    tokio::spawn(queue.publish_bytes("x").into_future_of()).await.unwrap().unwrap();
    drop((queue, client));
    told.recv().await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

async fn two_workers_share_a_queue(client: Client) {
    let queue = client.bytes("shared").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..2)
        .map(|which| {
            let seen = seen.clone();
            let worker = Worker::new(&client).concurrency(10).queue(
                &client.bytes("shared").unwrap(),
                move |job: Context| {
                    seen.lock().unwrap().push((which, job.id().clone()));
                    tokio::time::sleep(Duration::from_millis(1))
                },
            );
            tokio::spawn(worker.run())
        })
        .collect();
    let jobs = (0..2_000u64).map(|i| queue.publish_bytes("x").delay(Duration::from_millis(i % 500)));
    for published in queue.publish_all(jobs).await {
        published.unwrap();
    }
    eventually("all acked", async || queue.stats(0).await.unwrap().counters.acked == 2_000).await;
    let seen = seen.lock().unwrap().clone();
    let ids: BTreeSet<_> = seen.iter().map(|(_, id)| id).collect();
    assert_eq!((seen.len(), ids.len()), (2_000, 2_000));
    for which in 0..2 {
        assert!(seen.iter().any(|(by, _)| *by == which), "worker {which} ran nothing");
    }
    client.close().await;
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
}

async fn jobs_stay_punctual_when_whoever_tends_them_leaves(client: Client) {
    let queue = client.bytes("tended").unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let start = |name: &'static str| {
        let tell = tell.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(&client).queue(&client.bytes("tended").unwrap(), move |job: Context| {
            let _ = tell.send((name, job.late_ms));
            async {}
        });
        (stop, tokio::spawn(worker.run_until(async move { drop(stopped.await) })))
    };
    let (stop_first, first) = start("first");
    queue.publish_bytes("x").delay(Duration::from_millis(50)).await.unwrap();
    assert_eq!(told.recv().await.unwrap().0, "first");
    let (stop_second, second) = start("second");
    queue.publish_bytes("x").delay(Duration::from_millis(50)).await.unwrap();
    told.recv().await.unwrap();
    queue.publish_bytes("x").delay(Duration::from_millis(500)).await.unwrap();
    stop_first.send(()).unwrap();
    first.await.unwrap().unwrap();
    let (who, late_ms) = told.recv().await.unwrap();
    assert_eq!(who, "second");
    assert!(late_ms < 1_000, "{late_ms} ms late");
    stop_second.send(()).unwrap();
    second.await.unwrap().unwrap();
}
