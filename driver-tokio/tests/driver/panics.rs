//! An engine that panics, which none should.

use std::time::Duration;

use delayline_tokio::{CancellationToken, Client, Error, LostLease, Verdict, Worker};

use crate::running::{run, tell};

on_both_stores! {
    an_engine_that_panics_is_an_error_to_everybody
}

async fn an_engine_that_panics_is_an_error_to_everybody(client: Client) {
    let (told_queue, aborted) =
        (client.queue::<String>("told").unwrap(), client.queue::<String>("aborted").unwrap());
    let (teller, mut told) = tell();
    let telling = |what: LostLease| {
        let teller = teller.clone();
        move |token: CancellationToken| {
            let teller = teller.clone();
            async move {
                teller.tell("begun");
                // A handler may see its token end before it is aborted: only the one that is not aborted tells of it.
                let _dropped = match what {
                    LostLease::Abort => Some(crate::leases::Dropped(teller)),
                    LostLease::Cooperate => {
                        token.cancelled().await;
                        teller.tell("cancelled");
                        None
                    }
                };
                std::future::pending::<()>().await;
            }
        }
    };
    let worker = |queue, what| run(Worker::new(&client).on_lost_lease(what).queue(queue, telling(what)));
    let running = [worker(&told_queue, LostLease::Cooperate), worker(&aborted, LostLease::Abort)];
    for queue in [&told_queue, &aborted] {
        queue.publish(&"x".into()).id("x").await.unwrap();
        assert_eq!(told.recv().await.unwrap(), "begun");
    }
    let handed = client.bytes("handed").unwrap();
    handed.publish_bytes("x").await.unwrap();
    let lease = handed.take().await.unwrap().remove(0).lease;
    client.panic_engines();
    for running in running {
        assert_eq!(running.await.unwrap(), Err(Error::EnginePanicked));
    }
    let mut heard = [told.recv().await.unwrap(), told.recv().await.unwrap()];
    heard.sort_unstable();
    assert_eq!(heard, ["cancelled", "dropped"]);
    assert_eq!(client.failed().await, Error::EnginePanicked);
    assert_eq!(client.failure(), Some(Error::EnginePanicked));
    let queue = told_queue;
    let answers = [
        queue.publish(&"y".into()).await.err(),
        queue.publish_all([queue.publish(&"y".into())]).await.remove(0).err(),
        queue.take().wait(Duration::from_secs(1)).await.err(),
        client.settle(lease.clone(), Verdict::Ack).await.err(),
        client.extend(lease, Duration::from_secs(1)).await.err(),
        queue.cancel("x").await.err(),
        queue.inspect("x").await.err(),
        queue.stats(0).await.err(),
        client.ping().await.err(),
    ];
    assert_eq!(answers, [const { Some(Error::EnginePanicked) }; 9]);
    client.close().await;
}
