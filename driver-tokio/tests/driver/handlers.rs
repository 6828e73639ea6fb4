//! What workers call, with what, and what comes of it.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use delayline_tokio::{
    Attempt, Backoff, CancellationToken, Client, Context, Data, Error, Failure, FromContext, Handler,
    Headers, Invalid, Job, JobId, Place, QueueName, QueueOptions, Reason, Verdict, Worker, blocking,
};
use tower::timeout::TimeoutLayer;
use tower::timeout::error::Elapsed;

use crate::eventually;
use crate::running::{HOUR, NotSent, Teller, end, is_in, reason, run, tell, text};

on_both_stores! {
    every_argument_is_filled
    an_argument_that_cannot_be_made_is_the_handlers_failure
    data_is_that_of_when_the_queue_was_added
    data_is_cloned_on_the_runtime_of_the_handlers
    handlers_have_none_to_six_arguments
    a_verdict_is_what_the_handler_returns
    an_endless_delay_is_cut_to_ten_years
    a_blocking_handlers_panic_is_a_failed_attempt
    a_body_that_cannot_be_read_dies_and_others_go_on
    the_policy_sees_every_failure_and_may_decide_otherwise
    a_policy_that_panics_costs_the_attempt
    queues_share_a_worker_by_weight_and_max
    what_cannot_be_run_is_refused_with_what_to_do
}

async fn every_argument_is_filled(client: Client) {
    let queue = client.queue::<String>("mails").unwrap();
    let (teller, mut told) = tell();
    let handler = |Job(to): Job<String>,
                   Data(teller): Data<Teller<Vec<String>>>,
                   Attempt(attempt): Attempt,
                   headers: Headers,
                   id: JobId,
                   name: QueueName| async move {
        let colour = headers.get("colour").unwrap_or_default();
        assert_eq!(headers.get("Colour"), None);
        teller.tell(vec![to, text(attempt), text(colour), text(id), text(name)]);
    };
    let more = client.queue::<String>("more").unwrap();
    let rest = |context: Context, token: CancellationToken, Data(teller): Data<Teller<Vec<String>>>| async move {
        assert!(!token.is_cancelled() && !context.cancellation().is_cancelled());
        let job: String = context.job()?;
        let wrong = context.job::<u64>().unwrap_err().to_string();
        teller.tell(vec![job, text(context.header("colour").unwrap_or_default()), wrong]);
        Ok::<_, Failure>(())
    };
    let worker = Worker::new(&client).with_data(teller).queue(&queue, handler).queue(&more, rest);
    queue.publish(&"ann".into()).id("one").header("colour", "blue").await.unwrap();
    let running = run(worker);
    assert_eq!(told.recv().await.unwrap(), ["ann", "1", "blue", "one", "mails"]);
    more.publish(&"bob".into()).header("colour", "red").await.unwrap();
    let wrong = "the jobs of queue more are not read as u64 by this worker";
    assert_eq!(told.recv().await.unwrap(), ["bob", "red", wrong]);
    end(client, running).await;
}

struct Tenant(String);

impl<T, S> FromContext<T, S> for Tenant {
    fn from_context(context: &Context, _: &S) -> Result<Tenant, Failure> {
        let tenant = context.header("tenant").ok_or_else(|| Failure::bury("it names no tenant"))?;
        Ok(Tenant(tenant.to_owned()))
    }
}

async fn an_argument_that_cannot_be_made_is_the_handlers_failure(client: Client) {
    let queue = client.queue::<String>("bills").unwrap();
    let (teller, mut told) = tell();
    let bill = move |Tenant(tenant): Tenant| {
        teller.tell(tenant);
        ready(())
    };
    let running = run(Worker::new(&client).queue(&queue, bill));
    queue.publish(&"x".into()).id("nobody").await.unwrap();
    queue.publish(&"x".into()).header("tenant", "ann").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "ann");
    is_in(&queue, "nobody", Place::Dead).await;
    assert_eq!(reason(&queue, "nobody").await, "it names no tenant");
    end(client, running).await;
}

