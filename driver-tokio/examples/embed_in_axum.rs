//! A web service that publishes jobs and runs them, in one process.
//!
//! `POST /signups` publishes a welcome mail; a worker beside the server sends it. One signal stops both: the server ends
//! the requests it has, the worker the jobs it has, and the client sends what is left.
//!
//! ```sh
//! cargo run -p delayline-tokio --example embed_in_axum [redis://127.0.0.1/]        # signs itself up, and stops
//! cargo run -p delayline-tokio --example embed_in_axum serve [redis://127.0.0.1/]  # stays until ctrl-c
//! ```

use std::net::SocketAddr;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use delayline_tokio::{BoxError, CancellationToken, Client, Data, Error, Failure, Job, Queue, Worker};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

#[derive(Debug, Serialize, Deserialize)]
struct Signup {
    email: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct WelcomeMail {
    to: String,
}

#[derive(Clone)]
struct App {
    client: Client,
    mails: Queue<WelcomeMail>,
}

type Refusal = (StatusCode, String);

/// The address is the job's id: whoever clicks twice before the mail is sent gets one.
async fn sign_up(State(app): State<App>, Json(signup): Json<Signup>) -> Result<StatusCode, Refusal> {
    let mail = WelcomeMail { to: signup.email.clone() };
    app.mails.publish(&mail).id(signup.email).await.map_err(|error| refusal(&error))?;
    Ok(StatusCode::ACCEPTED)
}

async fn ready(State(app): State<App>) -> Result<&'static str, Refusal> {
    app.client.ping().await.map_err(|error| refusal(&error))?;
    Ok("ready")
}

fn refusal(error: &Error) -> Refusal {
    let status = match error {
        Error::Name(_) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, error.to_string())
}

/// Stands for a mail server.
type Outbox = mpsc::UnboundedSender<String>;

async fn welcome(Job(mail): Job<WelcomeMail>, Data(outbox): Data<Outbox>) -> Result<(), Failure> {
    println!("mail to {}: welcome!", mail.to);
    Ok(outbox.send(mail.to)?)
}

async fn run(
    listener: TcpListener,
    client: Client,
    outbox: Outbox,
    until: impl Future<Output = Result<(), BoxError>>,
) -> Result<(), BoxError> {
    let app = App { mails: client.queue("welcome-mails")?, client: client.clone() };
    let worker = Worker::new(&client).with_data(outbox).queue(&app.mails, welcome);
    let routes = Router::new().route("/signups", post(sign_up)).route("/readyz", get(ready)).with_state(app);
    let stop = CancellationToken::new();
    let serving = async {
        Ok(axum::serve(listener, routes).with_graceful_shutdown(stop.clone().cancelled_owned()).await?)
    };
    let working = async { Ok(worker.run_until(stop.cancelled()).await?) };
    let ending = async {
        let ended = until.await;
        stop.cancel();
        ended
    };
    tokio::try_join!(serving, working, ending)?;
    client.close().await;
    println!("stopped");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (serve, url) = arguments();
    let client = Client::connect(&url).await?;
    let listener = TcpListener::bind(("127.0.0.1", if serve { 8080 } else { 0 })).await?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    let (outbox, mut sent) = mpsc::unbounded_channel();
    let until = async {
        if serve {
            tokio::signal::ctrl_c().await?;
        } else {
            println!("{}", sign_up_at(address, "ann@example.org").await?);
            sent.recv().await;
        }
        Ok(())
    };
    run(listener, client, outbox, until).await
}

async fn sign_up_at(address: SocketAddr, email: &str) -> Result<String, BoxError> {
    let body = serde_json::to_string(&Signup { email: email.to_owned() })?;
    let head =
        "POST /signups HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response.lines().next().unwrap_or_default().to_owned())
}

fn arguments() -> (bool, String) {
    let mut arguments = std::env::args().skip(1).peekable();
    let serve = arguments.next_if(|first| first == "serve").is_some();
    let given = arguments.next().or_else(|| std::env::var("DELAYLINE_REDIS_URL").ok());
    (serve, given.unwrap_or_else(|| "memory://".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_signs_up_twice_is_welcomed_once() -> Result<(), BoxError> {
        let (client, time) = delayline_tokio::test();
        let app = App { mails: client.queue("welcome-mails")?, client: client.clone() };
        for _ in 0..2 {
            let signup = Signup { email: "ann@example.org".to_owned() };
            assert_eq!(sign_up(State(app.clone()), Json(signup)).await, Ok(StatusCode::ACCEPTED));
        }
        let (outbox, mut sent) = mpsc::unbounded_channel();
        time.start(Worker::new(&client).with_data(outbox).queue(&app.mails, welcome));
        time.drain_due().await.assert_acked(1);
        assert_eq!(sent.recv().await.as_deref(), Some("ann@example.org"));
        Ok(())
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_one_is_refused() -> Result<(), BoxError> {
        let (client, time) = delayline_tokio::test();
        let app = App { mails: client.queue("welcome-mails")?, client };
        let refused = sign_up(State(app), Json(Signup { email: "ann at home".to_owned() })).await;
        assert_eq!(refused.map_err(|(status, _)| status), Err(StatusCode::UNPROCESSABLE_ENTITY));
        time.assert_nothing_scheduled::<WelcomeMail>();
        Ok(())
    }
}
