use delayline_tokio::{Client, Error, Job, Worker};

fn send(Job(_): Job<String>) {}

pub fn worker(client: &Client) -> Result<Worker, Error> {
    let names = client.queue::<String>("names")?;
    Ok(Worker::new(client).queue(&names, send))
}
