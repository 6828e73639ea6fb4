mod group;

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::group::{Group, Heir};
use delayline_http::Time;
use delayline_tokio::{Delivery, Reason, Span, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, Command};
use tokio::time::timeout;

/// How long stderr is read after the command ended, in case something it started holds it open.
const AFTERMATH: Duration = Duration::from_secs(1);

/// What a command finds in its environment, in the order in which [`shell`] gives the values.
const VARIABLES: [&str; 8] = [
    "DELAYLINE_QUEUE",
    "DELAYLINE_ID",
    "DELAYLINE_ATTEMPT",
    "DELAYLINE_MAX_ATTEMPTS",
    "DELAYLINE_DUE",
    "DELAYLINE_PUBLISHED",
    "DELAYLINE_LEASE",
    "DELAYLINE_CONTENT_TYPE",
];
const HEADER: &str = "DELAYLINE_HEADER_";
/// By `EX_TEMPFAIL` of sysexits.h a command says that it cannot do the job now, through no fault of the job's.
const SNOOZE: i32 = 75;
/// By `EX_DATAERR` it says that the job will never be done.
const BURY: i32 = 65;

/// Whether a variable is one that tells a command of its job.
pub(crate) fn is_of_job(variable: &str) -> bool {
    VARIABLES.contains(&variable) || variable.starts_with(HEADER)
}

/// The end of what a command wrote to stderr.
type Tail = Arc<Mutex<Vec<u8>>>;

/// Runs a command for each job.
pub(crate) struct Exec {
    command: String,
    snooze: Span,
    heir: Heir,
}

/// How a command ended that did not do its job.
struct Failed {
    code: Option<i32>,
    /// The end of stderr, or the exit status if that is empty.
    why: String,
}

impl Exec {
    /// A job that the command snoozes comes again after `snooze`.
    pub(crate) fn new(command: &str, snooze: Span) -> std::io::Result<Exec> {
        Ok(Exec { command: command.to_owned(), snooze, heir: Heir::appoint()? })
    }

    /// Runs the command for a job: its exit decides what becomes of the job. Dropping the future kills the command.
    pub(crate) async fn run(&self, job: &Delivery) -> Verdict {
        let failed = match self.attempt(job).await {
            Ok(None) => return Verdict::Ack,
            Ok(Some(failed)) => failed,
            Err(error) => Failed { code: None, why: format!("the command cannot be run: {error}") },
        };
        let reason = Reason::new(&failed.why);
        match failed.code {
            Some(SNOOZE) => Verdict::Snooze { after_ms: self.snooze.0 },
            Some(BURY) => Verdict::Bury { reason },
            _ => Verdict::Nack { after_ms: None, reason },
        }
    }

    /// What went wrong, if something did.
    async fn attempt(&self, job: &Delivery) -> std::io::Result<Option<Failed>> {
        let mut child = shell(&self.command, job).spawn()?;
        let group = Group::of(&child, &self.heir);
        let tail = Tail::default();
        let copying = child.stderr.take().map(|stderr| tokio::spawn(copy(stderr, Arc::clone(&tail))));
        let ((), status) = tokio::join!(feed(child.stdin.take(), &job.body), child.wait());
        group.ended();
        let status = status?;
        if let Some(copying) = copying {
            let _ = timeout(AFTERMATH, copying).await;
        }
        if status.success() {
            return Ok(None);
        }
        let tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&tail).trim().to_string();
        let why = if said.is_empty() { status.to_string() } else { said };
        Ok(Some(Failed { code: status.code(), why }))
    }
}

fn shell(command: &str, job: &Delivery) -> Command {
    let mut shell = if cfg!(windows) { Command::new("cmd") } else { Command::new("sh") };
    shell.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(command);
    let values = [
        job.lease.queue.to_string(),
        job.lease.id.to_string(),
        job.attempt.to_string(),
        job.max_attempts.to_string(),
        Time(job.due).to_string(),
        Time(job.published).to_string(),
        job.lease.to_string(),
        job.content_type.as_deref().unwrap_or_default().to_owned(),
    ];
    shell.envs(VARIABLES.into_iter().zip(values));
    for (name, value) in &job.headers {
        shell.env(variable(name), value);
    }
    shell.stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    shell.process_group(0);
    shell
}

fn variable(header: &str) -> String {
    let name = header.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("{HEADER}{}", name.collect::<String>())
}

/// Writes the payload; a command need not read it.
async fn feed(stdin: Option<ChildStdin>, body: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(body).await;
    }
}

/// Passes stderr on to ours, and keeps its end.
async fn copy(mut stderr: ChildStderr, tail: Tail) {
    let (mut ours, mut chunk) = (tokio::io::stderr(), [0; 4096]);
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let _ = ours.write_all(&chunk[..read]).await;
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&chunk[..read]);
        let surplus = tail.len().saturating_sub(Reason::MAX);
        tail.drain(..surplus);
    }
}
