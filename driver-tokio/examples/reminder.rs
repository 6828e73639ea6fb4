//! Reminders that people set, move and call off, each by the name of its event.
//!
//! `upsert` puts a reminder in the place of the one that waits under its name, in one step: nobody is reminded twice, or
//! of the old text.
//!
//! ```sh
//! cargo run -p delayline-tokio --example reminder [redis://127.0.0.1/]
//! ```

use std::time::{Duration, SystemTime};

use delayline_tokio::{BoxError, CancelOutcome, Client, Data, Error, Failure, Job, JobId, Queue, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Reminder {
    to: String,
    text: String,
}

#[derive(Clone)]
struct Calendar {
    reminders: Queue<Reminder>,
}

impl Calendar {
    fn new(client: &Client) -> Result<Calendar, Error> {
        Ok(Calendar { reminders: client.queue("reminders")? })
    }

    /// Whether it took the place of another.
    async fn remind(&self, event: &str, at: SystemTime, text: &str) -> Result<bool, Error> {
        let reminder = Reminder { to: "ann@example.org".to_owned(), text: text.to_owned() };
        Ok(self.reminders.upsert(event, &reminder).at(at).await?.replaced)
    }

    /// Whether it had not been sent yet.
    async fn call_off(&self, event: &str) -> Result<bool, Error> {
        Ok(self.reminders.cancel(event).await? == CancelOutcome::Cancelled)
    }
}

/// Stands for push notifications.
type Phone = mpsc::UnboundedSender<Reminder>;

async fn ring(event: JobId, Job(reminder): Job<Reminder>, Data(phone): Data<Phone>) -> Result<(), Failure> {
    println!("{event}: to {}: {}", reminder.to, reminder.text);
    Ok(phone.send(reminder)?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::connect(&url()).await?;
    let calendar = Calendar::new(&client)?;
    let in_ms = |ms| SystemTime::now() + Duration::from_millis(ms);
    calendar.remind("standup", in_ms(200), "standup in five minutes").await?;
    calendar.remind("dentist", in_ms(300), "dentist at nine").await?;
    calendar.remind("lunch", in_ms(400), "lunch with Bob").await?;
    println!("dentist: moved: {}", calendar.remind("dentist", in_ms(600), "dentist at ten").await?);
    println!("lunch: called off: {}", calendar.call_off("lunch").await?);

    let (phone, mut rings) = mpsc::unbounded_channel();
    let worker = Worker::new(&client).with_data(phone).queue(&calendar.reminders, ring);
    worker
        .run_until(async { while rings.recv().await.is_some_and(|rung| rung.text != "dentist at ten") {} })
        .await?;
    client.close().await;
    Ok(())
}

fn url() -> String {
    let given = std::env::args().nth(1).or_else(|| std::env::var("DELAYLINE_REDIS_URL").ok());
    given.unwrap_or_else(|| "memory://".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_moved_reminder_rings_once_at_its_new_time() -> Result<(), Error> {
        let (client, time) = delayline_tokio::test();
        let calendar = Calendar::new(&client)?;
        let (phone, mut rings) = mpsc::unbounded_channel();
        time.start(Worker::new(&client).with_data(phone).queue(&calendar.reminders, ring));
        assert!(!calendar.remind("dentist", time.now() + HOUR, "at nine").await?);
        assert!(calendar.remind("dentist", time.now() + 2 * HOUR, "at ten").await?);

        let scheduled = time.assert_scheduled::<Reminder>(|reminder| reminder.job.text == "at ten");
        assert_eq!(scheduled.due_in, 2 * HOUR);
        time.advance(HOUR).await.assert_none();
        time.advance(HOUR).await.assert_acked(1);
        assert_eq!(rings.recv().await.map(|rung| rung.text).as_deref(), Some("at ten"));
        Ok(())
    }

    #[tokio::test]
    async fn a_reminder_that_is_called_off_never_rings() -> Result<(), Error> {
        let (client, time) = delayline_tokio::test();
        let calendar = Calendar::new(&client)?;
        let (phone, _rings) = mpsc::unbounded_channel();
        time.start(Worker::new(&client).with_data(phone).queue(&calendar.reminders, ring));
        calendar.remind("lunch", time.now() + HOUR, "with Bob").await?;
        assert!(calendar.call_off("lunch").await?);
        assert!(!calendar.call_off("lunch").await?, "it is gone already");
        time.assert_nothing_scheduled::<Reminder>();
        time.advance(2 * HOUR).await.assert_none();
        Ok(())
    }
}
