use std::net::SocketAddr;
use std::path::PathBuf;

use delayline_http::Problem;
use delayline_tokio::{Error, QueueName};
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::cli::stop::INTERRUPTED;
use crate::service::registry::RegistryError;
use crate::service::rejection::problem;

/// Why a command failed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Failure {
    /// It was not said where Redis is.
    #[error(
        "no Redis: give --redis redis://127.0.0.1/ or set DELAYLINE_REDIS_URL. The in-memory store lives inside \
         `delayline serve`; with that running, this does the same:\n\n  {curl}\n"
    )]
    NoRedis {
        /// The same over HTTP.
        curl: String,
    },
    /// It was not said where Redis is, and only on a Redis does the command mean anything.
    #[error(
        "no Redis: give --redis redis://127.0.0.1/ or set DELAYLINE_REDIS_URL. The in-memory store lives inside \
         `delayline serve`, which {0}"
    )]
    NeedsRedis(&'static str),
    /// Redis did not answer while the client was being connected.
    #[error(
        "{address} cannot be reached: {why}. Start it, or say with --redis or DELAYLINE_REDIS_URL where it is; \
         `delayline doctor` looks closer"
    )]
    Unreachable {
        /// Where Redis was looked for.
        address: String,
        /// The last failure.
        why: String,
    },
    /// An address that others can reach.
    #[error(
        "{0} can be reached from other machines, and there are no tokens: anyone there could read and change every \
         queue. Make one by `delayline token create`, or give one by --token-file, or listen on 127.0.0.1 behind a \
         proxy, or accept that with --insecure"
    )]
    Exposed(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// Which.
        address: String,
        /// Why not.
        why: std::io::Error,
    },
    /// A file of a certificate or key that cannot be used.
    #[error("{}: {why}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and what it is to be.
        why: String,
    },
    /// A command line that says what cannot be.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write into {}: {why}", path.display())]
    Unwritable {
        /// Where.
        path: PathBuf,
        /// Why not.
        why: std::io::Error,
    },
    /// A file of settings says what cannot be.
    #[error("{}, line {line}: {why}", path.display())]
    Settings {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The queue refused, or Redis does not answer.
    #[error(transparent)]
    Queue(Error),
    /// What services share beside jobs cannot be read or changed.
    #[error("{0}")]
    Registry(String),
    /// Nothing limits the namespace.
    #[error("nothing limits the namespace {0}")]
    NotLimited(String),
    /// The service's own rules refuse it.
    #[error("{detail}")]
    Refused {
        /// What kind of problem it is, for programs.
        code: &'static str,
        /// What happened, and what to do.
        detail: String,
    },
    /// The id is in use.
    #[error("queue {queue} has a job {id}, which is untouched")]
    Duplicate {
        /// Which queue.
        queue: String,
        /// Which job.
        id: String,
    },
    /// There is no such queue.
    #[error("{}", no_such_queue(name, nearest.as_deref(), *may_create))]
    NoSuchQueue {
        /// Which.
        name: String,
        /// The queue whose name comes nearest, if one is near.
        nearest: Option<String>,
        /// Whether the command makes it, if that is asked for.
        may_create: bool,
    },
    /// Variables of the environment that nothing reads.
    #[error("{0}")]
    Variables(String),
    /// There is no such job.
    #[error("queue {queue} has no job {id}: it may have been acked, cancelled or expired")]
    NoSuchJob {
        /// Which queue.
        queue: String,
        /// Which job.
        id: String,
    },
    /// It is refused, as the service would.
    #[error("{detail}")]
    Problem {
        /// What kind of problem it is, for programs.
        code: &'static str,
        /// What happened, and what to do.
        detail: String,
    },
    /// The queue was not destroyed, since nobody said that it should be.
    #[error("queue {0} is untouched: its name was not typed")]
    Unconfirmed(String),
    /// Some of what was asked for was not done; each was told of.
    #[error("{failed} of {all} {what}")]
    Partly {
        /// How many not.
        failed: u64,
        /// Of how many.
        all: u64,
        /// What were not done to what.
        what: &'static str,
    },
    /// The input was not read to its end.
    #[error("told to stop: the input was published up to line {0}, and not after it")]
    Cut(u64),
    /// An import was told to stop.
    #[error("told to stop before all was moved: run it again to move the rest")]
    StoppedImport,
    /// A plain command to Redis failed.
    #[error("{address}: {why}")]
    Redis {
        /// Which Redis.
        address: String,
        /// What it said, or why it said nothing.
        why: String,
    },
    /// Another process imports from there.
    #[error("another import from {address} is running: wait for its end, or stop it and run this again")]
    Importing {
        /// Which Redis.
        address: String,
    },
    /// The system whose jobs are to be moved still runs.
    #[error(
        "{0} still works on what is to be imported: stop it, then run this again; with --live it may go on, and jobs that \
         its consumers hold may run twice"
    )]
    StillRunning(&'static str),
    /// An import that was broken off went elsewhere.
    #[error(
        "an import from there broke off that went to another Redis, or queue {queue} was destroyed since: run it with the \
         same --redis and --prefix first, since jobs may be on their way. If those queues are gone for good, delete \
         the keys of that import, which begin as {key}"
    )]
    OtherDestination {
        /// A queue that it has paused there.
        queue: String,
        /// The key of its journal.
        key: String,
    },
    /// The doctor found something.
    #[error("{0} of the checks failed: what to mend is said with each")]
    Unhealthy(usize),
    /// A recording does not make sense, or stops in the middle.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A replay is not what was recorded.
    #[error(
        "{count} of the decisions differ from the recorded ones, the first at {at}: recorded by version {version}, replayed by {}",
        env!("CARGO_PKG_VERSION")
    )]
    Diverged {
        /// How many do.
        count: u64,
        /// When the first was made, by the engine's clock.
        at: String,
        /// The version that recorded it.
        version: String,
    },
    /// The engine panics in a replay.
    #[error("the engine panics at {at}, as it may have done when this was recorded")]
    Panicked {
        /// When, by the engine's clock.
        at: String,
    },
    /// Nothing in a recording is about the job.
    #[error("nothing in the recording is about a job {0}")]
    NotRecorded(String),
    /// It was told twice to stop.
    #[error("stopped at once: what was held comes back when its lease ends")]
    Interrupted,
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[derive(Serialize)]
struct Shown<'a> {
    code: &'a str,
    detail: &'a str,
}

