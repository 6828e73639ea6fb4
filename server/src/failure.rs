use std::net::SocketAddr;

use delayline_tokio::Error;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::problem::Problem;

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
    /// An address that others can reach.
    #[error(
        "{0} can be reached from other machines, and there are no tokens yet: anyone there could read and change every \
         queue. Listen on 127.0.0.1 behind a proxy, or accept that with --insecure"
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
    /// A command line that says what cannot be.
    #[error("{0}")]
    Usage(String),
    /// The queue refused, or Redis does not answer.
    #[error(transparent)]
    Queue(#[from] Error),
    /// The id is in use.
    #[error("queue {queue} has a job {id}, which is untouched")]
    Duplicate {
        /// Which queue.
        queue: String,
        /// Which job.
        id: String,
    },
    /// There is no such queue.
    #[error("there is no queue {0}: its first job makes it")]
    NoSuchQueue(String),
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

impl Failure {
    /// 1 if it was refused, 2 if the command line was wrong, 3 if Redis did not answer and trying again may help, 130 if
    /// it was told twice to stop.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::NoRedis { .. }
            | Failure::Exposed(_)
            | Failure::Usage(_)
            | Failure::Queue(Error::Name(_) | Error::Invalid(_) | Error::Address(_)) => 2,
            Failure::Queue(
                Error::NotSent { .. } | Error::Unknown { .. } | Error::Busy | Error::Unreachable { .. },
            ) => 3,
            // As a shell says it of whatever ctrl-c has ended.
            Failure::Interrupted => 130,
            _ => 1,
        }
    }

    /// As one line of JSON.
    pub(crate) fn json(self) -> String {
        let (code, detail) = match self {
            Failure::NoRedis { .. } => ("no_redis", self.to_string()),
            Failure::Exposed(_) => ("exposed", self.to_string()),
            Failure::Listen { .. } => ("cannot_listen", self.to_string()),
            Failure::Usage(_) => ("usage", self.to_string()),
            Failure::Duplicate { .. } => ("duplicate", self.to_string()),
            Failure::NoSuchQueue(_) => ("no_such_queue", self.to_string()),
            Failure::Interrupted => ("interrupted", self.to_string()),
            Failure::Io(_) => ("io", self.to_string()),
            Failure::Queue(error) => {
                let problem = Problem::from(error);
                (problem.code, problem.detail)
            }
        };
        serde_json::to_string(&Shown { code, detail: &detail }).unwrap_or_default()
    }
}
