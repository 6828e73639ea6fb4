use std::fmt::Display;
use std::future::Future;
use std::rc::Rc;
use std::str::FromStr;

use delayline_core::wire::Dialect;
use delayline_core::{Job, NameError, Prefix, QueueName, Shards, Span, Subscription};
use delayline_http::BearerToken;
use delayline_http::push::{self, Push};
use js_sys::Reflect;
use thiserror::Error;
use worker::Env;

use super::deliver::{Target, Targets};
use super::hand_over::HandOver;
use super::handler::Handler;
use super::verdict::IntoVerdict;
use crate::redis::Redis;
use crate::rest::{Endpoint, EndpointError};
use crate::{Limits, run};

/// A queue's jobs in hand, at most: as many as two reserves bring, so that one is under way while the other is delivered.
const SLOTS: u16 = 200;
/// The most bytes of a body that is pushed, unless it is said otherwise.
const MAX_BODY: usize = 1 << 20;

/// Where the deployment is, what a run may take, and where the jobs of each queue go.
///
/// Queues that are not named here are tended (leases end, jobs expire, what forwards is forwarded) and nothing is taken
/// from them.
#[derive(Clone, Debug)]
pub struct Config {
    endpoint: Endpoint,
    prefix: Prefix,
    shards: Shards,
    pub(super) limits: Limits,
    pub(super) targets: Targets,
    pub(super) api_tokens: Vec<BearerToken>,
    secrets: Vec<push::Secret>,
    plain_http: bool,
}

