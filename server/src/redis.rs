use clap::Args;
use delayline_tokio::{Client, ClientBuilder};

use crate::failure::Failure;

/// Where the jobs are.
#[derive(Clone, Debug, Args)]
pub struct Redis {
    /// The Redis that keeps the jobs: redis://, rediss:// or redis+unix://
    #[arg(
        long,
        value_name = "URL",
        env = "DELAYLINE_REDIS_URL",
        hide_env_values = true,
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

    pub(crate) fn builder(&self) -> ClientBuilder {
        let builder = Client::builder();
        match &self.prefix {
            Some(prefix) => builder.prefix(prefix),
            None => builder,
        }
    }

    /// Connects to a Redis, since memory is not shared with another process; `curl` does the same over HTTP.
    pub(crate) async fn connect(&self, curl: impl FnOnce() -> String) -> Result<Client, Failure> {
        match self.url() {
            Some(url) if !url.starts_with("memory:") => Ok(self.builder().connect(url).await?),
            _ => Err(Failure::NoRedis { curl: curl() }),
        }
    }
}
