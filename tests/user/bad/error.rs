use delayline_tokio::{Client, Error, Job, Worker};

struct NoError;

async fn send(Job(_): Job<String>) -> Result<(), NoError> {
    Err(NoError)
}

pub fn worker(client: &Client) -> Result<Worker, Error> {
    let names = client.queue::<String>("names")?;
    Ok(Worker::new(client).queue(&names, send))
}
