use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use delayline_tokio::{Client, Context, Error, JobId, Refusal, Worker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::server::{Server, admin};
use crate::{eventually, said};

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
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
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
    // The take's request may come to Redis now: what it is given goes back, since nobody waits for it any more.
    eventually("the job is there", async || queue.stats(0).await.unwrap().ready >= 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fails_fast_is_told_that_too_much_waits() {
    let mut server = Server::spawn();
    let client = Client::builder().fail_fast(true).backlog(4, 64 << 20).connect(&server.url()).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    server.kill();
    let publishing: Vec<_> = (0..100)
        .map(|number| {
            let publish = queue.publish_bytes(vec![0u8; if number % 2 == 0 { 1 } else { 1 << 20 }]);
            tokio::spawn(async move { publish.await })
        })
        .collect();
    let refused = || publishing.iter().filter(|publishing| publishing.is_finished()).count();
    eventually("all but the backlog are refused", async || refused() == 96).await;
    server.start();
    let (mut busy, mut accepted) = (0, 0);
    for published in publishing {
        match published.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(Error::Busy) => busy += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((busy, accepted), (96, 4));
    assert_eq!(queue.stats(0).await.unwrap().ready, 4);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_full_refuses_publishers_and_still_drains() {
    let server = Server::with(&["--maxmemory", "64mb"]);
    let client = Client::connect(&server.url()).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    let jobs = (0..200).map(|_| queue.publish_bytes(vec![7; 4096]));
    assert!(queue.publish_all(jobs).await.iter().all(Result::is_ok));
    admin(&server, &["CONFIG", "SET", "maxmemory", "1mb"]).await;
    let begun = Instant::now();
    let full = queue.publish_bytes("x").timeout(Duration::from_secs(60)).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(matches!(full, Error::NotSent { why: Some(Refusal::OutOfMemory), .. }), "{full:?}");
    let said = full.to_string();
    assert!(said.contains(&server.url()) && said.contains("raise maxmemory"), "{said}");
    let running = tokio::spawn(Worker::new(&client).queue(&queue, async || {}).run());
    eventually("all were consumed", async || queue.stats(0).await.unwrap().counters.acked == 200).await;
    admin(&server, &["CONFIG", "SET", "maxmemory", "64mb"]).await;
    queue.publish_bytes("y").await.unwrap();
    eventually("it goes on", async || queue.stats(0).await.unwrap().counters.acked == 201).await;
    client.close().await;
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_that_are_taken_away_and_given_back_need_nobody() {
    let server = Server::with(&["--user", "ann", "on", ">s3cret", "~*", "&*", "+@all"]);
    let client = Client::connect(&server.url().replace("127", "ann:s3cret@127")).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    let running = tokio::spawn(Worker::new(&client).queue(&queue, async || {}).run());
    queue.publish_bytes("x").await.unwrap();
    admin(&server, &["ACL", "SETUSER", "ann", "-evalsha", "-eval"]).await;
    let begun = Instant::now();
    let denied = queue.publish_bytes("y").timeout(Duration::from_millis(700)).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(matches!(denied, Error::NotSent { why: Some(Refusal::Denied), .. }), "{denied:?}");
    let said = denied.to_string();
    assert!(said.contains(&server.url()) && said.contains("ACL") && !said.contains("s3cret"), "{said}");
    admin(&server, &["ACL", "SETUSER", "ann", "+evalsha", "+eval"]).await;
    queue.publish_bytes("z").await.unwrap();
    eventually("both ran", async || queue.stats(0).await.unwrap().counters.acked == 2).await;
    client.close().await;
    running.await.unwrap().unwrap();
}

/// Every byte takes its time in both directions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_redis_costs_time_and_no_more() {
    const EACH_WAY: Duration = Duration::from_millis(250);
    let server = Server::spawn();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let proxy = tokio::spawn(slow(listener, server.address(), EACH_WAY));
    let client = Client::connect(&url).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    let runs = Arc::new(Mutex::new(BTreeMap::new()));
    let counted = runs.clone();
    let worker = Worker::new(&client).lease(Duration::from_secs(6)).queue(&queue, move |job: Context| {
        *counted.lock().unwrap().entry(job.id().clone()).or_insert(0) += 1;
        tokio::time::sleep(Duration::from_secs(7))
    });
    let running = tokio::spawn(worker.run());
    let jobs = (0..20).map(|_| queue.publish_bytes("x"));
    assert!(queue.publish_all(jobs).await.iter().all(Result::is_ok));
    eventually("all ran", async || queue.stats(0).await.unwrap().counters.acked == 20).await;
    let stats = queue.stats(0).await.unwrap();
    assert_eq!((stats.counters.ended, stats.counters.granted), (0, 20), "the leases were renewed in time");
    assert!(runs.lock().unwrap().values().all(|runs| *runs == 1));
    client.close().await;
    running.await.unwrap().unwrap();
    proxy.abort();
}

pub(crate) async fn slow(listener: TcpListener, to: SocketAddr, each_way: Duration) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(to).await.unwrap();
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::spawn(trickle(from_client, to_server, each_way));
        tokio::spawn(trickle(from_server, to_client, each_way));
    }
}

async fn trickle(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, each_way: Duration) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        tokio::time::sleep(each_way).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// A connection that swallows everything, as one whose route has gone, is given up for a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_stays_open_and_silent_is_given_up() {
    let _ = said();
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
    eventually("the outage and its end are told", async || told_of(&url).len() >= 2).await;
    let told = told_of(&url);
    assert!(told[0].contains("cannot be reached") && told[0].contains("no answer"), "{told:?}");
    assert!(told[1].contains("reached again") && told.len() == 2, "{told:?}");
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

/// What was logged of contact with this address.
fn told_of(url: &str) -> Vec<String> {
    let said = said()();
    let about = said.lines().filter(|line| line.contains(url.trim_end_matches('/')));
    about
        .filter(|line| line.contains("cannot be reached") || line.contains("reached again"))
        .map(str::to_owned)
        .collect()
}

/// Waits until as many lines tell of contact with this address.
async fn tells(url: &str, lines: usize) {
    let begun = Instant::now();
    while told_of(url).len() != lines {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{lines} lines were to be told: {:?}",
            told_of(url)
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Two outages, each told once when it begins and once when it ends, however many attempts and connections there were;
/// a worker that has nothing to do tells it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_told_once_and_so_is_its_end() {
    let _ = said();
    let mut server = Server::spawn();
    let url = server.url();
    let client = Client::connect(&url).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    let running = tokio::spawn(Worker::new(&client).queue(&queue, async || {}).run());
    queue.publish_bytes("x").await.unwrap();
    for outage in [1, 2] {
        server.kill();
        tells(&url, 2 * outage - 1).await;
        let refused = queue.publish_bytes("x").timeout(Duration::from_secs(1)).await;
        assert!(matches!(refused, Err(Error::NotSent { .. } | Error::Unknown { .. })), "{refused:?}");
        server.start();
        tells(&url, 2 * outage).await;
        queue.publish_bytes("x").await.unwrap();
    }
    let told = told_of(&url);
    for (outage, lines) in told.chunks(2).enumerate() {
        // Which error comes first, of the connections that end or of those that are refused, is chance.
        let why = ["refused", "reset", "broken pipe", "closed", "end of file"];
        let is_told = why.iter().any(|why| lines[0].to_lowercase().contains(why));
        assert!(lines[0].contains("WARN") && is_told, "{outage}: {told:?}");
        assert!(lines[1].contains("INFO"), "{outage}: {told:?}");
    }
    assert_eq!(told.len(), 4, "{told:?}");
    client.close().await;
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_refuses_is_told_of_once_a_minute() {
    let said = said();
    let server = Server::with(&["--maxmemory", "64mb"]);
    let client = Client::connect(&server.url()).await.unwrap();
    let queue = client.bytes("orders").unwrap();
    queue.publish_bytes("x").await.unwrap();
    admin(&server, &["CONFIG", "SET", "maxmemory", "1mb"]).await;
    for _ in 0..5 {
        let full = queue.publish_bytes("x").timeout(Duration::from_millis(300)).await;
        assert!(matches!(full, Err(Error::NotSent { why: Some(Refusal::OutOfMemory), .. })), "{full:?}");
    }
    let said = said();
    let address = server.url();
    let lines: Vec<_> =
        said.lines().filter(|line| line.contains(&address) && line.contains("out of memory")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN"), "{lines:?}");
}
