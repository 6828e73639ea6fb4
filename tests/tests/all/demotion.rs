//! A primary becomes a replica, and its address leads to the new primary, while all connections to it stay.

use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use clap::Parser;
use delayline::{Cli, Command, Door, Server};
use delayline_tests::shim::Shim;
use delayline_tests::{RedisServer, block_on, until};
use delayline_tokio::{Client, Verdict, Worker};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};

/// How long publishers and consumers may stand still.
const OUTAGE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(20);

/// Two servers, the second a replica of the first, and the address that both share.
struct Pair {
    first: RedisServer,
    second: RedisServer,
    shim: Shim,
}

impl Pair {
    fn start() -> Pair {
        let (first, second) = (RedisServer::plain(), RedisServer::plain());
        follow(&second, &first);
        let shim = Shim::start(first.port(), 1);
        Pair { first, second, shim }
    }

    /// The roles change, once the replica has all; connections stay; new ones lead to the new primary.
    fn fail_over(&self) {
        let port = self.second.port().to_string();
        // It is refused until the primary has heard of its replica.
        until("a new primary", PATIENCE, || {
            tell(&self.first, &["FAILOVER", "TO", "127.0.0.1", &port]);
            says(&self.second, "role:master")
        });
        self.shim.lead_to(self.second.port());
    }
}

fn tell(server: &RedisServer, said: &[&str]) {
    server.connect().call(said).expect("an answer");
}

