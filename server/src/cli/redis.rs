use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use delayline_tokio::redis::parse_redis_url;
use delayline_tokio::{Client, ClientBuilder, Error, Prefix, Queue, QueueName, Span};

use crate::cli::nearest;
use crate::failure::Failure;
use crate::service::registry::Registry;

/// How long a command that runs on waits for its Redis, unless it is told otherwise.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many names of queues are looked through for one that was misspelt.
const NAMES: u16 = 1_000;

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
    #[allow(clippy::struct_field_names)] // it is the name of the option
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
    /// How long to wait for a Redis that cannot be reached: 10s if the command runs on, else not at all
    #[arg(
        long,
        value_name = "TIME",
        env = "DELAYLINE_CONNECT_TIMEOUT",
        global = true,
        help_heading = "Global options"
    )]
    connect_timeout: Option<Span>,
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

    /// For a command that ends by itself: the first failure to connect is final, unless --connect-timeout is given.
    pub(crate) fn builder(&self) -> ClientBuilder {
        self.builder_of(Duration::ZERO)
    }

    /// For a command that runs on, and so may be started before its Redis.
    pub(crate) fn patient_builder(&self) -> ClientBuilder {
        self.builder_of(PATIENCE)
    }

    /// How long a command that runs on waits for its Redis.
    pub(crate) fn patience(&self) -> Duration {
        self.connect_timeout.map_or(PATIENCE, |limit| Duration::from_millis(limit.0))
    }

    fn builder_of(&self, usual: Duration) -> ClientBuilder {
        let limit = self.connect_timeout.map_or(usual, |limit| Duration::from_millis(limit.0));
        let builder = Client::builder().connect_timeout(limit);
        match self.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            Some(prefix) => builder.prefix(prefix),
            None => builder,
        }
    }

    /// Connects to a Redis, since memory is not shared with another process; `curl` does the same over HTTP.
    pub(crate) async fn connect(&self, curl: impl FnOnce() -> String) -> Result<Client, Failure> {
        self.connect_by(self.builder(), curl).await
    }

    /// [`connect`](Redis::connect), for a command that runs on.
    pub(crate) async fn wait_for(&self, curl: impl FnOnce() -> String) -> Result<Client, Failure> {
        self.connect_by(self.patient_builder(), curl).await
    }

    /// Opens what services share beside jobs, since that of a service in memory is not shared; `curl` does the same over HTTP.
    pub(crate) async fn registry(&self, curl: impl FnOnce() -> String) -> Result<Arc<Registry>, Failure> {
        let url = self.shared_url().ok_or_else(|| Failure::NoRedis { curl: curl() })?;
        let prefix: Prefix =
            self.prefix_at(url).parse().map_err(|error| Failure::Queue(Error::Name(error)))?;
        Ok(Registry::open(url, &prefix).await?)
    }

    async fn connect_by(
        &self,
        builder: ClientBuilder,
        curl: impl FnOnce() -> String,
    ) -> Result<Client, Failure> {
        match self.shared_url() {
            Some(url) => Ok(builder.connect(url).await?),
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
        self.with_client(name, curl, async |_, queue| work(queue).await).await
    }

    /// [`with_queue`](Redis::with_queue), for work that settles leases too.
    pub(crate) async fn with_client<T>(
        &self,
        name: &QueueName,
        curl: impl FnOnce() -> String,
        work: impl AsyncFnOnce(&Client, &Queue) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = self.connect(curl).await?;
        let done = match queue(&client, name) {
            Ok(queue) => work(&client, &queue).await,
            Err(failure) => Err(failure),
        };
        let done = match done {
            Err(unknown @ Failure::NoSuchQueue { .. }) => Err(with_nearest(unknown, &client).await),
            done => done,
        };
        client.close().await;
        done
    }
}

/// Fails if there is no such queue.
pub(crate) async fn must_exist(queue: &Queue) -> Result<(), Failure> {
    match queue.stats(0).await?.born {
        Some(_) => Ok(()),
        None => Err(Failure::no_such_queue(queue.name())),
    }
}

/// Adds to a failure that a queue is not there which one is.
pub(crate) async fn with_nearest(mut failure: Failure, client: &Client) -> Failure {
    if let Failure::NoSuchQueue { name, nearest, .. } = &mut failure {
        // Who may not ask for the names goes without.
        let names = client.queues(None, NAMES).await.map(|page| page.items).unwrap_or_default();
        *nearest = nearest::nearest(name, names.iter().map(QueueName::as_str)).map(str::to_owned);
    }
    failure
}

/// A queue of plain bytes.
pub(crate) fn queue(client: &Client, name: &QueueName) -> Result<Queue, Failure> {
    Ok(client.bytes(name)?)
}
