use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delayline_http::Time;
use delayline_tokio::{Delivery, Reason, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::time::timeout;

/// How long stderr is read after the command ended, in case something it started holds it open.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The end of what a command wrote to stderr.
type Tail = Arc<Mutex<Vec<u8>>>;

/// Runs a command for a job: its exit decides what becomes of the job. Dropping the future kills the command.
pub(crate) async fn run(command: &str, job: &Delivery) -> Verdict {
    let failed = match attempt(command, job).await {
        Ok(None) => return Verdict::Ack,
        Ok(Some(failed)) => failed,
        Err(error) => format!("the command cannot be run: {error}"),
    };
    Verdict::Nack { after_ms: None, reason: Reason::new(&failed) }
}

/// What went wrong, if something did: the end of stderr, or the exit status if that is empty.
async fn attempt(command: &str, job: &Delivery) -> std::io::Result<Option<String>> {
    let mut child = shell(command, job).spawn()?;
    let group = Group::of(&child);
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
    Ok(Some(if said.is_empty() { status.to_string() } else { said }))
}

/// A command with all that it started: killed together when this is dropped before the command has ended.
struct Group(#[cfg(unix)] Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    fn of(leader: &Child) -> Group {
        let id = leader.id().and_then(|id| i32::try_from(id).ok());
        Group(id.and_then(rustix::process::Pid::from_raw))
    }

    fn ended(mut self) {
        self.0 = None;
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(windows)]
impl Group {
    fn of(_: &Child) -> Group {
        Group()
    }

    fn ended(self) {}
}

fn shell(command: &str, job: &Delivery) -> Command {
    let mut shell = if cfg!(windows) { Command::new("cmd") } else { Command::new("sh") };
    shell.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(command);
    shell
        .env("DELAYLINE_QUEUE", job.lease.queue.as_str())
        .env("DELAYLINE_ID", job.lease.id.as_str())
        .env("DELAYLINE_ATTEMPT", job.attempt.to_string())
        .env("DELAYLINE_MAX_ATTEMPTS", job.max_attempts.to_string())
        .env("DELAYLINE_DUE", Time(job.due).to_string())
        .env("DELAYLINE_PUBLISHED", Time(job.published).to_string())
        .env("DELAYLINE_LEASE", job.lease.to_string())
        .env("DELAYLINE_CONTENT_TYPE", job.content_type.as_deref().unwrap_or_default());
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
    format!("DELAYLINE_HEADER_{}", name.collect::<String>())
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