impl From<Problem> for Failure {
    fn from(Problem { code, detail, .. }: Problem) -> Failure {
        Failure::Refused { code, detail }
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Failure {
        match error {
            RegistryError::Unreachable { address, why } => Failure::Unreachable { address, why },
            error => Failure::Registry(error.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Unreachable { address, why } => Failure::Unreachable { address, why },
            error => Failure::Queue(error),
        }
    }
}

fn no_such_queue(name: &str, nearest: Option<&str>, may_create: bool) -> String {
    let nearest = nearest.map(|nearest| format!(" (is it {nearest} that you mean?)")).unwrap_or_default();
    let way_out = if may_create { "to make it, add --create" } else { "its first job makes it" };
    format!("there is no queue {name}{nearest}: {way_out}")
}

impl Failure {
    /// That there is no such queue.
    pub(crate) fn no_such_queue(name: &QueueName) -> Failure {
        Failure::NoSuchQueue { name: name.to_string(), nearest: None, may_create: false }
    }

    /// That there is no such queue, and that the command was not told to make it.
    pub(crate) fn not_created(name: &QueueName) -> Failure {
        Failure::NoSuchQueue { name: name.to_string(), nearest: None, may_create: true }
    }

    /// 1 if it was refused, 2 if the command line was wrong, 3 if Redis did not answer and trying again may help, 130 if
    /// it was told to stop before it was done.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::NoRedis { .. }
            | Failure::NeedsRedis(_)
            | Failure::Exposed(_)
            | Failure::Usage(_)
            | Failure::Unreadable { .. }
            | Failure::Settings { .. }
            | Failure::Certificate { .. }
            | Failure::Variables(_)
            | Failure::Queue(Error::Name(_) | Error::Invalid(_) | Error::Address(_) | Error::Config(_)) => 2,
            Failure::Unreachable { .. }
            | Failure::Redis { .. }
            | Failure::Queue(
                Error::NotSent { .. } | Error::Unknown { .. } | Error::Busy | Error::Refused { .. },
            ) => 3,
            Failure::Interrupted | Failure::Cut(_) | Failure::StoppedImport => INTERRUPTED,
            _ => 1,
        }
    }

    /// Whether nobody reads what was to be written any more, as after `| head`.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(self, Failure::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// As one line of JSON.
    pub(crate) fn json(self) -> String {
        let detail = self.to_string();
        let (code, detail) = match self {
            Failure::NoRedis { .. } | Failure::NeedsRedis(_) => ("no_redis", detail),
            Failure::Unreachable { .. } => ("unreachable", detail),
            Failure::Exposed(_) => ("exposed", detail),
            Failure::Listen { .. } => ("cannot_listen", detail),
            Failure::Usage(_) => ("usage", detail),
            Failure::Unreadable { .. } => ("cannot_read", detail),
            Failure::Unwritable { .. } => ("cannot_write", detail),
            Failure::Settings { .. } => ("bad_settings", detail),
            Failure::Certificate { .. } => ("bad_certificate", detail),
            Failure::Registry(_) => ("registry", detail),
            Failure::NotLimited(_) => ("not_limited", detail),
            Failure::Refused { code, detail } => (code, detail),
            Failure::Duplicate { .. } => ("duplicate", detail),
            Failure::NoSuchQueue { .. } => ("no_such_queue", detail),
            Failure::Variables(_) => ("unknown_variable", detail),
            Failure::NoSuchJob { .. } => ("no_such_job", detail),
            Failure::Problem { code, .. } => (code, detail),
            Failure::Unconfirmed(_) => ("unconfirmed", detail),
            Failure::Partly { .. } => ("partly", detail),
            Failure::Cut(_) => ("cut", detail),
            Failure::StoppedImport => ("stopped", detail),
            Failure::Redis { .. } => ("redis", detail),
            Failure::Importing { .. } => ("importing", detail),
            Failure::StillRunning(_) => ("still_running", detail),
            Failure::OtherDestination { .. } => ("other_destination", detail),
            Failure::Damaged { .. } => ("damaged", detail),
            Failure::Diverged { .. } => ("diverged", detail),
            Failure::Panicked { .. } => ("panicked", detail),
            Failure::NotRecorded(_) => ("not_recorded", detail),
            Failure::Unhealthy(_) => ("unhealthy", detail),
            Failure::Interrupted => ("interrupted", detail),
            Failure::Io(_) => ("io", detail),
            Failure::Queue(error) => {
                let problem = problem(error);
                (problem.code, problem.detail)
            }
        };
        serde_json::to_string(&Shown { code, detail: &detail }).unwrap_or_default()
    }
}
