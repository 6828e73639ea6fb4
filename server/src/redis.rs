use std::time::Duration;

use clap::Args;
use delayline_tokio::redis::parse_redis_url;
use delayline_tokio::{Client, ClientBuilder, Prefix, Queue, QueueName};

use crate::failure::Failure;

/// The first failure to connect is final.
const CONNECT: Duration = Duration::ZERO;

/// Where the jobs are.
#[derive(Clone, Debug, Args)]
pub struct Redis {
    /// The Redis that keeps the jobs: redis://, rediss:// or redis+unix://
    #[arg(
        long,
        value_name = "URL",
        env = "DELAYLINE_REDIS_URL",
        hide_env_values = true,
        hide_default_value = true,
        global = true,
        help_heading = "Global options"
    )]
    redis: Option<String>,
    /// What every key begins with, in braces
    #[arg(
        long,
        value_name = "TEXT",
        env = "DELAYLINE_PREFIX",
        global = true,
        help_heading = "Global options"
    )]
    prefix: Option<String>,
}

impl Redis {
    /// The URL, if one is given; an empty variable gives none.
    pub(crate) fn url(&self) -> Option<&str> {
        self.redis.as_deref().filter(|url| !url.is_empty())
    }

    /// The URL of a store that other processes share: not of one in memory.
    pub(crate) fn shared_url(&self) -> Option<&str> {
        self.url().filter(|url| !url.starts_with("memory:"))
    }

    /// What every key at this URL begins with.
    pub(crate) fn prefix_at(&self, url: &str) -> String {
        let said = self.prefix.clone().filter(|prefix| !prefix.is_empty());
        let parsed = parse_redis_url(url);
        let in_url = parsed.iter().flat_map(|url| url.query_pairs()).find(|(name, _)| name == "prefix");
        said.or(in_url.map(|(_, prefix)| prefix.into_owned()))
            .unwrap_or_else(|| Prefix::default().to_string())
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let builder = Client::builder().connect_timeout(CONNECT);
        match self.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            Some(prefix) => builder.prefix(prefix),
            None => builder,
        }
    }

    /// Connects to a Redis, since memory is not shared with another process; `curl` does the same over HTTP.
    pub(crate) async fn connect(&self, curl: impl FnOnce() -> String) -> Result<Client, Failure> {
        match self.shared_url() {
            Some(url) => Ok(self.builder().connect(url).await?),
            None => Err(Failure::NoRedis { curl: curl() }),
        }
    }

    /// Connects to a Redis, does `work` on a queue there, and closes the connection whatever came of it.
    pub(crate) async fn with_queue<T>(
        &self,
        name: &QueueName,
        curl: impl FnOnce() -> String,
        work: impl AsyncFnOnce(&Queue) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = self.connect(curl).await?;
        let done = match queue(&client, name) {
            Ok(queue) => work(&queue).await,
            Err(failure) => Err(failure),
        };
        client.close().await;
        done
    }
}

/// A queue of plain bytes.
pub(crate) fn queue(client: &Client, name: &QueueName) -> Result<Queue, Failure> {
    Ok(client.bytes(name)?)
}
