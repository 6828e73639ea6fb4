use std::path::{Path, PathBuf};
use std::str::FromStr;

use bytes::Bytes;
use clap::{ArgGroup, Args};
use delayline_http::{Edit as Request, Time};
use delayline_tokio::{Backoff, Change, Edited, JobEdit, JobId, QueueName, Span};
use serde_json::json;
use tokio::io::AsyncReadExt;

use super::publish::{header, quoted};
use crate::cli::print;
use crate::cli::redis::{Redis, must_exist};
use crate::failure::Failure;

/// Changes a waiting job. What is not named stays as it is, also the attempts that it has had.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("what").multiple(true).required(true))]
#[command(after_help = "\
What is not named stays as it is, also the attempts that the job has had. One that a consumer holds, or that is dead,
stays as it is: `delayline release --force` takes it from its consumer, `delayline dead requeue` makes it wait.
The value `default` gives a job its queue's attempts or backoff, `none` ends its TTL.

Examples:
  delayline edit welcome ann:1 --payload '{\"to\":\"ann@example.org\"}'
  delayline edit welcome ann:1 --payload-file report.json --header tenant=acme --remove-header trace
  delayline edit welcome ann:1 --attempts 20 --backoff 'fixed 30s' --ttl none --delay 0s
  delayline edit welcome ann:1 --payload-file - --json < report.json")]
pub struct Edit {
    /// In which queue
    queue: QueueName,
    /// Which one
    id: JobId,
    /// The payload
    #[arg(long, value_name = "TEXT", group = "what", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// The payload, out of a file; - is stdin
    #[arg(long, value_name = "FILE", group = "what")]
    payload_file: Option<PathBuf>,
    /// What the payload is
    #[arg(long, value_name = "TYPE", group = "what")]
    content_type: Option<String>,
    /// A header in place of what it had of that name; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header, group = "what")]
    headers: Vec<(String, String)>,
    /// A header that it is no longer to have; may be repeated
    #[arg(long = "remove-header", value_name = "NAME", group = "what")]
    removed: Vec<String>,
    /// The most attempts, or `default`
    #[arg(long, value_name = "COUNT", group = "what", value_parser = change::<u16>)]
    attempts: Option<Wanted<u16>>,
    /// The wait after failed attempts, as of `publish`, or `default`
    #[arg(long, group = "what", value_parser = change::<Backoff>)]
    backoff: Option<Wanted<Backoff>>,
    /// When it expires, counted from now, or `none`
    #[arg(long, value_name = "TIME", group = "what", value_parser = ttl)]
    ttl: Option<Wanted<Span>>,
    /// How long until it is due, as in 5s or 1h30m
    #[arg(long, value_name = "TIME", conflicts_with = "at", group = "what")]
    delay: Option<Span>,
    /// When it is due, as in 2026-11-21T10:00:05Z
    #[arg(long, value_name = "WHEN", group = "what")]
    at: Option<Time>,
}

/// A value as it is named on the command line; `None` for that of the queue.
#[derive(Clone, Debug)]
struct Wanted<T>(Option<T>);

impl Edit {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let changes = self.changes(self.body().await?);
        let edited = redis.with_queue(
            &self.queue,
            || self.curl(),
            async |queue| {
                let edited = queue.edit(&self.id, &changes).await?;
                if edited == Edited::Gone {
                    must_exist(queue).await?;
                }
                Ok(edited)
            },
        );
        let edited = edited.await?;
        let request = Request { queue: self.queue.clone(), id: self.id.clone(), changes };
        let refused = match edited {
            Edited::Done { due } => return self.say(Time(due), json),
            Edited::Gone => request.gone(),
            Edited::Contended => request.contended(),
            Edited::NotEditable(why) => request.refused(why),
        };
        Err(Failure::Problem { code: refused.code, detail: refused.detail })
    }

    fn say(&self, due: Time, json: bool) -> Result<(), Failure> {
        if json {
            print::document(&json!({ "id": self.id.as_str(), "due": due }))
        } else {
            print::line(format_args!("{} due {due}", self.id))
        }
    }

    async fn body(&self) -> Result<Option<Bytes>, Failure> {
        match (&self.payload, self.payload_file.as_deref()) {
            (Some(payload), _) => Ok(Some(Bytes::copy_from_slice(payload.as_bytes()))),
            (None, Some(file)) if file == Path::new("-") => {
                let mut body = Vec::new();
                tokio::io::stdin().read_to_end(&mut body).await?;
                Ok(Some(body.into()))
            }
            (None, Some(file)) => {
                let read = tokio::fs::read(file).await;
                let read = read.map_err(|error| Failure::Unreadable { path: file.to_owned(), why: error });
                Ok(Some(read?.into()))
            }
            (None, None) => Ok(None),
        }
    }

    fn changes(&self, body: Option<Bytes>) -> JobEdit {
        let set = self.headers.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        let removed = self.removed.iter().map(|name| (name.clone(), None));
        JobEdit {
            due: self.delay.map(Into::into).or(self.at.map(Into::into)),
            body,
            content_type: self.content_type.clone().map_or(Change::Keep, Change::Set),
            headers: removed.chain(set).collect(),
            attempts: Wanted::change(self.attempts.as_ref()),
            backoff: Wanted::change(self.backoff.as_ref()),
            ttl: Wanted::change(self.ttl.as_ref()),
        }
    }

    /// The same over HTTP, but for the payload, which is written there as JSON.
    fn curl(&self) -> String {
        let mut body = serde_json::Map::new();
        if let Some(payload) = &self.payload {
            body.insert("payload".into(), payload.as_str().into());
            body.insert("encoding".into(), "text".into());
        }
        let text = |named: Option<String>| named.map_or(serde_json::Value::Null, Into::into);
        body.extend(self.attempts.as_ref().map(|Wanted(attempts)| ("attempts".to_owned(), json!(attempts))));
        body.extend(
            self.backoff.as_ref().map(|Wanted(backoff)| {
                ("backoff".to_owned(), text(backoff.as_ref().map(ToString::to_string)))
            }),
        );
        body.extend(
            self.ttl.as_ref().map(|Wanted(ttl)| ("ttl".to_owned(), text(ttl.map(|ttl| ttl.to_string())))),
        );
        body.extend(self.delay.map(|delay| ("delay".to_owned(), text(Some(delay.to_string())))));
        body.extend(self.at.map(|at| ("at".to_owned(), json!(at))));
        format!(
            "curl -X PATCH -H 'Content-Type: application/json' -d {} 'http://127.0.0.1:4747/v1/queues/{}/jobs/{}'",
            quoted(&serde_json::Value::Object(body).to_string()),
            self.queue,
            self.id
        )
    }
}

impl<T: Clone> Wanted<T> {
    fn change(wanted: Option<&Wanted<T>>) -> Change<T> {
        match wanted {
            None => Change::Keep,
            Some(Wanted(None)) => Change::Unset,
            Some(Wanted(Some(value))) => Change::Set(value.clone()),
        }
    }
}

fn change<T: FromStr>(text: &str) -> Result<Wanted<T>, T::Err> {
    if text == "default" { Ok(Wanted(None)) } else { text.parse().map(|value| Wanted(Some(value))) }
}

fn ttl(text: &str) -> Result<Wanted<Span>, <Span as FromStr>::Err> {
    if text == "none" { Ok(Wanted(None)) } else { text.parse().map(|ttl| Wanted(Some(ttl))) }
}
