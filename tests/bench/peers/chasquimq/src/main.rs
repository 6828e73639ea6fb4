//! A burst by ChasquiMQ: see ../../README.md for what it is told and what it says. `--events` leaves its events on, as they
//! are by default.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chasquimq::{Consumer, ConsumerConfig, HandlerError, Job, Producer, ProducerConfig};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const BATCH: usize = 500;
const QUEUE: &str = "burst";
/// How long what the consumer does first takes.
const BEGINNING: Duration = Duration::from_millis(300);

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    order: usize,
    text: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, jobs, slots, lead, rest @ ..] = &arguments[..] else {
        return Err("URL JOBS SLOTS LEAD_MS".into());
    };
    let (jobs, slots, lead): (usize, usize, u64) = (jobs.parse()?, slots.parse()?, lead.parse()?);
    let producer_config = ProducerConfig { queue_name: QUEUE.into(), ..ProducerConfig::default() };
    let producer = Producer::<Order>::connect(url, producer_config).await?;
    let consumer_config = ConsumerConfig {
        queue_name: QUEUE.into(),
        concurrency: slots,
        events_enabled: rest.iter().any(|word| word == "--events"),
        run_scheduler: false,
        ..ConsumerConfig::default()
    };
    let consumer = Consumer::<Order>::new(url, consumer_config);
    let (count, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, finish) = (count.clone(), finished.clone());
    tokio::spawn(async move {
        let handler = move |_: Job<Order>| {
            if counted.fetch_add(1, Ordering::Relaxed) + 1 == jobs {
                finish.notify_one();
            }
            async { Ok::<Bytes, HandlerError>(Bytes::new()) }
        };
        if let Err(why) = consumer.run(handler, CancellationToken::new()).await {
            eprintln!("chasquimq: {why}");
        }
    });
    tokio::time::sleep(BEGINNING).await;
    println!("ready");

    let begun = Instant::now();
    let due = begun + Duration::from_millis(lead);
    let text = "x".repeat(70);
    for first in (0..jobs).step_by(BATCH) {
        let orders = (first..jobs.min(first + BATCH)).map(|order| Order { order, text: text.clone() });
        producer.add_in_bulk(due.saturating_duration_since(Instant::now()), orders.collect()).await?;
    }
    let published = Instant::now();
    println!("published {} {}", (published - begun).as_secs_f64(), due > published);
    finished.notified().await;
    println!("done {}", due.elapsed().as_secs_f64());
    Ok(())
}
