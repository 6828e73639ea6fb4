//! Handlers whose leases are lost, or whose worker ends.

use std::time::Duration;

use delayline_tokio::{
    Attempt, CancellationToken, Client, Context, Job, LostLease, Place, Queue, Worker, blocking,
};

use crate::eventually;
use crate::outages::slow;
use crate::running::{HOUR, Teller, end, run, tell};
use crate::server::Server;

on_both_stores! {
    a_lost_lease_aborts_the_handler
    a_lost_lease_is_told_to_a_handler_that_cooperates
    a_graceful_end_cancels_what_goes_on_past_the_grace
}

/// Tells when it is dropped.
pub(crate) struct Dropped(pub(crate) Teller<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.tell("dropped");
    }
}

/// Takes the lease of the queue's only job away, and puts another job in its place.
async fn steal(queue: &Queue<String>) {
    queue.destroy().await.unwrap().unwrap();
    queue.publish(&"another".into()).id("x").delay(HOUR).await.unwrap();
}

async fn a_lost_lease_aborts_the_handler(client: Client) {
    let queue = client.queue::<String>("stolen").unwrap();
    let (teller, mut told) = tell();
    let handler = move |context: Context| {
        let dropped = Dropped(teller.clone());
        async move {
            dropped.0.tell("begun");
            std::future::pending::<()>().await;
            drop(context);
        }
    };
    let running = run(Worker::new(&client).lease(Duration::from_secs(1)).queue(&queue, handler));
    queue.publish(&"x".into()).id("x").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "begun");
    steal(&queue).await;
    assert_eq!(told.recv().await.unwrap(), "dropped");
    let left = queue.inspect("x").await.unwrap().unwrap();
    assert_eq!((left.place, left.attempt()), (Place::Delayed, 0));
    end(client, running).await;
}

async fn a_lost_lease_is_told_to_a_handler_that_cooperates(client: Client) {
    let queue = client.queue::<String>("stolen").unwrap();
    let (teller, mut told) = tell();
    let handler = move |token: CancellationToken, Job(what): Job<String>| {
        let teller = teller.clone();
        async move {
            teller.tell("begun");
            if what == "x" {
                token.cancelled().await;
                teller.tell("cancelled");
            }
        }
    };
    let worker = Worker::new(&client)
        .lease(Duration::from_secs(1))
        .on_lost_lease(LostLease::Cooperate)
        .queue(&queue, handler);
    let running = run(worker);
    queue.publish(&"x".into()).id("x").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "begun");
    steal(&queue).await;
    assert_eq!(told.recv().await.unwrap(), "cancelled");
    queue.publish(&"y".into()).await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "begun");
    eventually("the second is acked", async || queue.stats(0).await.unwrap().counters.acked == 1).await;
    assert_eq!(queue.inspect("x").await.unwrap().unwrap().place, Place::Delayed);
    end(client, running).await;
}

async fn a_graceful_end_cancels_what_goes_on_past_the_grace(client: Client) {
    let queue = client.queue::<String>("stopping").unwrap();
    let aside = client.queue::<String>("aside").unwrap();
    let (teller, mut told) = tell();
    let asked = teller.clone();
    let handler = move |token: CancellationToken| {
        let (teller, aside) = (teller.clone(), teller.clone());
        let cancelled = token.cancelled_owned();
        tokio::spawn(async move {
            cancelled.await;
            aside.tell("cancelled");
        });
        async move {
            teller.tell("begun");
            std::future::pending::<()>().await;
        }
    };
    let thread = blocking(move |token: CancellationToken| {
        asked.tell("begun");
        while !token.is_cancelled() {
            std::thread::yield_now();
        }
        asked.tell("cancelled");
    });
    let worker =
        Worker::new(&client).grace(Duration::from_millis(200)).queue(&queue, handler).queue(&aside, thread);
    for queue in [&queue, &aside] {
        queue.publish(&"x".into()).id("x").await.unwrap();
    }
    let begun = async {
        for _ in 0..2 {
            assert_eq!(told.recv().await.unwrap(), "begun");
        }
    };
    worker.run_until(begun).await.unwrap();
    for _ in 0..2 {
        assert_eq!(told.recv().await.unwrap(), "cancelled");
    }
    for queue in [&queue, &aside] {
        let job = queue.inspect("x").await.unwrap().unwrap();
        assert_eq!((job.place, job.attempt(), job.deliveries()), (Place::Ready, 0, 1));
        assert_eq!(queue.stats(0).await.unwrap().counters.released, 1);
    }
}

/// While Redis stands still nobody renews: the handler is stopped when its lease is over, and its job runs again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_ends_while_redis_stands_still_aborts_the_handler() {
    let server = Server::spawn();
    let client = Client::connect(&server.url()).await.unwrap();
    let queue = client.queue::<String>("paused").unwrap();
    let (teller, mut told) = tell();
    let handler = move |Attempt(attempt): Attempt| {
        let dropped = Dropped(teller.clone());
        async move {
            dropped.0.tell(if attempt == 1 { "begun" } else { "begun again" });
            std::future::pending::<()>().await;
        }
    };
    let worker = Worker::new(&client)
        .lease(Duration::from_secs(1))
        .grace(Duration::from_millis(100))
        .queue(&queue, handler);
    let running = run(worker);
    queue.publish(&"x".into()).id("x").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "begun");
    server.signal("-STOP");
    assert_eq!(told.recv().await.unwrap(), "dropped");
    server.signal("-CONT");
    assert_eq!(told.recv().await.unwrap(), "begun again");
    assert_eq!(queue.stats(0).await.unwrap().counters.ended, 1);
    end(client, running).await;
}

/// The process may end as soon as its runtime has: what a worker held is given back by then, though Redis is far away.
#[test]
fn a_worker_that_is_dropped_with_its_runtime_has_given_its_jobs_back() {
    let server = Server::spawn();
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (outer, inner) = (runtime(), runtime());
    let (url, near) = outer.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}/", listener.local_addr().unwrap());
        tokio::spawn(slow(listener, server.address(), Duration::from_millis(50)));
        (url, Client::connect(&server.url()).await.unwrap())
    });
    inner.block_on(begin(&url));
    let begun = std::time::Instant::now();
    drop(inner);
    let took = begun.elapsed();
    let job = outer.block_on(near.queue::<String>("dropped").unwrap().inspect("x")).unwrap().unwrap();
    assert_eq!((job.place, job.attempt(), job.deliveries()), (Place::Ready, 0, 1));
    println!("given back in {took:?}");
}

/// A Redis that is away keeps nobody longer than a second.
#[test]
fn a_worker_that_is_dropped_while_redis_is_away_lets_its_process_end() {
    let mut server = Server::spawn();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(begin(&server.url()));
    server.kill();
    let begun = std::time::Instant::now();
    drop(runtime);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Leaves a worker behind that holds job `x` of the queue `dropped`, whose handler does not end.
async fn begin(url: &str) {
    let client = Client::connect(url).await.unwrap();
    let queue = client.queue::<String>("dropped").unwrap();
    let (teller, mut told) = tell();
    let handler = move || {
        teller.tell("begun");
        std::future::pending::<()>()
    };
    drop(run(Worker::new(&client).queue(&queue, handler)));
    queue.publish(&"x".into()).id("x").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "begun");
}
