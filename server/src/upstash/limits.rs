use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;
use delayline_tokio::Span;

use crate::failure::Failure;
use crate::service::limits::{Patience, max_connections};
use crate::service::peers::{PeerLimits, Peers};
use crate::service::rate::RateLimit;

/// The least that a limit on bytes may be.
const BYTES_MIN: u64 = 64 << 10;
/// The least memory for all bodies.
const MEMORY_MIN: u64 = 1 << 20;

/// What clients may ask of the endpoint, and how long it waits for them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// The most connections at once; unless given, what file descriptors allow, and at most 16384
    #[arg(long, value_name = "N", env = "DELAYLINE_REST_MAX_CONNECTIONS")]
    max_connections: Option<usize>,
    /// The most bytes of a request's body, and no more than --max-body-memory
    #[arg(long, value_name = "SIZE", default_value = "10MiB", env = "DELAYLINE_REST_MAX_REQUEST")]
    max_request: ByteSize,
    /// The most bytes of an answer, and no more than --max-body-memory
    #[arg(long, value_name = "SIZE", default_value = "64MiB", env = "DELAYLINE_REST_MAX_ANSWER")]
    max_answer: ByteSize,
    /// The most bytes of bodies in memory, of all requests together, and as many of answers that are not read yet
    #[arg(long, value_name = "SIZE", default_value = "192MiB", env = "DELAYLINE_REST_MAX_BODY_MEMORY")]
    max_body_memory: ByteSize,
    /// The most commands of a request
    #[arg(long, value_name = "N", default_value = "10000", env = "DELAYLINE_REST_MAX_COMMANDS")]
    max_commands: usize,
    /// The most words of a request: names and arguments of all its commands
    #[arg(long, value_name = "N", default_value = "100000", env = "DELAYLINE_REST_MAX_WORDS")]
    max_words: usize,
    /// The most commands a second, of all clients together, as in 100/s or '100/s burst 200'; unless given, any number
    #[arg(long, value_name = "RATE", env = "DELAYLINE_REST_MAX_COMMAND_RATE")]
    max_command_rate: Option<RateLimit>,
    /// The most event streams at once, and at most half of the connections
    #[arg(long, value_name = "N", default_value = "1024", env = "DELAYLINE_REST_MAX_SUBSCRIPTIONS")]
    max_subscriptions: usize,
    /// The most event streams of one IP address; behind a proxy all clients have one address
    #[arg(
        long,
        value_name = "N",
        default_value = "256",
        env = "DELAYLINE_REST_MAX_SUBSCRIPTIONS_PER_CLIENT"
    )]
    max_subscriptions_per_client: usize,
    /// How long the head of a request may take, from its first byte
    #[arg(long, value_name = "TIME", default_value = "10s", env = "DELAYLINE_REST_HEAD_TIMEOUT")]
    head_timeout: Span,
    /// How long a body may make no progress, of a request or of an answer
    #[arg(long, value_name = "TIME", default_value = "10s", env = "DELAYLINE_REST_BODY_TIMEOUT")]
    body_timeout: Span,
    /// How long a connection may be without a request; longer than a proxy in front keeps its own
    #[arg(long, value_name = "TIME", default_value = "75s", env = "DELAYLINE_REST_IDLE_TIMEOUT")]
    idle_timeout: Span,
}

/// The most that one request may have, and its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestLimits {
    /// Bytes of its body.
    pub(super) bytes: usize,
    pub(super) commands: usize,
    /// Names and arguments of all its commands.
    pub(super) words: usize,
    /// Bytes of its answer.
    pub(super) answer_bytes: usize,
}