fn follow(replica: &RedisServer, primary: &RedisServer) {
    tell(replica, &["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    until("a replica in step", PATIENCE, || says(replica, "master_link_status:up"));
}

/// Whether the server says so of its replication.
fn says(server: &RedisServer, what: &str) -> Option<()> {
    let info = server.connect().call(&["INFO", "replication"]).ok()?;
    format!("{info:?}").contains(what).then_some(())
}

#[test]
fn a_library_goes_on_at_the_new_primary() {
    let pair = Pair::start();
    block_on(async {
        let client = Client::connect(&pair.shim.url()).await.expect("a client");
        let queue = client.bytes("mails").expect("a name");
        let cycle = async |id: &str| {
            queue.publish_bytes("x").id(id).await.expect("published");
            let job = queue.take().wait(OUTAGE).await.expect("an answer").pop().expect("a job");
            assert_eq!(job.lease.id.as_str(), id);
            client.settle(job.lease, Verdict::Ack).await.expect("acknowledged");
        };
        cycle("before").await;
        let connections = pair.shim.tally().connections;
        pair.fail_over();
        let begun = Instant::now();
        timeout(OUTAGE, cycle("after")).await.expect("it goes on");
        println!("the library went on after {:?}", begun.elapsed());
        let made = pair.shim.tally().connections - connections;
        assert!((1..=4).contains(&made), "{made} connections were made");
        assert_eq!(tell_stats(&pair).await, 2);
        client.close().await;
    });
}

/// How many jobs the new primary says were acknowledged.
async fn tell_stats(pair: &Pair) -> u64 {
    let direct = Client::connect(&pair.second.url()).await.expect("a client");
    direct.bytes("mails").expect("a name").stats(0).await.expect("statistics").counters.acked
}

/// The worker is alone in its process, as it were: nobody there publishes.
#[test]
fn a_worker_goes_on_at_the_new_primary() {
    let pair = Pair::start();
    block_on(async {
        let client = Client::connect(&pair.shim.url()).await.expect("a client");
        let queue = client.bytes("mails").expect("a name");
        let (ran, mut runs) = unbounded_channel();
        let worker = Worker::new(&client).queue(&queue, move || {
            let _ = ran.send(());
            async {}
        });
        let working = tokio::spawn(worker.run());
        let mut publish = async |server: &RedisServer| {
            let direct = Client::connect(&server.url()).await.expect("a client");
            direct.bytes("mails").expect("a name").publish_bytes("x").await.expect("published");
            timeout(OUTAGE, runs.recv()).await.expect("it goes on")
        };
        publish(&pair.first).await;
        pair.fail_over();
        let begun = Instant::now();
        publish(&pair.second).await;
        println!("the worker went on after {:?}", begun.elapsed());
        client.close().await;
        working.await.expect("no panic").expect("a worker that ran");
    });
}

#[test]
fn a_service_goes_on_at_the_new_primary() {
    let pair = Pair::start();
    block_on(async {
        let server = bind(&pair.shim.url()).await;
        let door = server.door();
        let cycle = async || {
            let (published, said) = ask(&door, "/v1/queues/mails/jobs", "1").await;
            if published != 201 {
                return Err(said);
            }
            let (taken, said) = ask(&door, "/v1/take?queue=mails&wait=1s", "").await;
            if taken == 200 { Ok(()) } else { Err(said) }
        };
        cycle().await.expect("a primary");
        pair.fail_over();
        let begun = Instant::now();
        while let Err(said) = cycle().await {
            assert!(begun.elapsed() < OUTAGE, "{said}");
            sleep(Duration::from_millis(10)).await;
        }
        println!("the service went on after {:?}", begun.elapsed());
    });
}

/// The address goes on leading to the replica for a while: it is dialled again and again, but never fast.
#[test]
fn a_replica_is_not_dialled_without_pause() {
    let pair = Pair::start();
    block_on(async {
        let client = Client::connect(&pair.shim.url()).await.expect("a client");
        let queues: Vec<_> =
            (0..20).map(|number| client.bytes(format!("mails-{number}")).expect("a name")).collect();
        let worker =
            queues.iter().fold(Worker::new(&client), |worker, queue| worker.queue(queue, async || {}));
        let working = tokio::spawn(worker.run());
        queues[0].publish_bytes("x").await.expect("published");
        tell(&pair.first, &["REPLICAOF", "127.0.0.1", &pair.second.port().to_string()]);
        let (connections, begun) = (pair.shim.tally().connections, Instant::now());
        let mut said = String::new();
        while begun.elapsed() < Duration::from_secs(6) {
            let jobs =
                queues.iter().map(|queue| queue.publish_bytes("x").timeout(Duration::from_millis(500)));
            for refused in queues[0].publish_all(jobs).await {
                said = refused.expect_err("a replica takes no jobs").to_string();
            }
        }
        assert!(said.contains("it is a replica") || said.contains("no connection"), "{said}");
        let made = pair.shim.tally().connections - connections;
        // At most 9 times, each time the commands and the wake-ups of the client and of the worker.
        assert!((4..=36).contains(&made), "{made} connections were made");
        tell(&pair.second, &["REPLICAOF", "NO", "ONE"]);
        pair.shim.lead_to(pair.second.port());
        let begun = Instant::now();
        timeout(OUTAGE, queues[0].publish_bytes("x")).await.expect("it goes on").expect("published");
        println!(
            "{made} connections in 6 s; published {:?} after the address led elsewhere",
            begun.elapsed()
        );
        client.close().await;
        working.await.expect("no panic").expect("a worker that ran");
    });
}

#[test]
fn a_service_whose_engine_panics_fails_its_probe_and_ends_with_an_error() {
    block_on(async {
        let server = bind("memory://").await;
        let (door, client) = (server.door(), server.client().clone());
        let serving = tokio::spawn(server.run_until(std::future::pending()));
        client.panic_engines();
        let failure =
            timeout(PATIENCE, serving).await.expect("it ends").expect("no panic").expect_err("a panic");
        assert!(failure.to_string().contains("panicked"), "{failure}");
        assert_eq!(failure.exit_code(), 1);
        let probe =
            Request::get("/healthz").header("host", "127.0.0.1").body(Body::empty()).expect("a request");
        assert_eq!(door.answer(probe).await.status(), 503);
    });
}

async fn bind(redis: &str) -> Server {
    let words = ["delayline", "--redis", redis, "serve", "--listen=127.0.0.1:0", "--timeout=2s"];
    let Cli { command: Command::Serve(serve), redis, .. } = Cli::parse_from(words) else {
        unreachable!("the command is serve");
    };
    serve.bind(&redis).await.unwrap_or_else(|failure| panic!("{failure}"))
}

async fn ask(door: &Door, path: &str, body: &'static str) -> (u16, String) {
    let request = Request::post(path).header("host", "127.0.0.1").body(Body::from(body)).expect("a request");
    let response = door.answer(request).await;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.expect("a whole body");
    (status, String::from_utf8_lossy(&body).into_owned())
}
