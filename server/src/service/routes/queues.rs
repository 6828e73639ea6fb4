use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use delayline_http::{
    Document, Names, Options, Problem, Show, ShowConfig, Sizes, configured, destroyed, if_match, named,
    no_such_queue, paused,
};
use delayline_tokio::{Cursor, Error, Namespace, Queue, QueueConfig, QueueName};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::options::{Said, headers_of};
use super::path::InPath;
use crate::service::app::{App, Shared};
use crate::service::body::{Empty, Inbound};
use crate::service::rejection::{Rejection, respond};
use crate::service::tokens::Caller;

/// How many pages of the index one request reads, in search of the queues of a namespace.
const PAGES: usize = 32;
/// How many queues are counted at once, for one request.
const COUNTED_AT_ONCE: usize = 16;
/// How often a change of a config begins anew because somebody else was faster.
const PATCH_TRIES: usize = 5;

pub(super) async fn list(
    State(app): State<Shared>,
    caller: Caller,
    Said(mut options): Said,
) -> Result<Json<Names>, Rejection> {
    let mut cursor: Option<Cursor> = options.read("cursor")?;
    let count = options.in_range("count", 1..=1_000)?.unwrap_or(100);
    let has_sizes = options.read("sizes")?.unwrap_or(false);
    let within = Within::read(&mut options)?;
    options.finish()?;
    let is_wanted = |queue: &QueueName| match &within {
        Within::All => true,
        Within::One(namespace) => queue.namespace() == *namespace,
    };
    let mut queues: Vec<QueueName> = Vec::new();
    for _ in 0..PAGES {
        let page = app.client.queues(cursor.as_ref(), count).await?;
        queues.extend(page.items.into_iter().filter(|queue| is_wanted(queue) && caller.reaches(queue)));
        cursor = page.next;
        if cursor.is_none() || queues.len() >= count.into() {
            break;
        }
    }
    let sizes = if has_sizes { Some(sizes(&app, &queues).await?) } else { None };
    let queues = queues.iter().map(QueueName::to_string).collect();
    Ok(Json(Names { queues, sizes, cursor: cursor.map(|cursor| cursor.to_string()) }))
}

/// Whose queues are wanted.
enum Within {
    /// Those of every namespace.
    All,
    /// Those of this one, or of the default one.
    One(Option<Namespace>),
}

impl Within {
    /// An empty name is that of the default namespace.
    fn read(options: &mut Options) -> Result<Within, Problem> {
        Ok(match options.read::<String>("namespace")?.as_deref() {
            None => Within::All,
            Some("") => Within::One(None),
            Some(name) => Within::One(Some(named(name)?)),
        })
    }
}

/// How many jobs each of these queues holds; one that has ended meanwhile is left out.
async fn sizes(app: &App, queues: &[QueueName]) -> Result<BTreeMap<String, Sizes>, Error> {
    let counted = queues.iter().cloned().map(|name| async move {
        let stats = app.client.bytes(&name)?.stats(0).await?;
        Ok(stats.born.map(|_| (name.to_string(), Sizes::from(&stats))))
    });
    stream::iter(counted)
        .buffer_unordered(COUNTED_AT_ONCE)
        .try_filter_map(async |counted| Ok(counted))
        .try_collect()
        .await
}

pub(super) async fn show(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
) -> Result<Response, Rejection> {
    let show = Show::read(queue, options)?;
    let stats = app.client.bytes(&show.queue)?.stats(show.hours).await?;
    let push_state = app.push.of(&show.queue, &stats.config).await;
    Ok(respond(show.answer(stats, push_state)?))
}

pub(super) async fn show_config(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
) -> Result<Response, Rejection> {
    let show = ShowConfig::read(queue, options)?;
    let stats = app.client.bytes(&show.queue)?.stats(0).await?;
    Ok(respond(show.answer(stats, &headers_of(&headers))?))
}