/// A config that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A variable or a secret is not there.
    #[error("{0} is not set: add it to [vars] in wrangler.toml, or with `wrangler secret put {0}`")]
    Missing(&'static str),
    /// A variable cannot be read.
    #[error("{name} is {value:?}: {why}")]
    Bad {
        /// Which.
        name: &'static str,
        /// What it is.
        value: String,
        /// What is wrong.
        why: String,
    },
    /// The endpoint cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A URL cannot be pushed to.
    #[error(transparent)]
    Url(#[from] push::UrlError),
    /// A queue cannot be named so.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl Config {
    /// Reads `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`, and where they are set `DELAYLINE_PREFIX`,
    /// `DELAYLINE_SHARDS`, `DELAYLINE_REQUESTS` (how many a run may make; 50 unless the plan is paid), `DELAYLINE_FOR` (for
    /// how long a run takes new jobs; `55s`), `DELAYLINE_WEBHOOK_SECRET` (what pushes are signed with, `whsec_…`; several
    /// with spaces between them), `DELAYLINE_PLAIN_HTTP` (`true` lets pushes go to `http://`) and `DELAYLINE_API_TOKEN`
    /// (what callers of the producer API must know).
    pub fn from_env(env: &Env) -> Result<Config, ConfigError> {
        let endpoint =
            Endpoint::new(&var(env, "UPSTASH_REDIS_REST_URL")?, &var(env, "UPSTASH_REDIS_REST_TOKEN")?)?;
        let usual = Limits::default();
        let for_ms = parsed::<Span>(env, "DELAYLINE_FOR")?.map_or(usual.for_ms, |span| span.0);
        let shards = parsed::<u16>(env, "DELAYLINE_SHARDS")?.unwrap_or(1);
        let limits = Limits {
            requests: parsed(env, "DELAYLINE_REQUESTS")?.unwrap_or(usual.requests),
            per_job: 0,
            for_ms,
            stay_ms: for_ms,
            ..usual
        };
        Ok(Config {
            endpoint,
            prefix: parsed(env, "DELAYLINE_PREFIX")?.unwrap_or_default(),
            shards: Shards::new(shards).ok_or_else(|| ConfigError::Bad {
                name: "DELAYLINE_SHARDS",
                value: shards.to_string(),
                why: "the number of shards that the deployment was made with".to_owned(),
            })?,
            limits,
            targets: Targets::default(),
            api_tokens: said(env, "DELAYLINE_API_TOKEN")
                .iter()
                .map(|token| BearerToken::new(token))
                .collect(),
            secrets: secrets(env)?,
            plain_http: parsed(env, "DELAYLINE_PLAIN_HTTP")?.unwrap_or(false),
        })
    }

    /// The jobs of `queue` go to a handler in this worker. `requests` is how many subrequests it makes for a job, at most:
    /// they count towards the limit of a run, and a job is only taken if its delivery can be paid for.
    pub fn handle<F, O>(
        self,
        queue: &str,
        requests: u32,
        handler: impl Fn(Job) -> F + 'static,
    ) -> Result<Config, ConfigError>
    where
        F: Future<Output = O> + 'static,
        O: IntoVerdict,
    {
        self.to(queue, requests, Handler(handler))
    }

    /// The jobs of `queue` are pushed to this URL, signed with the secrets of `DELAYLINE_WEBHOOK_SECRET`. A body may have
    /// 1 MiB, and whoever answers has [`Limits::delivery_ms`].
    pub fn push(self, queue: &str, url: &str) -> Result<Config, ConfigError> {
        let targets = push::Targets::new(Some(url.parse()?), push::OwnUrls::Off, self.plain_http)?;
        let push = Push { targets, secrets: self.secrets.clone(), max_body: MAX_BODY };
        self.push_by(queue, push)
    }

    /// The jobs of `queue` are pushed as this says: it may let jobs name URLs of their own.
    pub fn push_by(self, queue: &str, push: Push) -> Result<Config, ConfigError> {
        self.to(queue, 1, push)
    }

    /// The secrets that pushes are signed with.
    pub fn secrets(&self) -> &[push::Secret] {
        &self.secrets
    }

    /// The jobs of `queue` are handed over to the Cloudflare Queue that is bound as `binding`. They are done then.
    pub fn hand_over(self, queue: &str, binding: &str) -> Result<Config, ConfigError> {
        self.to(queue, 1, HandOver { binding: binding.to_owned() })
    }

    /// Other limits than the usual ones. What a delivery costs is known from where the jobs go.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Config {
        let per_job = self.limits.per_job;
        self.limits = limits;
        self.limits.per_job = per_job;
        self
    }

    pub(super) fn to(
        mut self,
        queue: &str,
        requests: u32,
        target: impl Target + 'static,
    ) -> Result<Config, ConfigError> {
        self.targets.insert(queue.parse()?, Rc::new(target));
        self.limits.per_job = self.limits.per_job.max(requests);
        Ok(self)
    }

    pub(super) fn redis<L: Dialect>(&self, dialect: L) -> Redis<L> {
        Redis::new(dialect, self.endpoint.clone(), &self.prefix, self.shards, None, self.limits.flight_ms)
    }

    /// What tells this deployment from others.
    pub(super) fn deployment(&self) -> String {
        format!("{} {} {}", self.endpoint.url(), self.prefix, self.shards.count())
    }

    pub(super) fn shards(&self) -> Shards {
        self.shards
    }

    /// The engine's config for a run that cron starts.
    pub(super) fn engine(&self, limits: &Limits, salt: u64) -> delayline_core::Config {
        let subscription = |queue: &QueueName| Subscription { queue: queue.clone(), weight: 1, max: SLOTS };
        let config = delayline_core::Config {
            shards: self.shards,
            subscriptions: self.targets.keys().map(subscription).collect(),
            slots: SLOTS,
            salt,
            ..delayline_core::Config::default()
        };
        run::config(limits, config)
    }
}

/// A variable or a secret of the worker.
///
/// # Errors
/// If it is not there, or empty.
pub fn var(env: &Env, name: &'static str) -> Result<String, ConfigError> {
    said(env, name).ok_or(ConfigError::Missing(name))
}

fn said(env: &Env, name: &str) -> Option<String> {
    let value = Reflect::get(env, &name.into()).ok()?.as_string()?;
    Some(value).filter(|value| !value.is_empty())
}

fn secrets(env: &Env) -> Result<Vec<push::Secret>, ConfigError> {
    const NAME: &str = "DELAYLINE_WEBHOOK_SECRET";
    let said = said(env, NAME).unwrap_or_default();
    let read = said.split_whitespace().map(str::parse).collect::<Result<_, push::SecretError>>();
    read.map_err(|why| ConfigError::Bad { name: NAME, value: "a secret".to_owned(), why: why.to_string() })
}

fn parsed<T: FromStr<Err: Display>>(env: &Env, name: &'static str) -> Result<Option<T>, ConfigError> {
    let Some(value) = said(env, name) else { return Ok(None) };
    match value.parse() {
        Ok(read) => Ok(Some(read)),
        Err(why) => Err(ConfigError::Bad { name, value, why: why.to_string() }),
    }
}
