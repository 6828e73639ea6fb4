//! The user of docs/production.md: its rights are enough for all that delayline does, and none is idle.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use delayline_core::wire::Value;
use delayline_tests::{Meter, Options, RedisServer, block_on, until, words};
use delayline_tokio::{
    Attempt, CancelOutcome, Client, Error, Failure, Forward, Job, Place, QueueConfig, Verdict, Worker,
};
use tokio::sync::Notify;

const GUIDE: &str = include_str!("../../../docs/production.md");
/// What a client sends by itself; all else is called within scripts.
const SENT: [&str; 7] = ["evalsha", "eval", "info", "hscan", "ping", "subscribe", "unsubscribe"];
/// What only forwarding needs; its user is given these beside.
const FORWARDING: [&str; 2] = ["rpush", "xadd"];
const PATIENCE: Duration = Duration::from_secs(60);

/// The line of the guide, as Redis's config writes users.
fn user() -> String {
    let line = GUIDE.lines().find_map(|line| line.strip_prefix("ACL SETUSER ")).expect("a user in the guide");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn server_of(user: String) -> (RedisServer, String) {
    let server = RedisServer::start(Options { users: vec![user], ..Options::default() });
    let url = server.url().replace("127", "delayline:CHANGE-ME@127");
    (server, url)
}

/// What the server refused, by its own log; CLIENT SETINFO apart, by which the library says its name, as it may.
fn refused(server: &RedisServer) -> Vec<String> {
    let entries = words(server.connect().ask(&["ACL", "LOG"])).into_iter();
    let entries = entries.map(|entry| format!("{:?}", words(entry)));
    entries.filter(|entry| !entry.contains("client|setinfo") && !entry.contains("b\"client\"")).collect()
}

#[test]
fn the_user_of_the_guide_can_do_all() {
    let (server, url) = server_of(user());
    let mut meter = Meter::new(&server);
    block_on(live(&server, &url)).expect("nothing is refused");
    let called: Vec<_> = meter.read().into_keys().collect();
    println!("called: {}", called.join(" "));
    assert_eq!(refused(&server), Vec::<String>::new());
}

#[test]
fn the_user_of_the_guide_has_no_right_that_nothing_needs() {
    let server = RedisServer::plain();
    let mut connection = server.connect();
    let granted: BTreeSet<String> =
        user().split(' ').filter_map(|word| word.strip_prefix('+')).map(str::to_owned).collect();
    let mut needed: BTreeSet<String> = SENT.into_iter().map(str::to_owned).collect();
    for script in delayline_lua::all() {
        let source = script.source();
        let code = source.lines().filter_map(|line| line.split("--").next());
        for quoted in code.flat_map(|line| line.split('\'').skip(1).step_by(2)) {
            let is_word = quoted.len() > 2 && quoted.bytes().all(|byte| byte.is_ascii_uppercase());
            if is_word && words(connection.ask(&["COMMAND", "INFO", quoted])) != [Value::Nil] {
                needed.insert(quoted.to_ascii_lowercase());
            }
        }
    }
    needed.retain(|command| !FORWARDING.contains(&command.as_str()));
    assert_eq!(granted, needed);
}

#[test]
fn without_its_channels_the_user_works_and_only_waking_is_slow() {
    let (_server, url) = server_of(user().replace("&{dl:*", ""));
    block_on(async {
        let client = Client::connect(&url).await?;
        let jobs = client.bytes("orders")?;
        jobs.publish_bytes("x").await?;
        let job = jobs.take().await?.remove(0);
        client.settle(job.lease, Verdict::Ack).await?;
        client.close().await;
        Ok::<(), Error>(())
    })
    .expect("nothing but waking needs channels");
}

#[test]
fn forwarding_needs_its_destination_beside() {
    let (server, url) = server_of(user() + " ~out +rpush");
    block_on(async {
        let client = Client::builder().pump(true).connect(&url).await?;
        let jobs = client.bytes("orders")?;
        jobs.configure(
            QueueConfig { forward: Some(Forward::List("out".into())), ..QueueConfig::default() },
            None,
        )
        .await?;
        jobs.publish_bytes("x").await?;
        let forwarded = async {
            while jobs.stats(0).await?.counters.forwarded == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<(), Error>(())
        };
        tokio::time::timeout(PATIENCE, forwarded).await.expect("forwarded in time")?;
        client.close().await;
        Ok::<(), Error>(())
    })
    .expect("nothing is refused");
    assert_eq!(refused(&server), Vec::<String>::new());
}

#[test]
fn another_prefix_is_refused() {
    let (_server, url) = server_of(user());
    let error = block_on(Client::builder().prefix("other").connect_timeout(PATIENCE).connect(&url));
    let error = error.expect_err("the keys are not its own");
    assert!(matches!(&error, Error::Denied { why, .. } if why.contains("prefix other")), "{error:?}");
}

/// All that a deployment does, forwarding apart.
async fn live(server: &RedisServer, url: &str) -> Result<(), Error> {
    let client = Client::builder().pump(true).connect(url).await?;
    client.ping().await?;
    assert!(client.redis_version().is_some(), "INFO is allowed");
    let jobs = client.queue::<u64>("orders")?;
    let config = QueueConfig { attempts: Some(2), retention_ms: Some(60_000), ..QueueConfig::default() };
    jobs.configure(config, None).await?;

    let mut outcomes = jobs.publish_all((0..200).map(|n| jobs.publish(&n))).await;
    outcomes.push(jobs.publish(&7).id("later").delay(Duration::from_secs(60)).await);
    outcomes
        .push(jobs.upsert("later", &8).delay(Duration::from_secs(90)).ttl(Duration::from_secs(900)).await);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    jobs.reschedule("later", SystemTime::now() + Duration::from_secs(30)).await?;
    assert!(jobs.inspect("later").await?.is_some());
    assert_eq!(jobs.cancel("later").await?, CancelOutcome::Cancelled);

    let mut taken = jobs.take().count(4).lease(Duration::from_secs(10)).await?.into_iter();
    let mut lease = || taken.next().expect("four jobs").lease;
    let first = lease();
    client.extend(first.clone(), Duration::from_secs(20)).await?;
    client.settle(first, Verdict::Ack).await?;
    client.settle(lease(), Verdict::Nack { after_ms: Some(1), reason: "no".into() }).await?;
    client.settle(lease(), Verdict::Snooze { after_ms: 1 }).await?;
    client.settle(lease(), Verdict::Bury { reason: "no".into() }).await?;

    let (last, is_last) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, tells) = (last.clone(), is_last.clone());
    let handler = move |Job(number): Job<u64>, Attempt(attempt): Attempt| {
        let told = told.clone();
        async move {
            match number {
                5 if attempt == 1 => return Err(Failure::retry_after(Duration::from_millis(5), "again")),
                6 => return Err(Failure::bury("never")),
                1_000 => told.notify_one(),
                _ => {}
            }
            Ok(())
        }
    };
    let worker = Worker::new(&client).queue(&jobs, handler).run_until(async move { tells.notified().await });
    let worker = tokio::spawn(worker);
    // Idle, it waits to be woken.
    until("an idle worker", PATIENCE, || {
        (!words(server.connect().ask(&["KEYS", "*:waiting"])).is_empty()).then_some(())
    });
    jobs.publish(&1_000).await?;
    tokio::time::timeout(PATIENCE, last.notified()).await.expect("woken in time");
    is_last.notify_one();
    worker.await.expect("no panic")?;

    jobs.pause().await?;
    jobs.resume().await?;
    assert!(jobs.stats(48).await?.dead >= 2);
    for place in [Place::Ready, Place::Delayed, Place::Leased, Place::Dead] {
        let page = jobs.list(place, 1, None).await?;
        jobs.list(place, 1, page.next.as_ref()).await?;
    }
    let dead = jobs.dead_letters(10, None).await?.items;
    jobs.requeue(vec![dead[0].id.clone()]).await?;
    jobs.purge_all().await?;
    assert!(client.queues(None, 10).await?.items.iter().any(|name| name == jobs.name()));
    assert!(jobs.destroy().await?.is_some());
    client.close().await;
    Ok(())
}