async fn data_is_that_of_when_the_queue_was_added(client: Client) {
    let [none, number, word] = ["none", "number", "word"].map(|name| client.queue::<String>(name).unwrap());
    let (teller, mut told) = tell();
    let [first, second, third] = [(); 3].map(|()| teller.clone());
    let worker = Worker::new(&client)
        .queue(&none, move |Data(()): Data<()>| first.then(text("nothing")))
        .with_data(17u8)
        .queue(&number, move |Data(data): Data<u8>| second.then(text(data)))
        .with_data("seventeen")
        .queue(&word, move |Data(data): Data<&'static str>| third.then(text(data)));
    let running = run(worker);
    for (queue, data) in [(&none, "nothing"), (&number, "17"), (&word, "seventeen")] {
        queue.publish(&"x".into()).await.unwrap();
        assert_eq!(told.recv().await.unwrap(), data);
    }
    end(client, running).await;
}

/// Data that tells which threads clone it.
struct Watched(Teller<Option<String>>);

impl Clone for Watched {
    fn clone(&self) -> Watched {
        self.0.tell(std::thread::current().name().map(str::to_owned));
        Watched(self.0.clone())
    }
}

async fn data_is_cloned_on_the_runtime_of_the_handlers(client: Client) {
    let queue = client.queue::<String>("mails").unwrap();
    let (teller, mut threads) = tell();
    let (done, mut is_done) = tell();
    let handler = move |_: Data<Watched>| done.then(());
    let running = run(Worker::new(&client).with_data(Watched(teller)).queue(&queue, handler));
    queue.publish(&"x".into()).await.unwrap();
    is_done.recv().await.unwrap();
    end(client, running).await;
    let mut clones = 0;
    while let Some(thread) = threads.recv().await {
        assert_ne!(thread.as_deref(), Some("delayline"), "the engine's thread cloned it");
        clones += 1;
    }
    assert!(clones > 0);
}

async fn handlers_have_none_to_six_arguments(client: Client) {
    async fn none() {}
    async fn six(_: Job<String>, _: Attempt, _: Headers, _: JobId, _: QueueName, _: Context) {}
    fn blocking_none() {}
    fn blocking_six(_: Job<String>, _: Attempt, _: Headers, _: JobId, _: QueueName, _: Context) {}
    let queue = |name: &str| client.queue::<String>(name).unwrap();
    let names = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "b0", "b1", "b6"];
    let worker = Worker::new(&client)
        .queue(&queue("a0"), none)
        .queue(&queue("a1"), async |_: Job<String>| ())
        .queue(&queue("a2"), async |_: Job<String>, _: Attempt| Verdict::Ack)
        .queue(&queue("a3"), async |_: Job<String>, _: Attempt, _: Headers| Ok::<_, Failure>(()))
        .queue(&queue("a4"), async |_: Job<String>, _: Attempt, _: Headers, _: JobId| {
            Ok::<_, String>(Verdict::Ack)
        })
        .queue(&queue("a5"), |_: Job<String>, _: Attempt, _: Headers, _: JobId, _: QueueName| async {})
        .queue(&queue("a6"), six)
        .queue(&queue("b0"), blocking(blocking_none))
        .queue(&queue("b1"), blocking(|_: Job<String>| Ok::<_, std::io::Error>(())))
        .queue(&queue("b6"), blocking(blocking_six));
    let running = run(worker);
    for name in names {
        queue(name).publish(&"x".into()).await.unwrap();
    }
    for name in names {
        eventually(name, async || queue(name).stats(0).await.unwrap().counters.acked == 1).await;
    }
    end(client, running).await;
}

