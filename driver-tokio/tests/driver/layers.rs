//! tower's layers and services around and instead of handlers.

use std::time::Duration;

use delayline_tokio::{
    Backoff, BoxError, Client, Context, Failure, Job, JobService, Place, QueueOptions, Verdict, Worker,
};
use tower::layer::layer_fn;
use tower::timeout::TimeoutLayer;
use tower::{ServiceExt, service_fn};

use crate::eventually;
use crate::running::{HOUR, NotSent, end, is_in, reason, run, tell};

on_both_stores! {
    a_timeout_is_a_failed_attempt
    the_last_layer_is_the_outermost
    layers_see_the_error_itself
    a_layer_s_own_error_keeps_what_the_failure_in_it_says
    a_tower_service_handles_jobs
}

async fn a_timeout_is_a_failed_attempt(client: Client) {
    let queue = client.queue::<String>("mails").unwrap();
    let worker = Worker::new(&client)
        .queue(&queue, async |_: Context| std::future::pending::<()>().await)
        .layer(TimeoutLayer::new(Duration::from_millis(50)));
    let running = run(worker);
    queue.publish(&"x".into()).id("x").attempts(2).backoff(Backoff::None).await.unwrap();
    is_in(&queue, "x", Place::Dead).await;
    assert_eq!(reason(&queue, "x").await, "request timed out");
    end(client, running).await;
}

async fn the_last_layer_is_the_outermost(client: Client) {
    let queue = client.queue::<String>("mails").unwrap();
    let (teller, mut told) = tell();
    let named = |name: &'static str| {
        let teller = teller.clone();
        layer_fn(move |service: JobService| {
            let (before, after) = (teller.clone(), teller.clone());
            service
                .map_request(move |context: Context| {
                    before.tell(format!("into {name}"));
                    context
                })
                .map_result(move |done: Result<Verdict, BoxError>| {
                    after.tell(format!("out of {name}"));
                    done
                })
        })
    };
    let inmost = teller.clone();
    let handler = move |_: Context| inmost.then("handled".to_owned());
    let worker = Worker::new(&client).layer(named("inner")).queue(&queue, handler).layer(named("outer"));
    let running = run(worker);
    queue.publish(&"x".into()).await.unwrap();
    for what in ["into outer", "into inner", "handled", "out of inner", "out of outer"] {
        assert_eq!(told.recv().await.unwrap(), what);
    }
    end(client, running).await;
}

async fn layers_see_the_error_itself(client: Client) {
    async fn handle(Job(what): Job<String>) -> Result<(), Failure> {
        match &*what {
            "retry" => Err(NotSent(std::io::Error::other("no route")))?,
            "later" => Err(Failure::retry_after(HOUR, NotSent(std::io::Error::other("no route")))),
            _ => Err(Failure::bury(NotSent(std::io::Error::other("no route")))),
        }
    }
    let queue = client.queue::<String>("mails").unwrap();
    let (teller, mut told) = tell();
    let looking = layer_fn(move |service: JobService| {
        let teller = teller.clone();
        service.map_err(move |error: BoxError| {
            let mut chain: Vec<&(dyn std::error::Error + 'static)> = vec![&*error];
            while let Some(cause) = chain[chain.len() - 1].source() {
                chain.push(cause);
            }
            teller.tell(chain.iter().any(|error| error.is::<NotSent>()));
            error
        })
    });
    let running = run(Worker::new(&client).layer(looking).queue(&queue, handle));
    for (what, place) in [("retry", Place::Delayed), ("later", Place::Delayed), ("bury", Place::Dead)] {
        queue.publish(&what.into()).id(what).backoff(Backoff::Fixed { ms: 60_000 }).await.unwrap();
        assert!(told.recv().await.unwrap(), "{what}");
        is_in(&queue, what, place).await;
        assert_eq!(reason(&queue, what).await, "the mail was not sent: no route");
    }
    end(client, running).await;
}

/// What a layer makes of a handler's error.
#[derive(Debug)]
struct Wrapped(BoxError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the circuit is open")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

async fn a_layer_s_own_error_keeps_what_the_failure_in_it_says(client: Client) {
    async fn handle(Job(what): Job<String>) -> Result<(), Failure> {
        match &*what {
            "retry" => Err("no")?,
            "after" => Err(Failure::retry_after(HOUR, "no")),
            "snooze" => Err(Failure::snooze(HOUR)),
            _ => Err(Failure::bury("no")),
        }
    }
    let queue = client.queue::<String>("mails").unwrap();
    let wrapping = || layer_fn(|service: JobService| service.map_err(Wrapped));
    let running = run(Worker::new(&client).layer(wrapping()).layer(wrapping()).queue(&queue, handle));
    for (what, place, attempts) in [
        ("retry", Place::Dead, 1),
        ("after", Place::Delayed, 1),
        ("snooze", Place::Delayed, 0),
        ("bury", Place::Dead, 1),
    ] {
        let most = if what == "retry" { 1 } else { 5 };
        queue.publish(&what.into()).id(what).attempts(most).backoff(Backoff::None).await.unwrap();
        eventually(what, async || {
            let job = queue.inspect(what).await.unwrap().unwrap();
            job.place == place && job.attempt() == attempts && job.deliveries() > 0
        })
        .await;
    }
    assert_eq!(reason(&queue, "bury").await, "the circuit is open: no");
    end(client, running).await;
}

async fn a_tower_service_handles_jobs(client: Client) {
    let queue = client.queue::<String>("mails").unwrap();
    let (teller, mut told) = tell();
    let service = service_fn(move |context: Context| {
        let teller = teller.clone();
        async move {
            let job: String = context.job()?;
            if job == "bury" {
                return Err(Failure::bury("no use"));
            }
            teller.tell(job);
            Ok(Verdict::Ack)
        }
    });
    let worker = Worker::new(&client).service_with(&queue, QueueOptions { weight: 2, max: 3 }, service);
    let running = run(worker);
    queue.publish(&"bury".into()).id("bury").await.unwrap();
    queue.publish(&"ann".into()).id("ann").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "ann");
    is_in(&queue, "bury", Place::Dead).await;
    assert_eq!(reason(&queue, "bury").await, "no use");
    end(client, running).await;
}