impl Limits {
    /// Checks what the command line does not.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        let refused = |option: &str, what: &str| Err(Failure::Usage(format!("--{option} must be {what}")));
        for (option, time) in [
            ("head-timeout", self.head_timeout),
            ("body-timeout", self.body_timeout),
            ("idle-timeout", self.idle_timeout),
        ] {
            if !(100..=86_400_000).contains(&time.0) {
                return refused(option, "100ms to 1d");
            }
        }
        if self.max_body_memory.as_u64() < MEMORY_MIN {
            return refused("max-body-memory", "1MiB at least");
        }
        for (option, size) in [("max-request", self.max_request), ("max-answer", self.max_answer)] {
            if size.as_u64() < BYTES_MIN {
                return refused(option, "64KiB at least");
            }
        }
        for (option, most) in [
            ("max-connections", self.max_connections.unwrap_or(1)),
            ("max-commands", self.max_commands),
            ("max-words", self.max_words),
        ] {
            if most == 0 {
                return refused(option, "1 at least");
            }
        }
        Ok(())
    }

    pub(crate) fn patience(&self) -> Patience {
        let of = |span: Span| Duration::from_millis(span.0);
        Patience {
            header: of(self.head_timeout),
            body: of(self.body_timeout),
            idle: of(self.idle_timeout),
            ..Patience::default()
        }
    }

    /// What is shared by connections within these limits. An event stream counts as a take that waits: for its client it is
    /// the same, a request that is answered when something happens.
    pub(crate) fn peers(&self) -> Arc<Peers> {
        let connections = max_connections(self.max_connections);
        Peers::new(PeerLimits {
            max_connections: connections,
            max_body_memory: bytes(self.max_body_memory),
            max_takes_per_client: self.max_subscriptions_per_client,
            ..PeerLimits::default()
        })
    }

    /// The most event streams, of `connections`: half of these are for requests.
    pub(super) fn max_subscriptions(&self, connections: usize) -> usize {
        self.max_subscriptions.min(connections / 2)
    }

    pub(super) fn max_command_rate(&self) -> Option<RateLimit> {
        self.max_command_rate
    }

    /// The most bytes of answers that are not read yet.
    pub(super) fn answer_memory(&self) -> usize {
        bytes(self.max_body_memory)
    }

    pub(super) fn of_request(&self) -> RequestLimits {
        RequestLimits {
            bytes: bytes(self.max_request).min(bytes(self.max_body_memory)),
            commands: self.max_commands,
            words: self.max_words,
            answer_bytes: bytes(self.max_answer).min(bytes(self.max_body_memory)),
        }
    }
}

fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    fn limits(words: &[&str]) -> Limits {
        let words = ["rest"].iter().chain(words);
        Limits::from_arg_matches(&Limits::augment_args(Command::new("rest")).get_matches_from(words)).unwrap()
    }

    #[test]
    fn a_limit_that_lets_nothing_through_is_refused() {
        assert!(limits(&[]).validate().is_ok());
        for (words, says) in [
            (["--max-commands", "0"], "--max-commands must be 1 at least"),
            (["--max-words", "0"], "--max-words must be 1 at least"),
            (["--max-connections", "0"], "--max-connections must be 1 at least"),
            (["--max-request", "1KiB"], "--max-request must be 64KiB at least"),
            (["--max-answer", "1KiB"], "--max-answer must be 64KiB at least"),
            (["--max-body-memory", "1KiB"], "--max-body-memory must be 1MiB at least"),
            (["--body-timeout", "1ms"], "--body-timeout must be 100ms to 1d"),
        ] {
            let refused = limits(&words).validate().unwrap_err().to_string();
            assert!(refused.contains(says), "{words:?}: {refused}");
        }
    }

    #[test]
    fn one_request_may_have_no_more_than_all() {
        let limits = limits(&["--max-body-memory", "1MiB"]).of_request();
        assert_eq!((limits.bytes, limits.answer_bytes), (1 << 20, 1 << 20));
    }

    #[test]
    fn half_of_the_connections_are_for_requests() {
        assert_eq!(limits(&[]).max_subscriptions(10_000), 1_024);
        assert_eq!(limits(&[]).max_subscriptions(8), 4);
        assert_eq!(limits(&[]).max_subscriptions(1), 0);
    }
}
