//! What a recorder of flights keeps, replayed in this process.

use std::io;
use std::time::{Duration, Instant};

use delayline_tokio::{Attempt, Client, FlightRecorder, JobId, QueueName, Replay, Step, Worker};

use crate::eventually;
use crate::running::{end, run};

const FEW: Duration = Duration::from_millis(20);

on_both_stores! {
    a_worker_s_run_is_replayed_decision_by_decision
}

/// The steps of a recording, in which every decision is the recorded one.
fn replayed(recording: &[u8]) -> Vec<Step> {
    let steps: Vec<Step> = Replay::open(recording).unwrap().map(|step| step.unwrap()).collect();
    assert!(steps.iter().all(|step| step.divergence.is_none()), "{steps:#?}");
    steps
}

/// What concerns a job: what the engine hears and decides, in this order.
fn story(steps: &[Step], queue: &str, id: &str) -> Vec<String> {
    let (queue, id): (QueueName, JobId) = (queue.parse().unwrap(), id.parse().unwrap());
    let lines = steps.iter().flat_map(|step| step.heard.iter().chain(&step.decided));
    lines.filter(|line| line.about.concerns(&queue, &id)).map(|line| line.words.clone()).collect()
}

#[track_caller]
fn has_in_order(story: &[String], parts: &[&str]) {
    let mut rest = story.iter();
    for part in parts {
        assert!(rest.any(|line| line.contains(part)), "{part:?} does not come in its place in {story:#?}");
    }
}

async fn a_worker_s_run_is_replayed_decision_by_decision(client: Client) {
    async fn fails_first(Attempt(attempt): Attempt) -> io::Result<()> {
        if attempt == 1 { Err(io::Error::other("no such host")) } else { Ok(()) }
    }
    let orders = client.queue::<String>("orders").unwrap();
    let body = &"a body that is in no recording".to_owned();
    for number in 0..20 {
        let publish = orders.publish(body).id(format!("order:{number}")).header("tenant", "acme-secret");
        publish.backoff("fixed 10ms".parse().unwrap()).delay(FEW).await.unwrap();
    }
    let recorder = FlightRecorder::new(1 << 20);
    let worker = Worker::new(&client).queue(&orders, fails_first).flight_recorder(recorder.clone());
    let running = run(worker);
    eventually("all jobs are done", async || orders.stats(0).await.unwrap().counters.acked == 20).await;
    end(client, running).await;

    let path = std::env::temp_dir().join(format!("delayline-{}-{}.recording", std::process::id(), line!()));
    recorder.save(&path).unwrap();
    let saved = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let steps = replayed(&saved);
    has_in_order(
        &story(&steps, "orders", "order:17"),
        &[
            "granted attempt 1 of",
            "run attempt 1 of",
            "the handler says nack, because \"no such host\"",
            "sends nack, due again after",
            "nack done",
            "the handler's verdict is done",
            "it failed before: \"no such host\"",
            "run attempt 2 of",
            "the handler says ack",
            "sends ack",
            "ack done",
        ],
    );
    let has = |text: &str| saved.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("order:17") && has("tenant") && !has("a body") && !has("acme-secret"));
}

/// Nothing is asserted of time: this prints what recording costs. What it holds is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_recording_costs() {
    const JOBS: u32 = 20_000;
    let mut took = Vec::new();
    for recorder in [None, Some(FlightRecorder::new(1 << 20)), None, Some(FlightRecorder::new(1 << 20))] {
        let builder = Client::builder();
        let builder = match &recorder {
            Some(recorder) => builder.flight_recorder(recorder.clone()),
            None => builder,
        };
        let client = builder.connect("memory://").await.unwrap();
        let queue = client.queue::<String>("costs").unwrap();
        let begun = Instant::now();
        for some in 0..JOBS / 500 {
            let body = format!("{some} {}", "x".repeat(200));
            let publishes = (0..500).map(|_| queue.publish(&body));
            for published in queue.publish_all(publishes).await {
                published.unwrap();
            }
        }
        took.push(begun.elapsed());
        client.close().await;
        if let Some(recorder) = recorder {
            let recording = recorder.recording();
            assert!(recording.len() <= (1 << 20) + 64, "{}", recording.len());
            let steps = replayed(&recording);
            println!("a MiB holds {} steps", steps.len());
        }
    }
    let (without, with) = (took[0].min(took[2]), took[1].min(took[3]));
    println!(
        "{JOBS} jobs published in {without:?}, recorded in {with:?}: {:.2} times",
        with.as_secs_f64() / without.as_secs_f64()
    );
}
