mod change;
mod show;

use clap::{Args, Subcommand};
use delayline_http::Document;
use delayline_tokio::{Error, Queue, QueueConfig, QueueName, Stats};
use serde_json::json;

use self::change::Change;
use crate::cli::fields::Fields;
use crate::cli::print;
use crate::cli::redis::Redis;
use crate::cli::settings::Settings;
use crate::failure::Failure;
use crate::service::push;
use crate::service::registry::Registry;

const TRIES: usize = 5;

/// Reads or changes the config of a queue, which all its clients share, or shows the settings of this command line.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  delayline config get welcome
  delayline config set welcome attempts=5 backoff='15s 3m 1h' retention=7d
  delayline config show")]
pub struct Config {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// Show the config of a queue, and the defaults of what it does not set
    #[command(after_help = "\
Examples:
  delayline config get welcome
  delayline config get welcome --json")]
    Get {
        /// Which one
        queue: QueueName,
    },
    /// Change what is named in the config of a queue, and nothing else
    #[command(after_help = "\
attempts=1 to 999 (10), backoff=none, 'fixed 5s', 'exponential 1s..1h jitter 10%' (the default) or a ladder as in
'15s 3m 1h', retention=how long dead letters are kept (for ever), bury_expired=true if jobs that expire become dead
letters (false), max_jobs= and max_bytes=the most it may hold (what the publisher says; 0 for no limit),
forward=list:KEY or stream:KEY for a Redis list or stream that gets due jobs. The value `default` unsets, and so does
`none`, except for backoff, where it is a value. A dot leads into a value that is an object, as in push.url=…: there a value
that is JSON is taken as such, and any other is a text. A queue that is not there is made only with --create.

Examples:
  delayline config set welcome attempts=5 backoff='15s 3m 1h' retention=7d
  delayline config set reports max_bytes=64MiB bury_expired=true --create
  delayline config set welcome attempts=default retention=none")]
    Set {
        /// Which one
        queue: QueueName,
        /// What to set
        #[arg(required = true, value_name = "NAME=VALUE")]
        changes: Vec<Change>,
        /// Make the queue if it is not there
        #[arg(long)]
        create: bool,
    },
    /// Show the settings of this command line, and where each comes from
    #[command(after_help = "\
A flag wins over the environment, that over a file, that over what is built in. The file is the one that --config or
DELAYLINE_CONFIG names, else ./delayline.toml, else $XDG_CONFIG_HOME/delayline/config.toml, which is in ~/.config unless
that variable says otherwise. It may say:

  redis = \"redis://127.0.0.1/\"
  prefix = \"dl\"
  color = \"auto\"
  [serve]
  listen = \"127.0.0.1:4747\"
  insecure = false
  strict = false
  max_payload = \"1MiB\"
  timeout = \"10s\"
  max_connections = 4096
  client_requests = \"100/s burst 500\"
  trusted_proxy = [\"10.0.0.0/8\"]
  max_takes_per_client = 1024
  max_body_memory = \"192MiB\"
  max_memory = \"256MiB\"
  head_timeout = \"10s\"
  body_timeout = \"10s\"
  idle_timeout = \"75s\"
  host = [\"queue.example\"]

Examples:
  delayline config show
  delayline config show --config delayline.toml --json")]
    Show,
}

impl Config {
    pub(crate) async fn run(&self, redis: &Redis, settings: &Settings, json: bool) -> Result<(), Failure> {
        match &self.what {
            What::Get { queue } => get(redis, queue, json).await,
            What::Set { queue, changes, create } => set(redis, queue, changes, *create, json).await,
            What::Show => show::show(settings, json),
        }
    }
}

async fn get(redis: &Redis, name: &QueueName, json: bool) -> Result<(), Failure> {
    let curl = || format!("curl 'http://127.0.0.1:4747/v1/queues/{name}'");
    let read = redis.with_queue(name, curl, async |queue| {
        let stats = queue.stats(0).await?;
        stats.born.map(|_| stats).ok_or_else(|| Failure::no_such_queue(name))
    });
    let stats = read.await?;
    show::config(name, stats.cfgver, &stats.config.into(), json)
}

async fn set(
    redis: &Redis,
    name: &QueueName,
    changes: &[Change],
    create: bool,
    json: bool,
) -> Result<(), Failure> {
    let curl = || {
        format!(
            "curl -X PUT 'http://127.0.0.1:4747/v1/queues/{name}/config' -H 'Content-Type: application/json' -d '{{…}}'"
        )
    };
    let changing = redis.with_queue(name, curl, async |queue| change(queue, changes, create).await);
    let (cfgver, config) = changing.await?;
    if config.push.is_some()
        && let Some(url) = redis.shared_url()
        && let Ok(prefix) = redis.prefix_at(url).parse()
        && let Ok(registry) = Registry::open(url, &prefix).await
    {
        push::hint(&registry, name, &config, cfgver).await;
    }
    let document = Document::from(config);
    say(name, cfgver, &document, json)
}

/// Reads the config, changes it and puts it back, anew if somebody else was faster.
async fn change(queue: &Queue, changes: &[Change], create: bool) -> Result<(u64, QueueConfig), Failure> {
    for _ in 1..TRIES {
        match change_once(queue, changes, create).await {
            Err(Failure::Queue(Error::Conflict { .. })) => {}
            done => return done,
        }
    }
    change_once(queue, changes, create).await
}

async fn change_once(queue: &Queue, changes: &[Change], create: bool) -> Result<(u64, QueueConfig), Failure> {
    let Stats { born, config, cfgver, .. } = queue.stats(0).await?;
    if born.is_none() && !create {
        return Err(Failure::not_created(queue.name()));
    }
    let config = change::apply(config, changes)?;
    Document::validate_for(&config, queue.name()).map_err(|problem| Failure::Usage(problem.detail))?;
    let cfgver = queue.configure(config.clone(), Some(cfgver)).await?;
    Ok((cfgver, config))
}

fn say(name: &QueueName, cfgver: u64, config: &Document, json: bool) -> Result<(), Failure> {
    let document = json!({ "queue": name.as_str(), "cfgver": cfgver, "config": config });
    if json { print::document(&document) } else { print::text(Fields::of(&document)) }
}
