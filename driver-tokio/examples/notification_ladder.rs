//! Callbacks to merchants, retried by a ladder of waits for a day, then kept as dead letters with their reason.
//!
//! The ladder travels with each job, so a merchant can have his own. The program runs it 100,000 times as fast; the tests
//! run the true one.
//!
//! ```sh
//! cargo run -p delayline-tokio --example notification_ladder [redis://127.0.0.1/]
//! ```

use std::collections::BTreeMap;

use delayline_tokio::{
    Attempt, Backoff, BoxError, Client, Data, Error, Failure, Job, Published, Queue, Worker,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

const LADDER: &str = "15s 3m 10m 30m 30m 1h 2h 6h 15h";
/// The first, and one after each rung.
const ATTEMPTS: u16 = 10;

#[derive(Debug, Serialize, Deserialize)]
struct OrderPaid {
    order: u64,
    notify: String,
}

/// Stands for an HTTP client, with merchants of whom some are up, some return at the third call, some never.
#[derive(Clone, Default)]
struct Web {
    calls: watch::Sender<BTreeMap<String, u16>>,
}

impl Web {
    fn post(&self, paid: &OrderPaid) -> u16 {
        self.calls.send_modify(|calls| *calls.entry(paid.notify.clone()).or_default() += 1);
        let calls = self.calls.borrow().get(&paid.notify).copied().unwrap_or_default();
        match paid.notify.as_str() {
            url if url.contains("gone") => 410,
            url if url.contains("away") || url.contains("restarts") && calls < 3 => 503,
            _ => 204,
        }
    }
}

async fn notify(
    Job(paid): Job<OrderPaid>,
    Data(web): Data<Web>,
    Attempt(attempt): Attempt,
) -> Result<(), Failure> {
    let status = web.post(&paid);
    println!("order {}, attempt {attempt}: {} answers {status}", paid.order, paid.notify);
    match status {
        200..=299 => Ok(()),
        410 => Err(Failure::bury(format!("{} is no more", paid.notify))),
        _ => Err(format!("{} answers {status}", paid.notify).into()),
    }
}

async fn announce(
    callbacks: &Queue<OrderPaid>,
    ladder: &Backoff,
    order: u64,
    url: &str,
) -> Result<Published, Error> {
    let paid = OrderPaid { order, notify: url.to_owned() };
    callbacks.publish(&paid).attempts(ATTEMPTS).backoff(ladder.clone()).await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::connect(&url()).await?;
    let callbacks = client.queue("merchant-callbacks")?;
    let ladder = hurried(LADDER.parse()?);
    announce(&callbacks, &ladder, 17, "https://restarts.example/paid").await?;
    let lost = announce(&callbacks, &ladder, 18, "https://away.example/paid").await?;

    let web = Web::default();
    let mut calls = web.calls.subscribe();
    let given_up = async {
        drop(calls.wait_for(|calls| calls.get("https://away.example/paid") == Some(&ATTEMPTS)).await);
    };
    Worker::new(&client).with_data(web).queue(&callbacks, notify).run_until(given_up).await?;

    if let Some(letter) = callbacks.inspect(&lost.id).await? {
        let reason = letter.last_reason().unwrap_or_default();
        println!("order 18: {:?} after {} attempts: {reason}", letter.place, letter.attempt());
    }
    client.close().await;
    Ok(())
}

/// A day in a second.
fn hurried(ladder: Backoff) -> Backoff {
    match ladder {
        Backoff::Ladder(rungs) => Backoff::Ladder(rungs.iter().map(|ms| ms.div_ceil(100_000)).collect()),
        other => other,
    }
}

fn url() -> String {
    let given = std::env::args().nth(1).or_else(|| std::env::var("DELAYLINE_REDIS_URL").ok());
    given.unwrap_or_else(|| "memory://".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use delayline_tokio::kit::{DeadLetter, Run};

    use super::*;

    const TWO_DAYS: Duration = Duration::from_secs(2 * 86_400);

    async fn two_days_with(url: &str) -> Result<(Vec<Run>, Vec<DeadLetter<OrderPaid>>), BoxError> {
        let (client, time) = delayline_tokio::test();
        let callbacks = client.queue("merchant-callbacks")?;
        time.start(Worker::new(&client).with_data(Web::default()).queue(&callbacks, notify));
        announce(&callbacks, &LADDER.parse()?, 17, url).await?;
        Ok((time.advance(TWO_DAYS).await.into_iter().collect(), time.dead_letters()))
    }

    #[tokio::test]
    async fn a_merchant_who_is_away_is_called_on_every_rung_and_then_no_more() -> Result<(), BoxError> {
        let (runs, dead) = two_days_with("https://away.example/paid").await?;
        let seconds: Vec<u64> = runs.iter().map(|run| run.at.as_secs()).collect();
        assert_eq!(seconds, [0, 15, 195, 795, 2_595, 4_395, 7_995, 15_195, 36_795, 90_795]);
        assert!(runs[..9].iter().all(Run::is_retried) && runs[9].is_dead(), "{runs:?}");
        let [letter] = &dead[..] else { panic!("one dead letter was expected: {dead:?}") };
        assert_eq!((letter.attempts, letter.job.order), (ATTEMPTS, 17));
        assert_eq!(letter.reason, "https://away.example/paid answers 503");
        Ok(())
    }

    #[tokio::test]
    async fn the_ladder_ends_with_an_answer() -> Result<(), BoxError> {
        let (runs, dead) = two_days_with("https://restarts.example/paid").await?;
        assert!(runs.len() == 3 && runs[2].is_acked() && dead.is_empty(), "{runs:?}");
        let (runs, dead) = two_days_with("https://gone.example/paid").await?;
        assert!(runs.len() == 1 && dead[0].reason == "https://gone.example/paid is no more", "{runs:?}");
        Ok(())
    }
}