pub(super) async fn configure(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let replaces = if_match(&headers_of(&headers))?;
    let config = Document::read(&body.document().await?)?;
    Document::validate_for(&config, &queue)?;
    let queue = app.client.bytes(&queue)?;
    may_forward(&app, &config, async || Ok(queue.stats(0).await?.config)).await?;
    match queue.configure(config.clone(), replaces).await {
        Ok(cfgver) => {
            app.push.configured(queue.name(), &config, cfgver).await;
            Ok(respond(configured(cfgver, config)))
        }
        Err(Error::Conflict { cfgver, .. }) => Err(conflict(cfgver).into()),
        Err(error) => Err(error.into()),
    }
}

/// Changes what the body names; without `If-Match` anew if somebody else was faster.
pub(super) async fn patch(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    headers: HeaderMap,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let replaces = if_match(&headers_of(&headers))?;
    let body = body.document().await?;
    let queue = app.client.bytes(&queue)?;
    let mut tries = PATCH_TRIES;
    loop {
        let stats = queue.stats(0).await?;
        if stats.born.is_none() {
            return Err(no_such_queue(queue.name()).into());
        }
        let version = stats.cfgver;
        if replaces.is_some_and(|replaces| replaces != version) {
            return Err(conflict(version).into());
        }
        let config = Document::patched(stats.config.clone(), &body)?;
        Document::validate_for(&config, queue.name())?;
        may_forward(&app, &config, async || Ok(stats.config)).await?;
        match queue.configure(config.clone(), Some(version)).await {
            Ok(cfgver) => {
                app.push.configured(queue.name(), &config, cfgver).await;
                return Ok(respond(configured(cfgver, config)));
            }
            Err(Error::Conflict { .. }) if replaces.is_none() && tries > 1 => tries -= 1,
            Err(Error::Conflict { cfgver, .. }) => return Err(conflict(cfgver).into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Fails if the config forwards to where it may not; what an admin has set may stay.
async fn may_forward(
    app: &App,
    config: &QueueConfig,
    before: impl AsyncFnOnce() -> Result<QueueConfig, Error>,
) -> Result<(), Rejection> {
    let Some(forward) = &config.forward else { return Ok(()) };
    if app.client.is_memory() {
        let detail = "in memory there is no list or stream to forward to: start the service with --redis";
        return Err(Problem::bad("forward_needs_redis", detail).into());
    }
    match app.forwarding.check(forward) {
        Err(refused) if before().await?.forward.as_ref() != Some(forward) => Err(refused.into()),
        _ => Ok(()),
    }
}

fn conflict(cfgver: u64) -> Problem {
    let detail = format!(
        "the config is at version {cfgver}, not the one in If-Match, and is unchanged: read it and try again"
    );
    Problem::new(412, "config_conflict", detail)
}

pub(super) async fn pause(
    app: State<Shared>,
    queue: InPath<QueueName>,
    Said(mut options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let create = options.read("create")?.unwrap_or_default();
    set_paused(app, queue, options, true, create).await
}

pub(super) async fn resume(
    app: State<Shared>,
    queue: InPath<QueueName>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    set_paused(app, queue, options, false, false).await
}

async fn set_paused(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    options: Options,
    is_paused: bool,
    create: bool,
) -> Result<Response, Rejection> {
    options.finish()?;
    let queue = app.client.bytes(&queue)?;
    if !create {
        must_exist(&queue).await?;
    }
    let cfgver = if is_paused { queue.pause().await? } else { queue.resume().await? };
    Ok(respond(paused(is_paused, cfgver)))
}

pub(super) async fn destroy(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    options.finish()?;
    let sizes = app.client.bytes(&queue)?.destroy().await?.ok_or_else(|| no_such_queue(&queue))?;
    Ok(respond(destroyed(&queue, sizes)))
}

/// Fails if there is no such queue: a name that was misspelt makes none.
pub(super) async fn must_exist(queue: &Queue) -> Result<(), Rejection> {
    match queue.stats(0).await?.born {
        Some(_) => Ok(()),
        None => Err(no_such_queue(queue.name()).into()),
    }
}
