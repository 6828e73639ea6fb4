use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use delayline_tokio::{Client, Context, Error, JobId, Refusal, Worker};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::eventually;
use crate::server::Server;

/// Three times killed and restarted under load: every job that a publisher was told is accepted runs, and what was
/// accepted but not known to be is published once, since it is the same request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_resumes_after_redis_was_killed_and_restarted() {
    let mut server = Server::spawn();
    let client = Client::connect(&server.url()).await.unwrap();
    let ran: Arc<Mutex<BTreeMap<JobId, usize>>> = Arc::default();
    let counted = ran.clone();
    let worker =
        Worker::new(&client).concurrency(20).queue(&client.bytes("orders").unwrap(), move |job: Context| {
            *counted.lock().unwrap().entry(job.id().clone()).or_default() += 1;
            async {}
        });
    let running = tokio::spawn(worker.run());
    let publishing = Arc::new(AtomicBool::new(true));
    let publishers: Vec<_> = (0..4)
        .map(|_| {
            let (queue, publishing) = (client.bytes("orders").unwrap(), publishing.clone());
            tokio::spawn(async move {
                let mut ids = Vec::new();
                while publishing.load(Ordering::SeqCst) {
                    ids.push(queue.publish_bytes("x").delay(Duration::from_millis(5)).await.unwrap().id);
                }
                ids
            })
        })
        .collect();
    let count = || ran.lock().unwrap().len();
    for _ in 0..3 {
        let before = count();
        eventually("jobs run", async || count() > before + 200).await;
        server.kill();
        server.start();
        let back = Instant::now();
        let before = count();
        eventually("jobs run again", async || count() > before + 50).await;
        println!("runs again {:?} after Redis is back", back.elapsed());
    }
    publishing.store(false, Ordering::SeqCst);
    let mut published = Vec::new();
    for publisher in publishers {
        published.extend(publisher.await.unwrap());
    }
    eventually("all ran", async || {
        let ran = ran.lock().unwrap();
        published.iter().all(|id| ran.contains_key(id))
    })
    .await;
    let stats = client.bytes("orders").unwrap().stats(0).await.unwrap();
    assert_eq!(stats.counters.published, published.len() as u64);
    let twice = ran.lock().unwrap().values().filter(|runs| **runs > 1).count();
    println!("{} published, {twice} ran more than once", published.len());
    client.close().await;
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_sent_is_told_in_time() {
    let mut server = Server::spawn();
    let client = Client::builder().backlog(10, 1 << 16).connect(&server.url()).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    queue.publish_bytes("x").await.unwrap();
    server.kill();
    let begun = Instant::now();
    let jobs = (0..50).map(|_| queue.publish_bytes("x").timeout(Duration::from_millis(600)));
    let published = queue.publish_all(jobs).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let not_sent = published.iter().filter(|answer| matches!(answer, Err(Error::NotSent { .. }))).count();
    assert!(not_sent >= 40 && published.iter().all(Result::is_err), "{published:?}");
    let away = client.ping().await.unwrap_err();
    assert!(matches!(away, Error::NotSent { why: Some(Refusal::NotConnected), .. }), "{away:?}");
    let said = away.to_string();
    assert!(
        said.contains(client.address()) && said.contains("refused") && said.contains("check that"),
        "{said}"
    );
    let taken = queue.take().wait(Duration::from_secs(1)).await;
    assert_eq!(taken, Err(away));
    server.start();
    eventually("ready again", async || client.ping().await.is_ok()).await;
    assert!(queue.stats(0).await.unwrap().ready >= 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fails_fast_is_told_that_too_much_waits() {
    let mut server = Server::spawn();
    let client = Client::builder().fail_fast(true).backlog(4, 64 << 20).connect(&server.url()).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    server.kill();
    let body = vec![0u8; 1 << 20];
    let publishing: Vec<_> = (0..100)
        .map(|_| {
            let publish = queue.publish_bytes(body.clone());
            tokio::spawn(async move { publish.await })
        })
        .collect();
    let mut busy = 0;
    eventually("some are refused", async || publishing.iter().any(tokio::task::JoinHandle::is_finished))
        .await;
    server.start();
    for published in publishing {
        busy += usize::from(published.await.unwrap() == Err(Error::Busy));
    }
    assert!((1..100).contains(&busy), "{busy}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_redis_is_asked_again_when_it_wakes() {
    let server = Server::spawn();
    let client = Client::connect(&server.url()).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    queue.publish_bytes("x").await.unwrap();
    server.signal("-STOP");
    let unknown = queue.publish_bytes("y").timeout(Duration::from_millis(300)).await;
    assert_eq!(unknown, Err(Error::Unknown { address: client.address().to_owned() }));
    server.signal("-CONT");
    eventually("both arrived", async || queue.stats(0).await.is_ok_and(|stats| stats.ready == 2)).await;
}

/// A connection that swallows everything, as one whose route has gone, is given up for a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_stays_open_and_silent_is_given_up() {
    let server = Server::spawn();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let (cut, is_cut) = watch::channel(false);
    let proxy = tokio::spawn(forward(listener, server.address(), is_cut));
    let client = Client::connect(&url).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = Worker::new(&client).queue(&client.bytes("orders").unwrap(), move |_: Context| {
        let _ = tell.send(());
        async {}
    });
    let running = tokio::spawn(worker.run());
    queue.publish_bytes("x").await.unwrap();
    told.recv().await.unwrap();

    let begun = Instant::now();
    cut.send(true).unwrap();
    queue.publish_bytes("y").await.unwrap();
    told.recv().await.unwrap();
    println!("runs again {:?} after the connections fell silent", begun.elapsed());
    client.close().await;
    running.await.unwrap().unwrap();
    proxy.abort();
}

/// Carries bytes both ways, but no more for the connections that were there when it was cut.
async fn forward(listener: TcpListener, to: SocketAddr, is_cut: watch::Receiver<bool>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(to).await.unwrap();
        let mut is_cut = is_cut.clone();
        let spared = *is_cut.borrow();
        tokio::spawn(async move {
            let (mut client, mut server) = (client, server);
            let cut = async {
                if spared || is_cut.wait_for(|cut| *cut).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = cut => {}
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => return,
            }
            std::future::pending::<()>().await;
        });
    }
}
