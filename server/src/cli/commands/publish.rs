mod lines;
mod tally;

use std::io::IsTerminal;
use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use delayline_http::{Draft, Time};
use delayline_tokio::{Backoff, JobId, Queue, QueueName, Span};
use serde_json::json;
use tokio::io::AsyncReadExt;

use self::lines::Lines;
use crate::cli::print;
use crate::cli::redis::Redis;
use crate::failure::Failure;
use crate::service::draft;

/// Publishes a job, or many: a line of NDJSON each.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A line of NDJSON is a JSON object: `payload`, which must be there, and `encoding` (json, text or base64), `content_type`,
`id`, `replace`, `delay` or `at`, `attempts`, `backoff`, `ttl` and `headers`. Each line succeeds or fails for itself; those that fail
are told on stderr with their number. What Redis has accepted stays accepted when the command is stopped.

Examples:
  delayline publish welcome '{\"to\":\"ann\"}' --delay 5s
  delayline publish reports --at 2026-11-21T10:00:00Z --id report:17 < report.json
  delayline publish reports --id report:17 --replace < report.json
  delayline publish sync run --attempts 5 --backoff '15s 3m 1h' --ttl 1d --header tenant=acme
  delayline publish welcome --ndjson < jobs.ndjson
  delayline publish welcome --from jobs.ndjson --allow-duplicates --json")]
pub struct Publish {
    /// Where to
    queue: QueueName,
    /// The payload; stdin if it is left out
    body: Option<String>,
    /// How long until it is due, as in 5s or 1h30m
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    delay: Option<Span>,
    /// When it is due, as in 2026-11-21T10:00:05Z
    #[arg(long, value_name = "WHEN")]
    at: Option<Time>,
    /// Its id: a second job with the same id is refused
    #[arg(long)]
    id: Option<JobId>,
    /// If a job of that id waits, take its place, in one step
    #[arg(long, requires = "id")]
    replace: bool,
    /// The most attempts
    #[arg(long, value_name = "COUNT")]
    attempts: Option<u16>,
    /// The wait after failed attempts: none, 'fixed 5s', 'exponential 1s..1h' or '15s 3m 1h'
    #[arg(long)]
    backoff: Option<Backoff>,
    /// When it expires
    #[arg(long, value_name = "TIME")]
    ttl: Option<Span>,
    /// What its consumer should know; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// What the payload is
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    #[command(flatten)]
    many: Many,
}

/// Jobs from elsewhere than the command line.
#[derive(Clone, Debug, Args)]
struct Many {
    /// Read NDJSON from stdin, a job a line
    #[arg(long, conflicts_with_all = ONE)]
    ndjson: bool,
    /// Read NDJSON from a file; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ONE)]
    from: Option<PathBuf>,
    /// With NDJSON: a job whose id is in use is no failure, so that a file may be published again
    #[arg(long, conflicts_with_all = ONE)]
    allow_duplicates: bool,
}

/// What describes one job on the command line.
const ONE: [&str; 10] =
    ["body", "delay", "at", "id", "replace", "attempts", "backoff", "ttl", "headers", "content_type"];

pub(super) fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}

impl Publish {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let Many { from, allow_duplicates, .. } = &self.many;
        if !self.has_many() {
            return redis
                .with_queue(&self.queue, || self.curl(), async |queue| self.publish(queue, json).await)
                .await;
        }
        let file = from.as_deref().filter(|file| file.as_os_str() != "-");
        let lines = Lines { file, allow_duplicates: *allow_duplicates, json };
        redis.with_queue(&self.queue, || self.curl_of_many(), async |queue| lines.run(queue).await).await
    }

    async fn publish(&self, queue: &Queue, json: bool) -> Result<(), Failure> {
        let draft = self.draft(self.body().await?);
        let published = draft::publish(draft, queue).await?;
        if published.duplicate {
            return Err(Failure::Duplicate { queue: self.queue.to_string(), id: published.id.to_string() });
        }
        let due = published.due.map(Time);
        match (json, due) {
            (true, due) if published.replaced => {
                print::document(&json!({ "id": published.id.as_str(), "due": due, "replaced": true }))
            }
            (true, due) => print::document(&json!({ "id": published.id.as_str(), "due": due })),
            (false, Some(due)) => print::line(format_args!("{} due {due}", published.id)),
            (false, None) => print::line(published.id),
        }
    }

    async fn body(&self) -> Result<Bytes, Failure> {
        if let Some(body) = &self.body {
            return Ok(Bytes::copy_from_slice(body.as_bytes()));
        }
        if std::io::stdin().is_terminal() {
            eprintln!("reading the payload from stdin; end it with ctrl-d");
        }
        let mut body = Vec::new();
        tokio::io::stdin().read_to_end(&mut body).await?;
        Ok(body.into())
    }

    pub(crate) fn has_many(&self) -> bool {
        self.many.ndjson || self.many.from.is_some()
    }

    fn draft(&self, body: Bytes) -> Draft {
        Draft {
            id: self.id.clone(),
            replace: self.replace,
            due: self.delay.map(Into::into).or(self.at.map(Into::into)),
            attempts: self.attempts,
            backoff: self.backoff.clone(),
            ttl: self.ttl,
            content_type: self.content_type.clone(),
            headers: self.headers.clone(),
            trace: None,
            body,
        }
    }

    fn curl_of_many(&self) -> String {
        let file = self.many.from.as_deref().map_or("-".into(), |file| file.display().to_string());
        format!(
            "curl -H 'Content-Type: application/x-ndjson' --data-binary {} 'http://127.0.0.1:4747/v1/queues/{}/batch'",
            quoted(&format!("@{file}")),
            self.queue
        )
    }

    /// The same over HTTP.
    fn curl(&self) -> String {
        let said = [
            ("delay", self.delay.map(|delay| delay.to_string())),
            ("at", self.at.map(|at| at.to_string())),
            ("id", self.id.as_ref().map(JobId::to_string)),
            ("replace", self.replace.then(|| "true".to_owned())),
            ("attempts", self.attempts.map(|attempts| attempts.to_string())),
            ("backoff", self.backoff.as_ref().map(Backoff::to_string)),
            ("ttl", self.ttl.map(|ttl| ttl.to_string())),
        ];
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in said.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            query.append_pair(name, value);
        }
        let (path, query) = (format!("http://127.0.0.1:4747/v1/queues/{}/jobs", self.queue), query.finish());
        let url = if query.is_empty() { path } else { format!("{path}?{query}") };
        let content_type = self.content_type.iter().map(|kind| format!("Content-Type: {kind}"));
        let headers = self.headers.iter().map(|(name, value)| format!("Delayline-Header-{name}: {value}"));
        let headers = content_type.chain(headers).flat_map(|header| ["-H".to_string(), quoted(&header)]);
        let body = self.body.as_ref().map_or("@-".to_string(), |body| quoted(body));
        let words =
            ["curl".to_string()].into_iter().chain(headers).chain(["--data-binary".to_string(), body]);
        words.chain([quoted(&url)]).collect::<Vec<_>>().join(" ")
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
