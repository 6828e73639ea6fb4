//! A Redis that loses the deployment under live clients.

use std::time::{Duration, Instant};

use delayline_tokio::{Client, Error, Worker};

use crate::eventually;
use crate::server::Server;

const PUMP_LEASE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_that_is_gone_is_written_again_and_another_one_ends_workers_and_clients() {
    let server = Server::spawn();
    let url = server.url();
    let mut redis = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
    let client = Client::connect(&format!("{url}?shards=4")).await.unwrap();
    let orders = client.bytes("orders").unwrap();
    let mut worker = tokio::spawn(Worker::new(&client).queue(&orders, async || {}).run());

    let shards = |redis: &mut redis::Connection| -> Option<String> {
        redis::cmd("HGET").arg(&["{dl}:config", "shards"]).query(redis).unwrap()
    };
    eventually("the worker tends all shards", async || {
        let leases: Vec<String> = redis::cmd("KEYS").arg("*:lease").query(&mut redis).unwrap();
        leases.len() == 4
    })
    .await;
    redis::cmd("DEL").arg("{dl}:config").exec(&mut redis).unwrap();
    let begun = Instant::now();
    while shards(&mut redis).is_none() {
        assert!(begun.elapsed() < PUMP_LEASE + Duration::from_secs(5), "nobody wrote the config again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("written again after {:?}", begun.elapsed());
    assert_eq!(shards(&mut redis).as_deref(), Some("4"));
    orders.publish_bytes("x").await.unwrap();
    client.ping().await.unwrap();

    redis::cmd("FLUSHALL").exec(&mut redis).unwrap();
    let other = Client::connect(&format!("{url}?shards=2")).await.unwrap();
    let begun = Instant::now();
    let ended = tokio::time::timeout(PUMP_LEASE + Duration::from_secs(5), &mut worker).await;
    println!("the worker ended after {:?}", begun.elapsed());
    let is_other = |error: &Error| matches!(error, Error::ShardsMismatch { wanted: 4, found: 2, .. });
    let error = ended.expect("the worker goes on").unwrap().unwrap_err();
    assert!(is_other(&error), "{error}");

    let error = client.ping().await.unwrap_err();
    assert!(is_other(&error), "{error}");
    eventually("every call fails", async || {
        orders.publish_bytes("x").await.is_err_and(|error| is_other(&error))
            && orders.take().await.is_err_and(|error| is_other(&error))
            && orders.stats(0).await.is_err_and(|error| is_other(&error))
    })
    .await;
    client.close().await;
    other.bytes("orders").unwrap().publish_bytes("y").await.unwrap();
    assert_eq!(other.bytes("orders").unwrap().take().await.unwrap().len(), 1);
}

/// Nobody waits in what was emptied, so that nobody is woken there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_learns_of_a_job_after_a_flush_within_half_a_pump_lease() {
    let server = Server::spawn();
    let client = Client::connect(&server.url()).await.unwrap();
    let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::new(&client).queue(&client.bytes("orders").unwrap(), move || {
        let _ = ran.send(());
        async {}
    });
    let running = tokio::spawn(worker.run());
    let publisher = Client::connect(&server.url()).await.unwrap();
    let orders = publisher.bytes("orders").unwrap();
    orders.publish_bytes("before").await.unwrap();
    eventually("the worker waits", async || orders.stats(0).await.unwrap().counters.acked == 1).await;
    runs.recv().await.unwrap();

    let mut redis = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("FLUSHALL").exec(&mut redis).unwrap();
    let flushed = Instant::now();
    orders.publish_bytes("after").await.unwrap();
    let learned = tokio::time::timeout(PUMP_LEASE / 2 + Duration::from_secs(5), runs.recv()).await;
    println!("the job ran {:?} after the flush", flushed.elapsed());
    learned.expect("the worker knows nothing of the job").unwrap();
    client.close().await;
    running.await.unwrap().unwrap();
}
