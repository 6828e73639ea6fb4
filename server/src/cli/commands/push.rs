use clap::Args;
use delayline_http::push::Secret;
use tokio::sync::watch;

use crate::cli::print;
use crate::cli::redis::Redis;
use crate::cli::stop::Stop;
use crate::failure::Failure;
use crate::service::listener::GRACE;
use crate::service::push::{PushOptions, Pusher};
use crate::service::registry::Registry;

/// Pushes the jobs of queues whose config says so, until it is told to stop: what `serve` does too, in a process of its own.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Any number may run, beside services with --push or --push=false; each pushes as much as a queue's config allows one
process. It stops by SIGTERM or ctrl-c once what it has sent is answered, within 10 s.

Examples:
  delayline push
  delayline push --push-allow 10.1.0.0/16 --push-concurrency 200
  delayline push --public-keys --push-secret-file keys")]
pub struct Push {
    /// Print the public halves of the ed25519 keys that pushes are signed with, and end
    #[arg(long)]
    public_keys: bool,
    #[command(flatten)]
    options: PushOptions,
}

impl Push {
    pub(crate) async fn run(&self, redis: &Redis) -> Result<(), Failure> {
        if self.public_keys {
            return self.print_public_keys();
        }
        let settings = self.options.settings()?;
        let url = redis.shared_url().ok_or(Failure::NeedsRedis("pushes its own queues"))?;
        let stop = Stop::listen()?;
        let client = tokio::select! {
            connected = redis.patient_builder().connect(url) => connected?,
            () = stop.clone().asked() => return Ok(()),
        };
        let registry = Registry::open(url, client.prefix()).await?;
        let stopping = watch::Sender::new(false);
        let pusher = Pusher::start(&client, &registry, settings, stopping.subscribe());
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!("delayline {version} pushing the queues in {}", client.address());
        tokio::select! {
            () = stop.clone().asked() => {}
            panicked = client.failed() => return Err(panicked.into()),
        }
        stopping.send_replace(true);
        let ending = async {
            pusher.ended(GRACE).await;
            client.close().await;
        };
        tokio::select! {
            () = ending => Ok(()),
            () = stop.insisted() => Err(Failure::Interrupted),
        }
    }

    fn print_public_keys(&self) -> Result<(), Failure> {
        let secrets = self.options.secrets()?;
        let keys: Vec<String> = secrets.iter().filter_map(Secret::public_key).collect();
        if keys.is_empty() {
            let why = "no ed25519 key is given: name a file that has one, whsk_…, by --push-secret-file";
            return Err(Failure::Usage(why.to_owned()));
        }
        print::line(keys.join("\n"))
    }
}
