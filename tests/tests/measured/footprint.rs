//! What a waiting job costs Redis in memory.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use delayline_core::wire::Value;
use delayline_tests::{Connection, Random, RedisServer, block_on};
use delayline_tokio::{Client, Error};

const DAY: u64 = 86_400;
/// How many bytes a job may take beside its body, at 100,000 jobs with drawn ids.
const MOST_BESIDE: u64 = 230;

#[test]
fn a_waiting_job_takes_little_memory_beside_its_body() {
    for (what, jobs, length) in [("JSON", 100_000, 200), ("JSON", 5_000, 10_240)] {
        let taken = bytes_a_job(jobs, |n| json(n, length));
        println!("{taken} bytes of Redis memory a waiting job, with a body of {length} bytes of {what}");
        assert!(taken < length as u64 + MOST_BESIDE, "{taken} bytes for a body of {length}");
    }
    let mut random = Random::new(7);
    let noise = move |_| {
        (0..10_240).map(|_| u8::try_from(random.number(0..=255)).expect("a byte")).collect::<Vec<u8>>().into()
    };
    let taken = bytes_a_job(5_000, noise);
    println!("{taken} bytes of Redis memory a waiting job, with a body of 10240 random bytes");
    assert!(taken < 13_000, "{taken} bytes for a body of 10240");
}

/// An object of exactly so many bytes, of which no two are the same.
fn json(n: u64, length: usize) -> Bytes {
    let mut body = String::from("{\"lines\":[");
    while body.len() + 64 < length {
        let (order, sum) = (n * 7_919 + body.len() as u64, n % 997);
        write!(body, "{{\"order\":{order},\"sum\":{sum}}},").expect("a string takes all");
    }
    body += "0],\"to\":\"";
    body += &"x".repeat(length - body.len() - 2);
    (body + "\"}").into()
}

fn bytes_a_job(jobs: u64, mut body: impl FnMut(u64) -> Bytes) -> u64 {
    let server = RedisServer::plain();
    let mut connection = server.connect();
    let bodies: Vec<Bytes> = (0..jobs).map(&mut body).collect();
    let before = used(&mut connection);
    block_on(publish(&server.url(), bodies)).expect("all are published");
    (used(&mut connection) - before) / jobs
}

async fn publish(url: &str, bodies: Vec<Bytes>) -> Result<(), Error> {
    let client = Client::connect(url).await?;
    let later = client.bytes("later")?;
    let due = |n: usize| Duration::from_secs(DAY + n as u64 % (30 * DAY));
    let jobs = bodies.into_iter().enumerate().map(|(n, body)| later.publish_bytes(body).delay(due(n)));
    for published in later.publish_all(jobs).await {
        published?;
    }
    client.close().await;
    Ok(())
}

fn used(connection: &mut Connection) -> u64 {
    let Value::Bytes(text) = connection.ask(&["INFO", "memory"]) else { panic!("no text") };
    let text = String::from_utf8_lossy(&text);
    let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|used| used.trim().parse().ok()).expect("used_memory")
}
