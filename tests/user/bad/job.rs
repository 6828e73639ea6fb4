use delayline_tokio::{Client, Error, Job, Worker};

async fn send(Job(_): Job<u64>) {}

pub fn worker(client: &Client) -> Result<Worker, Error> {
    let names = client.queue::<String>("names")?;
    Ok(Worker::new(client).queue(&names, send))
}