async fn a_verdict_is_what_the_handler_returns(client: Client) {
    async fn handle(Job(what): Job<String>, context: Context) -> Result<Verdict, Failure> {
        let wait = Duration::from_secs(7_200);
        match (&*what, context.deliveries) {
            ("error", _) => Err(NotSent(std::io::Error::other("no route to host")))?,
            ("later", _) => return Err(Failure::retry_after(wait, "the bank said 429")),
            ("snooze", _) => return Err(Failure::snooze(wait)),
            ("bury", _) => return Err(Failure::bury("no use")),
            ("release", 1) => return Ok(Verdict::Release),
            _ => {}
        }
        Ok(Verdict::Ack)
    }
    let queue = client.queue::<String>("verdicts").unwrap();
    for what in ["ok", "error", "later", "snooze", "bury", "release"] {
        queue.publish(&what.into()).id(what).backoff(Backoff::Fixed { ms: 3_600_000 }).await.unwrap();
    }
    let running = run(Worker::new(&client).queue(&queue, handle));
    let is_settled = async || {
        let counters = queue.stats(0).await.unwrap().counters;
        (counters.acked, counters.nacked, counters.snoozed, counters.released, counters.died)
            == (2, 2, 1, 1, 1)
    };
    eventually("all are settled", is_settled).await;
    let found = async |id| queue.inspect(id).await.unwrap();
    assert_eq!((found("ok").await, found("release").await), (None, None));
    for (id, place, attempts, why, hours) in [
        ("error", Place::Delayed, 1, Some("the mail was not sent: no route to host"), 1),
        ("later", Place::Delayed, 1, Some("the bank said 429"), 2),
        ("snooze", Place::Delayed, 0, None, 2),
        ("bury", Place::Dead, 1, Some("no use"), 0),
    ] {
        let job = found(id).await.unwrap();
        assert_eq!((job.place, job.attempt(), job.last_reason()), (place, attempts, why), "{id}");
        let ahead = job.at.0.saturating_sub(crate::unix_ms());
        assert!(ahead <= hours * 3_600_000 && ahead + 30_000 >= hours * 3_600_000, "{id}: {ahead} ms ahead");
    }
    end(client, running).await;
}

async fn an_endless_delay_is_cut_to_ten_years(client: Client) {
    let queue = client.queue::<String>("endless").unwrap();
    let running = run(Worker::new(&client).queue(&queue, async |Job(what): Job<String>| match &*what {
        "snooze" => Err::<(), _>(Failure::snooze(Duration::MAX)),
        _ => Err(Failure::retry_after(Duration::MAX, "never")),
    }));
    for what in ["snooze", "later"] {
        queue.publish(&what.into()).id(what).await.unwrap();
        eventually("it waits", async || queue.inspect(what).await.unwrap().unwrap().place == Place::Delayed)
            .await;
        let years = (queue.inspect(what).await.unwrap().unwrap().at.0 - crate::unix_ms()) / 31_500_000_000;
        assert_eq!(years, 10, "{what}");
    }
    end(client, running).await;
}

async fn a_blocking_handlers_panic_is_a_failed_attempt(client: Client) {
    let queue = client.queue::<String>("panics").unwrap();
    let handler = |Job(what): Job<String>| -> () {
        match &*what {
            "text" => panic!("out of paper"),
            "format" => panic!("out of {what}"),
            _ => std::panic::panic_any(17),
        }
    };
    let running = run(Worker::new(&client).queue(&queue, blocking(handler)));
    for (what, why) in [
        ("text", "panicked: out of paper"),
        ("format", "panicked: out of format"),
        ("any", "panicked: without a text"),
    ] {
        queue.publish(&what.into()).id(what).attempts(1).await.unwrap();
        is_in(&queue, what, Place::Dead).await;
        assert_eq!(reason(&queue, what).await, why);
    }
    end(client, running).await;
}

