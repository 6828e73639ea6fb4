use std::time::{Duration, Instant};

use delayline_tokio::{AddressError, Client, Error, Forward, QueueConfig, SettleOutcome, Shards, Verdict};

use crate::server::{Server, admin, free_port};
use crate::{eventually, said};

const ANN: [&str; 7] = ["--user", "ann", "on", ">s3cret", "~*", "&*", "+@all"];

#[tokio::test]
async fn shards_are_fixed_by_the_first_and_adopted_by_who_asks_for_none() {
    let server = Server::spawn();
    let url = server.url();
    let first = Client::connect(&format!("{url}?shards=4")).await.unwrap();
    first.bytes("orders").unwrap().publish_bytes("x").await.unwrap();
    let adopting = Client::connect(&url).await.unwrap();
    assert_eq!(adopting.shards(), Shards::new(4).unwrap());
    assert_eq!(adopting.bytes("orders").unwrap().take().await.unwrap().len(), 1);
    let refused = Client::builder().shards(8).connect(&url).await.unwrap_err();
    assert!(matches!(refused, Error::ShardsMismatch { wanted: 8, found: 4, .. }), "{refused}");
    let other = Client::connect(&format!("{url}?shards=8&prefix=other")).await.unwrap();
    assert_eq!((other.shards().count(), other.prefix().as_str()), (8, "other"));
    assert_eq!(other.bytes("orders").unwrap().take().await.unwrap(), []);
}

#[cfg(feature = "memory")]
#[tokio::test]
async fn a_named_memory_is_shared_and_an_unnamed_one_is_not() {
    let connect = async |url: &str| Client::connect(url).await.unwrap();
    let (one, two) = (connect("memory://shared?shards=3").await, connect("memory://shared").await);
    let apart = (connect("memory://").await, connect("memory://").await);
    assert!(one.is_memory());
    assert_eq!(two.shards().count(), 3);
    for client in [&one, &apart.0] {
        client.bytes("orders").unwrap().publish_bytes("x").await.unwrap();
    }
    assert_eq!(two.bytes("orders").unwrap().take().await.unwrap().len(), 1);
    assert_eq!(apart.1.bytes("orders").unwrap().take().await.unwrap().len(), 0);
    let refused = Client::connect("memory://shared?shards=2").await.unwrap_err();
    assert!(matches!(refused, Error::ShardsMismatch { wanted: 2, found: 3, .. }), "{refused}");
}

#[tokio::test]
async fn an_acl_user_a_database_a_socket_and_a_client_of_the_users_work() {
    let server = Server::with(&ANN);
    let port_url = server.url();
    let url = port_url.replace("127", "ann:s3cret@127") + "5";
    let client = Client::connect(&url).await.unwrap();
    client.bytes("orders").unwrap().publish_bytes("x").await.unwrap();
    assert_eq!(client.address(), format!("{port_url}5"));
    let elsewhere = Client::connect(&port_url).await.unwrap();
    assert_eq!(elsewhere.bytes("orders").unwrap().take().await.unwrap(), []);
    let socket = format!("redis+unix://{}?db=5&user=ann&pass=s3cret", server.socket());
    let by_socket = Client::connect(&socket).await.unwrap();
    let job = by_socket.bytes("orders").unwrap().take().await.unwrap().remove(0);
    let own = redis_client(&(url.clone() + "?protocol=resp3"));
    let by_own = Client::from_redis(own).await.unwrap();
    by_own.settle(job.lease, delayline_tokio::Verdict::Ack).await.unwrap();
    by_own.bytes("orders").unwrap().publish_bytes("y").delay(Duration::from_millis(100)).await.unwrap();
    let waited = by_own.bytes("orders").unwrap().take().wait(Duration::from_secs(20)).await.unwrap();
    assert_eq!(waited.len(), 1);
    assert!(by_own.redis_version().unwrap() >= (6, 2, 0));
}

fn redis_client(url: &str) -> delayline_tokio::redis::Client {
    delayline_tokio::redis::Client::open(url).unwrap()
}

