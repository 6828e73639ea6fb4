//! Polling a third party until an export is ready, without spending attempts on the waiting.
//!
//! Attempts are for what fails. `Failure::snooze` says "not yet" and `ttl` bounds how often; `Failure::retry_after` obeys
//! a 429, `Failure::bury` gives up at once, and any other error is retried by the backoff.
//!
//! ```sh
//! cargo run -p delayline-tokio --example poll_with_snooze [redis://127.0.0.1/]
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use delayline_tokio::{Attempt, BoxError, Client, Data, Error, Failure, Job, Published, Queue, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// A minute in life.
const POLL: Duration = Duration::from_millis(100);
const GIVE_UP: Duration = Duration::from_secs(6 * 3600);

#[derive(Debug, Serialize, Deserialize)]
struct FetchExport {
    export: String,
}

#[derive(Clone)]
enum Answer {
    Running,
    Ready { url: String },
    TooManyRequests { retry_after: Duration },
    Failed { why: String },
}

/// Stands for the third party: what it is going to answer for each export. It is down when it knows no more.
#[derive(Clone)]
struct ExportApi {
    answers: watch::Sender<BTreeMap<String, VecDeque<Answer>>>,
    poll: Duration,
}

impl ExportApi {
    fn new<const N: usize>(poll: Duration, answers: [(&str, Vec<Answer>); N]) -> ExportApi {
        let answers = answers.into_iter().map(|(export, answers)| (export.to_owned(), answers.into()));
        ExportApi { answers: watch::Sender::new(answers.collect()), poll }
    }

    fn status(&self, export: &str) -> io::Result<Answer> {
        let mut next = None;
        self.answers.send_modify(|answers| next = answers.get_mut(export).and_then(VecDeque::pop_front));
        next.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))
    }
}

async fn fetch(
    Job(FetchExport { export }): Job<FetchExport>,
    Data(api): Data<ExportApi>,
    Attempt(attempt): Attempt,
) -> Result<(), Failure> {
    match api.status(&export)? {
        Answer::Running => {
            println!("{export}, attempt {attempt}: still running");
            Err(Failure::snooze(api.poll))
        }
        Answer::TooManyRequests { retry_after } => {
            println!("{export}, attempt {attempt}: too many requests");
            Err(Failure::retry_after(retry_after, "429 Too Many Requests"))
        }
        Answer::Failed { why } => Err(Failure::bury(why)),
        Answer::Ready { url } => {
            println!("{export}, attempt {attempt}: ready at {url}");
            Ok(())
        }
    }
}

async fn order(exports: &Queue<FetchExport>, export: &str, poll: Duration) -> Result<Published, Error> {
    exports.publish(&FetchExport { export: export.to_owned() }).delay(poll).ttl(GIVE_UP).attempts(3).await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::connect(&url()).await?;
    let exports = client.queue("exports")?;
    let busy = Answer::TooManyRequests { retry_after: 3 * POLL };
    let ready = Answer::Ready { url: "https://files.example/sales.csv".to_owned() };
    let failed = Answer::Failed { why: "no such table: custmers".to_owned() };
    let sales = vec![Answer::Running, Answer::Running, busy, Answer::Running, ready];
    let api = ExportApi::new(POLL, [("sales", sales), ("customers", vec![Answer::Running, failed])]);
    order(&exports, "sales", POLL).await?;
    let customers = order(&exports, "customers", POLL).await?;

    let mut answers = api.answers.subscribe();
    let all_said = async { drop(answers.wait_for(|left| left.values().all(VecDeque::is_empty)).await) };
    Worker::new(&client).with_data(api).queue(&exports, fetch).run_until(all_said).await?;

    let letter = exports.inspect(&customers.id).await?;
    if let Some(reason) = letter.as_ref().and_then(|letter| letter.last_reason()) {
        println!("customers: given up: {reason}");
    }
    client.close().await;
    Ok(())
}

fn url() -> String {
    let given = std::env::args().nth(1).or_else(|| std::env::var("DELAYLINE_REDIS_URL").ok());
    given.unwrap_or_else(|| "memory://".to_owned())
}

#[cfg(test)]
mod tests {
    use delayline_tokio::TestClock;
    use delayline_tokio::kit::Outcome;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    async fn ordered(answers: Vec<Answer>) -> Result<TestClock, Error> {
        let (client, time) = delayline_tokio::test();
        let exports = client.queue("exports")?;
        let api = ExportApi::new(MINUTE, [("sales", answers)]);
        time.start(Worker::new(&client).with_data(api).queue(&exports, fetch));
        order(&exports, "sales", MINUTE).await?;
        Ok(time)
    }

    #[tokio::test]
    async fn waiting_spends_no_attempt() -> Result<(), Error> {
        let mut answers = vec![Answer::Running; 100];
        answers.push(Answer::TooManyRequests { retry_after: 10 * MINUTE });
        answers.push(Answer::Ready { url: String::new() });
        let time = ordered(answers).await?;

        let runs = time.advance(100 * MINUTE).await;
        assert!(runs.iter().all(|run| run.attempt == 1 && run.outcome == Outcome::Snoozed { after: MINUTE }));
        assert_eq!(runs.len(), 100);
        let reason = "429 Too Many Requests".to_owned();
        let refused = Outcome::Retried { after: 10 * MINUTE, reason };
        time.advance(11 * MINUTE).await.assert_outcomes(&[refused, Outcome::Acked]);
        Ok(())
    }

    #[tokio::test]
    async fn what_cannot_succeed_is_given_up_at_once() -> Result<(), Error> {
        let time = ordered(vec![Answer::Failed { why: "no such table".to_owned() }]).await?;
        assert!(time.advance(MINUTE).await.one().is_dead());
        time.assert_dead::<FetchExport>(|letter| letter.reason == "no such table");
        Ok(())
    }

    #[tokio::test]
    async fn an_export_that_is_never_ready_expires() -> Result<(), Error> {
        let time = ordered(vec![Answer::Running; 1_000]).await?;
        assert_eq!(time.advance(2 * GIVE_UP).await.len(), 359);
        time.assert_nothing_scheduled::<FetchExport>();
        Ok(())
    }
}