async fn a_body_that_cannot_be_read_dies_and_others_go_on(client: Client) {
    let queue = client.queue::<String>("mails").unwrap();
    let fast = Backoff::Fixed { ms: 1 };
    let bytes = client.bytes("mails").unwrap();
    bytes.publish_bytes("{").id("bad").attempts(3).backoff(fast).await.unwrap();
    let (teller, mut told) = tell();
    let handler = move |Job(to): Job<String>, Attempt(attempt): Attempt| {
        teller.tell((to, attempt));
        ready(())
    };
    let running = run(Worker::new(&client).concurrency(1).queue(&queue, handler));
    is_in(&queue, "bad", Place::Dead).await;
    queue.publish(&"ann".into()).await.unwrap();
    assert_eq!(told.recv().await.unwrap(), ("ann".to_owned(), 1));
    let dead = queue.inspect("bad").await.unwrap().unwrap();
    assert_eq!(dead.attempt(), 3);
    let why = reason(&queue, "bad").await;
    assert!(why.starts_with("the body is not a alloc::string::String: invalid type: map"), "{why}");
    end(client, running).await;
}

async fn the_policy_sees_every_failure_and_may_decide_otherwise(client: Client) {
    async fn fail(context: Context, Job(what): Job<String>) -> Result<(), Failure> {
        match &*what {
            "error" => Err(NotSent(std::io::Error::other("no route")))?,
            "panic" => panic!("out of paper"),
            "bury" => return Err(Failure::bury("no use")),
            "snooze" => return Err(Failure::snooze(HOUR)),
            "timeout" => context.cancellation().cancelled().await,
            _ => return Err("left alone".into()),
        }
        Ok(())
    }
    let queue = client.queue::<String>("mails").unwrap();
    let seen: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    let seeing = seen.clone();
    let worker = Worker::new(&client)
        .layer(TimeoutLayer::new(Duration::from_millis(300)))
        .on_error(move |failure, context| {
            let kind = match failure.error() {
                Some(error) if error.is::<NotSent>() => "typed",
                Some(error) if error.is::<Elapsed>() => "elapsed",
                Some(_) => "text",
                None => "none",
            };
            seeing.lock().unwrap().insert(text(context.id()), format!("{kind}: {failure}"));
            let is_ours = context.id().as_str() != "alone";
            is_ours.then(|| Verdict::Bury { reason: Reason::new("by the policy") })
        })
        .queue(&queue, fail);
    let running = run(worker);
    client.bytes("mails").unwrap().publish_bytes("{").id("body").await.unwrap();
    for what in ["error", "panic", "bury", "snooze", "timeout", "alone"] {
        queue.publish(&what.into()).id(what).backoff(Backoff::Fixed { ms: 3_600_000 }).await.unwrap();
    }
    for what in ["error", "panic", "bury", "snooze", "timeout", "body"] {
        is_in(&queue, what, Place::Dead).await;
        assert_eq!(reason(&queue, what).await, "by the policy");
    }
    is_in(&queue, "alone", Place::Delayed).await;
    assert_eq!(reason(&queue, "alone").await, "left alone");
    let mut seen = seen.lock().unwrap().clone();
    assert!(
        seen.remove("body")
            .unwrap()
            .starts_with("text: the body is not a alloc::string::String: invalid type")
    );
    let expected = [
        ("alone", "text: left alone"),
        ("bury", "text: no use"),
        ("error", "typed: the mail was not sent: no route"),
        ("panic", "text: panicked: out of paper"),
        ("snooze", "none: snoozed"),
        ("timeout", "elapsed: request timed out"),
    ];
    assert_eq!(seen, expected.map(|(id, what)| (text(id), text(what))).into());
    end(client, running).await;
}

async fn a_policy_that_panics_costs_the_attempt(client: Client) {
    let queue = client.queue::<String>("mails").unwrap();
    let worker = Worker::new(&client)
        .on_error(|_, _| panic!("no policy"))
        .queue(&queue, async |_: Context| Err::<(), _>("failed"));
    let running = run(worker);
    queue.publish(&"x".into()).id("x").attempts(2).backoff(Backoff::None).await.unwrap();
    is_in(&queue, "x", Place::Dead).await;
    let counters = queue.stats(0).await.unwrap().counters;
    assert_eq!((counters.granted, counters.released), (2, 0));
    assert_eq!(reason(&queue, "x").await, "panicked: no policy");
    end(client, running).await;
}