#[tokio::test]
async fn what_keeps_us_from_connecting_is_said_without_the_password() {
    let mut server = Server::with(&ANN);
    let url = server.url().replace("127", "ann:hunter2@127");
    let builder = || Client::builder().connect_timeout(Duration::from_millis(500));
    let denied = builder().connect(&url).await.unwrap_err();
    server.kill();
    let down = builder().connect(&url).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied:?}");
    assert!(matches!(down, Error::Unreachable { .. }), "{down:?}");
    for error in [&denied, &down] {
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        assert!(error.to_string().starts_with(&server.url()), "{error}");
    }
    assert!(denied.to_string().contains("authentication"), "{denied}");
    assert!(down.to_string().contains("refused"), "{down}");
    let missing = builder().connect("rediss://:hunter2@localhost").await.unwrap_err();
    if cfg!(not(feature = "tls")) {
        let feature = AddressError::Feature { scheme: "rediss", feature: "tls" };
        assert_eq!(missing, Error::Address(feature));
    }
    assert!(!missing.to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_redis_that_is_not_there_yet_is_waited_for_in_words() {
    let said = said();
    let mut server = Server::with(&ANN);
    let url = server.url().replace("127", "ann:s3cret@127");
    server.kill();
    let connecting = tokio::spawn(async move { Client::connect(&url).await });
    let address = server.url();
    let waits =
        |said: &str| said.lines().any(|line| line.contains("cannot be reached") && line.contains(&address));
    eventually("it says that it waits", async || waits(&said())).await;
    assert!(!connecting.is_finished());
    server.start();
    let client = connecting.await.unwrap().unwrap();
    client.bytes("orders").unwrap().publish_bytes("x").await.unwrap();
    let said = said();
    let again = |line: &str| line.contains("reached again") && line.contains(&address);
    assert!(said.lines().any(again), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[tokio::test]
async fn who_does_not_wait_is_told_at_once() {
    let mut server = Server::with(&ANN);
    let begun = Instant::now();
    let wrong = Client::connect(&server.url().replace("127", "ann:hunter2@127")).await.unwrap_err();
    assert!(wrong.to_string().contains("check user, password and ACL"), "{wrong}");
    let unknown = Client::connect(&server.url().replace("127", "bob:s3cret@127")).await.unwrap_err();
    assert!(matches!(unknown, Error::Denied { .. }), "{unknown}");
    server.kill();
    let builder = Client::builder().connect_timeout(Duration::ZERO);
    let down = builder.connect(&server.url()).await.unwrap_err();
    assert!(down.to_string().contains("refused"), "{down}");
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_user_that_may_not_run_scripts_is_told_so() {
    let server = Server::with(&["--user", "ann", "on", ">s3cret", "~*", "&*", "+@all", "-eval", "-evalsha"]);
    let denied = Client::connect(&server.url().replace("127", "ann:s3cret@127")).await.unwrap_err();
    assert!(denied.to_string().contains("check user, password and ACL"), "{denied}");
    assert!(denied.to_string().starts_with(&server.url()), "{denied}");
}

#[tokio::test]
async fn a_redis_that_evicts_is_refused_by_the_strict() {
    let server = Server::with(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    Client::connect(&server.url()).await.unwrap();
    let refused = Client::builder().strict(true).connect(&server.url()).await.unwrap_err();
    assert!(matches!(&refused, Error::Evicts { policy, .. } if policy == "allkeys-lru"), "{refused}");
}

#[tokio::test]
async fn a_user_without_info_is_let_in() {
    let server = Server::with(&["--user", "ann", "on", "nopass", "~*", "&*", "+@all", "-info"]);
    let client = Client::connect(&server.url().replace("127", "ann:x@127")).await.unwrap();
    assert_eq!(client.redis_version(), None);
    client.bytes("orders").unwrap().publish_bytes("x").await.unwrap();
}

/// Connections are made, and nothing ever answers: as behind a firewall that drops what it does not like.
#[tokio::test]
async fn a_black_hole_is_waited_for_as_long_as_was_said() {
    let hole = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/", hole.local_addr().unwrap());
    let begun = Instant::now();
    let refused = Client::builder().connect_timeout(Duration::from_secs(1)).connect(&url).await.unwrap_err();
    let took = begun.elapsed();
    assert!(matches!(&refused, Error::Unreachable { .. }), "{refused}");
    assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_redis_that_is_missing_is_an_error_after_ten_seconds() {
    let url = format!("redis://127.0.0.1:{}/", free_port());
    let connecting = tokio::time::timeout(Duration::from_secs(30), Client::connect(&url));
    let begun = Instant::now();
    let missing = connecting.await.expect("it does not wait for ever").unwrap_err();
    assert!(begun.elapsed() >= Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(matches!(missing, Error::Unreachable { .. }), "{missing}");
    assert_eq!(format!("{missing:?}"), missing.to_string(), "as `main` shows it");
}

/// Nodes of a Redis Cluster that share the slots, each of which a client is led to: never a queue of which some shards
/// cannot be reached, never a wait for what does not pass.
#[tokio::test]
async fn a_redis_cluster_is_refused_in_words() {
    let nodes: Vec<Server> = (0..2).map(|_| cluster_node()).collect();
    let (address, bus) = (nodes[1].address(), nodes[1].option("--cluster-port").to_owned());
    admin(&nodes[0], &["CLUSTER", "MEET", "127.0.0.1", &address.port().to_string(), &bus]).await;
    admin(&nodes[0], &["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]).await;
    admin(&nodes[1], &["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]).await;
    for node in &nodes {
        eventually("the cluster is whole", async || {
            admin(node, &["CLUSTER", "INFO"]).await.contains("cluster_state:ok")
        })
        .await;
    }
    for node in &nodes {
        let begun = Instant::now();
        let url = node.url();
        let connecting = Client::builder().shards(16).connect(&url);
        let refused = tokio::time::timeout(Duration::from_secs(20), connecting).await;
        let refused =
            refused.expect("it does not wait for ever").expect_err("half of the shards are elsewhere");
        assert!(refused.to_string().contains("Redis Cluster"), "{refused}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_node_that_holds_a_whole_cluster_serves() {
    let node = cluster_node();
    let builder = || Client::builder().connect_timeout(Duration::from_secs(2));
    let down = builder().connect(&node.url()).await.expect_err("it holds no slots");
    assert!(down.to_string().contains("Redis Cluster"), "{down}");
    admin(&node, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    eventually("the cluster is whole", async || {
        admin(&node, &["CLUSTER", "INFO"]).await.contains("cluster_state:ok")
    })
    .await;
    let client = builder().shards(16).connect(&node.url()).await.unwrap();
    for number in 0..20 {
        let queue = client.bytes(format!("orders-{number}")).unwrap();
        queue.publish_bytes("x").await.unwrap();
        assert_eq!(queue.take().wait(Duration::from_secs(20)).await.unwrap().len(), 1);
    }
    let queue = client.bytes("forwarding").unwrap();
    let forwarding = |to: &str| {
        let forward = Some(Forward::List(to.to_owned()));
        queue.configure(QueueConfig { forward, ..QueueConfig::default() }, None)
    };
    let refused = forwarding("out").await.unwrap_err();
    assert!(matches!(&refused, Error::OtherSlot { .. }), "{refused:?}");
    assert!(
        refused.to_string().contains("list:out") && refused.to_string().contains("hash tag"),
        "{refused}"
    );
    assert_eq!(queue.stats(0).await.unwrap().config, QueueConfig::default());
    queue.publish_bytes("x").await.unwrap();
    let meta = admin(&node, &["EVAL", "return redis.call('KEYS', '*:forwarding:meta')[1]", "0"]).await;
    let tag = meta.split_inclusive('}').next().unwrap();
    let out = format!("{tag}out");
    forwarding(&out).await.unwrap();
    eventually("it is forwarded", async || {
        // Whoever waits for jobs tends the queues meanwhile.
        assert_eq!(queue.take().wait(Duration::from_millis(100)).await.unwrap(), []);
        admin(&node, &["LLEN", &out]).await.contains('1')
    })
    .await;
}

fn cluster_node() -> Server {
    Server::with(&["--cluster-enabled", "yes", "--cluster-port", &free_port().to_string()])
}

/// What scripts cannot take for nothing: the key that fixes the deployment, and the epoch of a queue.
#[tokio::test]
async fn a_broken_value_names_its_key_its_queue_and_the_way_out() {
    let server = Server::spawn();
    let url = format!("{}?prefix=shop", server.url());
    let client = Client::connect(&url).await.unwrap();
    let orders = client.bytes("orders").unwrap();
    orders.publish_bytes("x").await.unwrap();
    let names = |error: &Error, what: &[&str]| {
        let said = error.to_string();
        for name in what.iter().chain(&["`delayline doctor --repair`"]) {
            assert!(said.contains(name), "{said} lacks {name}");
        }
    };
    let config = "{shop}:config";
    for text in ["", "text", "-5", "nan", "1.5", "99999999999999999999"] {
        for (field, sound) in [("layout", "1.0"), ("shards", "1")] {
            admin(&server, &["HSET", config, field, text]).await;
            names(&Client::connect(&url).await.unwrap_err(), &[config, &format!("{text:?}")]);
            admin(&server, &["HSET", config, field, sound]).await;
        }
        admin(&server, &["SET", config, text]).await;
        names(&Client::connect(&url).await.unwrap_err(), &[config, "no hash"]);
        admin(&server, &["DEL", config]).await;
        drop(Client::connect(&url).await.unwrap());
    }
}

#[tokio::test]
async fn a_deployment_of_another_layout_is_refused_by_name() {
    let server = Server::spawn();
    drop(Client::connect(&server.url()).await.unwrap());
    admin(&server, &["HSET", "{dl}:config", "layout", "2.0"]).await;
    let newer = Client::connect(&server.url()).await.unwrap_err();
    assert!(matches!(newer, Error::NewerLayout { found: 2, .. }), "{newer:?}");
    // As it was written before layout 1 was settled.
    admin(&server, &["HSET", "{dl}:config", "layout", "1"]).await;
    let older = Client::connect(&server.url()).await.unwrap_err();
    assert!(matches!(older, Error::OlderLayout { .. }), "{older:?}");
    assert!(older.to_string().contains("before layout 1 was settled"), "{older}");
}

/// A newer version has the queue limited, split or moved: whoever does not know how says so, and does nothing.
#[tokio::test]
async fn a_queue_with_a_gate_is_left_alone_and_what_is_held_may_end() {
    let server = Server::spawn();
    let client = Client::connect(&server.url()).await.unwrap();
    let orders = client.bytes("orders").unwrap();
    orders.publish_bytes("x").id("held").await.unwrap();
    orders.publish_bytes("x").id("waits").delay(Duration::from_secs(60)).await.unwrap();
    let held = orders.take().await.unwrap().remove(0);
    let meta = "{dl:0.0}:orders:meta";
    admin(&server, &["HSET", meta, "gate", "flow"]).await;
    let is_gated = |error: &Error| {
        let known =
            matches!(error, Error::Gated { queue, gate } if queue.as_str() == "orders" && gate == "flow");
        assert!(known && error.to_string().contains("newer client"), "{error:?}");
    };
    is_gated(&orders.publish_bytes("x").await.unwrap_err());
    is_gated(&orders.take().await.unwrap_err());
    is_gated(&orders.cancel("waits").await.unwrap_err());
    is_gated(&orders.reschedule("waits", Duration::ZERO).await.unwrap_err());
    is_gated(&orders.stats(0).await.unwrap_err());
    is_gated(&orders.pause().await.unwrap_err());
    is_gated(&orders.destroy().await.unwrap_err());
    // It has a plain lease, which plain acks may end.
    assert_eq!(client.settle(held.lease, Verdict::Ack).await.unwrap(), SettleOutcome::Done);
    admin(&server, &["HDEL", meta, "gate"]).await;
    orders.publish_bytes("x").await.unwrap();
    assert_eq!(orders.stats(0).await.unwrap().delayed, 1);
}
