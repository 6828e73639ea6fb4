//! The users' test kit: jobs run in their very millisecond, however far ahead they are due.

use std::time::Duration;

use delayline_tokio::{Attempt, Error, Job, Worker};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

async fn fail_once(Job(_): Job<u64>, Attempt(attempt): Attempt) -> Result<(), String> {
    if attempt == 1 { Err("once".to_owned()) } else { Ok(()) }
}

#[test]
fn jobs_run_when_they_are_due_in_seconds_hours_and_weeks() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(try_all()).expect("all are published");
}

async fn try_all() -> Result<(), Error> {
    for first in
        [0, 1, 14, 15, 29, 31, 9 * MINUTE, 11 * MINUTE, HOUR, 13 * HOUR, DAY, 25 * HOUR, 30 * DAY + HOUR]
    {
        for wait in [1, 20, 11 * MINUTE, 2 * HOUR, 13 * HOUR] {
            let (client, time) = delayline_tokio::test();
            let jobs = client.queue::<u64>("jobs")?;
            time.start(Worker::new(&client).queue(&jobs, fail_once));
            let backoff = format!("fixed {wait}s").parse().expect("a backoff");
            jobs.publish(&first).delay(Duration::from_secs(first)).backoff(backoff).await?;
            let runs = time.advance(Duration::from_secs(first + wait)).await;
            let at: Vec<u64> = runs.iter().map(|run| run.at.as_secs()).collect();
            assert_eq!(at, [first, first + wait], "due in {first} s, again after {wait} s:{runs}");
        }
    }
    Ok(())
}

#[test]
fn the_lease_of_a_take_ends_when_it_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let taken_again = async {
        let (client, time) = delayline_tokio::test();
        let jobs = client.queue::<u64>("jobs")?;
        jobs.publish(&1).await?;
        assert_eq!(jobs.take().lease(Duration::from_secs(600)).await?.len(), 1);
        time.start(Worker::new(&client).queue(&jobs, fail_once));
        time.advance(Duration::from_secs(599)).await.assert_none();
        time.advance(Duration::from_secs(1)).await.assert_acked(1);
        Ok::<(), Error>(())
    };
    runtime.block_on(taken_again).expect("all is done");
}
