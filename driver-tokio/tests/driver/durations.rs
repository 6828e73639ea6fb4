//! The longest durations there are, wherever one is taken: an answer or an error, never a panic.

use std::time::{Duration, UNIX_EPOCH};

use delayline_tokio::{
    Client, Error, Failure, Lease, QueueConfig, Reason, UnixMs, Verdict, When, Worker, test,
};

use crate::running::{end, run, tell, text};

const MAX: Duration = Duration::MAX;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_duration_is_taken_or_refused_everywhere() {
    let client = Client::builder().timeout(MAX).connect_timeout(MAX).grace(MAX).connect("memory://").await;
    let client = client.unwrap();
    let queue = client.queue::<String>("mails").unwrap();
    let publish = |id: &str| queue.publish(&text("x")).id(id.to_owned());

    let refused = |what: &str, error: Option<Error>| {
        assert!(matches!(error, Some(Error::Invalid(_))), "{what}: {error:?}");
    };
    refused("delay", publish("a").delay(MAX).await.err());
    refused("when", publish("a").when(When::In(MAX)).await.err());
    refused("ttl", publish("a").ttl(MAX).await.err());
    refused("lost delay", publish("a").lost_delay(MAX).await.err());
    publish("b").timeout(MAX).await.unwrap();
    refused("wait", queue.take().wait(MAX).await.err());
    refused("lease", queue.take().lease(MAX).await.err());
    let job = queue.take().wait(Duration::from_secs(300)).await.unwrap().remove(0);
    refused("extension", client.extend(job.lease.clone(), MAX).await.err());
    refused("reschedule", queue.reschedule("b", MAX).await.err());
    let verdicts = [
        Failure::snooze(MAX).verdict(),
        Failure::retry_after(MAX, "no").verdict(),
        Verdict::Nack { after_ms: Some(u64::MAX), reason: Reason::new("no") },
    ];
    for verdict in verdicts {
        refused("verdict", client.settle(Lease::clone(&job.lease), verdict).await.err());
    }
    let config = QueueConfig { retention_ms: Some(u64::MAX), ..QueueConfig::default() };
    refused("retention", queue.configure(config, None).await.err());
    assert_eq!(
        When::from(delayline_core::Due::At(UnixMs(u64::MAX))),
        When::At(UNIX_EPOCH + from_ms(u64::MAX))
    );
    refused("far future", publish("c").at(UNIX_EPOCH + from_ms(u64::MAX)).await.err());
    refused("worker's lease", Worker::new(&client).lease(MAX).queue(&queue, async || {}).run().await.err());

    let (teller, mut told) = tell();
    let worker = Worker::new(&client).grace(MAX).queue(&queue, move || teller.then(()));
    client.settle(job.lease, Verdict::Release).await.unwrap();
    let running = run(worker);
    told.recv().await.unwrap();
    end(client, running).await;
}

#[tokio::test]
#[should_panic(expected = "at most 1,000 years")]
async fn a_test_clock_that_is_told_to_pass_for_ever_says_so() {
    let (_client, time) = test();
    let _ = time.patience(MAX).advance(MAX).await;
}

fn from_ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