async fn queues_share_a_worker_by_weight_and_max(client: Client) {
    let (flooded, calm) =
        (client.queue::<String>("flooded").unwrap(), client.queue::<String>("calm").unwrap());
    let ran = Arc::new(Mutex::new(Vec::new()));
    let most = Arc::new(AtomicUsize::new(0));
    let running_now = Arc::new(AtomicUsize::new(0));
    let (ran_by, most_by) = (ran.clone(), most.clone());
    let handler = move |name: QueueName| {
        let (ran, most, running_now) = (ran_by.clone(), most_by.clone(), running_now.clone());
        async move {
            let is_calm = name.as_str() == "calm";
            if is_calm {
                most.fetch_max(running_now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            if is_calm {
                running_now.fetch_sub(1, Ordering::SeqCst);
            }
            ran.lock().unwrap().push(is_calm);
        }
    };
    for queue in [&flooded, &calm] {
        let jobs = (0..600).map(|_| queue.publish(&"x".into()));
        assert!(queue.publish_all(jobs).await.into_iter().all(|outcome| outcome.is_ok()));
    }
    let worker = Worker::new(&client)
        .concurrency(8)
        .queue_with(&flooded, QueueOptions { weight: 1, max: 100 }, handler.clone())
        .queue_with(&calm, QueueOptions { weight: 3, max: 3 }, handler);
    let running = run(worker);
    eventually("all ran", async || ran.lock().unwrap().len() == 1_200).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let ran = ran.lock().unwrap().clone();
    for (which, part) in ran[..600].chunks(100).enumerate() {
        let calm = part.iter().filter(|is_calm| **is_calm).count();
        assert!((5..=95).contains(&calm), "{calm} calm ones in hundred {which}");
    }
    end(client, running).await;
}

async fn what_cannot_be_run_is_refused_with_what_to_do(client: Client) {
    async fn nothing() {}
    let queue = client.queue::<String>("mails").unwrap();
    let twice = Worker::new(&client).queue(&queue, nothing).queue(&queue, nothing).run().await.unwrap_err();
    assert_eq!(twice, Error::Invalid(Invalid::QueueTwice("mails".into())));
    assert_eq!(twice.to_string(), "queue mails is named twice: name it once");
    let other = Client::builder().prefix("other").connect("memory://").await.unwrap();
    let elsewhere = other.queue::<String>("mails").unwrap();
    let refused = Worker::new(&client).queue(&elsewhere, nothing).run().await.unwrap_err();
    assert_eq!(refused, Error::Invalid(Invalid::OtherClient("mails".into())));
    assert!(refused.to_string().ends_with("make both with the same client"), "{refused}");
    assert_eq!(Worker::new(&client).run().await, Err(Error::Invalid(Invalid::NoQueue)));
    for worker in [
        Worker::new(&client).concurrency(0).queue(&queue, nothing),
        Worker::new(&client).queue_with(&queue, QueueOptions { weight: 0, max: 1 }, nothing),
        Worker::new(&client).queue_with(&queue, QueueOptions { weight: 1, max: 0 }, nothing),
        Worker::new(&client).lease(Duration::from_millis(1)).queue(&queue, nothing),
    ] {
        let refused = worker.run().await.unwrap_err();
        assert!(matches!(refused, Error::Config(_) | Error::Invalid(Invalid::Lease(_))), "{refused}");
    }
}

/// A handler is whatever has the arguments, wherever it is made.
fn handler() -> impl Handler<String, (), (Ready<()>, Attempt)> {
    |_: Attempt| ready(())
}

#[tokio::test]
async fn a_handler_can_be_returned() {
    let client = Client::connect("memory://").await.unwrap();
    let queue = client.queue::<String>("mails").unwrap();
    queue.publish(&"x".into()).await.unwrap();
    let running = run(Worker::new(&client).queue(&queue, handler()));
    eventually("acked", async || queue.stats(0).await.unwrap().counters.acked == 1).await;
    end(client, running).await;
}
