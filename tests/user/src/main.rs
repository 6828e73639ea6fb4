use delayline_tokio::{Client, Error, Failure, Job, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Welcome {
    to: String,
}

async fn send(Job(mail): Job<Welcome>) -> Result<(), Failure> {
    if !mail.to.contains('@') {
        return Err(Failure::bury("not an address"));
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = Client::connect("redis://127.0.0.1/").await?;
    let welcomes = client.queue::<Welcome>("welcomes")?;
    welcomes.publish(&Welcome { to: "ann@example.org".into() }).await?;
    Worker::new(&client).queue(&welcomes, send).run().await
}

#[tokio::test]
async fn a_mail_without_an_address_is_dead() {
    let (client, time) = delayline_tokio::test();
    let welcomes = client.queue::<Welcome>("welcomes").unwrap();
    time.start(Worker::new(&client).queue(&welcomes, send));
    welcomes.publish(&Welcome { to: "ann".into() }).await.unwrap();
    assert!(time.drain_due().await.one().is_dead());
}
