//! How long callers wait for a Redis that is far away.

use std::time::{Duration, Instant};

use delayline_tests::{Far, Random, RedisServer, block_on, measure};
use delayline_tokio::redis::{self, IntoConnectionInfo};
use delayline_tokio::{Client, Queue, Verdict, tuned};
use tokio::time::sleep;

use crate::quiet::quiet;

const EACH_WAY: Duration = Duration::from_millis(5);
const PUBLISHERS: u64 = 8;
const TAKERS: u64 = 4;
const CALLS: usize = 150;
const BODY: usize = 300;

/// Publishers, takers and acknowledgements over one connection: what one writes must not wait for the acknowledgement of
/// what another wrote. A round trip is what a PING beside them takes, so that a busy machine counts on both sides.
#[test]
fn a_publish_takes_less_than_two_round_trips() {
    let _quiet = quiet();
    measure("how long callers wait for a Redis that is far away", || {
        let [publish, take, ack, round_trip] = block_on(times()).map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        let found = format!(
            "{EACH_WAY:?} each way, at the median: a round trip {round_trip:?}, a publish {publish:?}, a take {take:?}, an \
             ack {ack:?}"
        );
        if publish < 2 * round_trip { Ok(found) } else { Err(found) }
    });
}

/// How long each publish, take, ack and PING took.
async fn times() -> [Vec<Duration>; 4] {
    let server = RedisServer::plain();
    let far = Far::start(server.port(), EACH_WAY);
    let client = Client::connect(&far.url()).await.expect("a client");
    let (mails, bells) = (client.bytes("mails").expect("a name"), client.bytes("bells").expect("a name"));
    let count = usize::try_from(TAKERS).expect("few") * CALLS;
    let ready = (0..count).map(|_| bells.publish_bytes(vec![b'x'; BODY]));
    assert!(bells.publish_all(ready).await.iter().all(Result::is_ok), "the jobs to be taken");
    let pinging = tokio::spawn(ping(far.url()));
    let publishers: Vec<_> =
        (0..PUBLISHERS).map(|seed| tokio::spawn(publish(mails.clone(), Random::new(seed)))).collect();
    let takers: Vec<_> = (0..TAKERS)
        .map(|seed| tokio::spawn(take(client.clone(), bells.clone(), Random::new(PUBLISHERS + seed))))
        .collect();
    let (mut published_in, mut taken_in, mut acked_in) = (Vec::new(), Vec::new(), Vec::new());
    for publisher in publishers {
        published_in.extend(publisher.await.expect("no panic"));
    }
    for taker in takers {
        let (taken, acked) = taker.await.expect("no panic");
        taken_in.extend(taken);
        acked_in.extend(acked);
    }
    client.close().await;
    [published_in, taken_in, acked_in, pinging.await.expect("no panic")]
}

/// On a connection of its own, as often as a publisher publishes.
async fn ping(url: String) -> Vec<Duration> {
    let info = url.into_connection_info().expect("an address");
    let client = redis::Client::open(tuned(info)).expect("a client");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        sleep(Duration::from_millis(10)).await;
        let begun = Instant::now();
        redis::cmd("PING").exec_async(&mut connection).await.expect("an answer");
        times.push(begun.elapsed());
    }
    times
}

async fn publish(queue: Queue, mut random: Random) -> Vec<Duration> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        sleep(Duration::from_micros(random.number(0..=20_000))).await;
        let begun = Instant::now();
        queue.publish_bytes(vec![b'x'; BODY]).delay(Duration::from_secs(3_600)).await.expect("published");
        times.push(begun.elapsed());
    }
    times
}

async fn take(client: Client, queue: Queue, mut random: Random) -> (Vec<Duration>, Vec<Duration>) {
    let (mut takes, mut acks) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    for _ in 0..CALLS {
        sleep(Duration::from_micros(random.number(0..=20_000))).await;
        let begun = Instant::now();
        let job = queue.take().await.expect("an answer").pop().expect("a job that is due");
        takes.push(begun.elapsed());
        let begun = Instant::now();
        client.settle(job.lease, Verdict::Ack).await.expect("acknowledged");
        acks.push(begun.elapsed());
    }
    (takes, acks)
}
