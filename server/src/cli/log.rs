use std::str::FromStr;

use clap::{Args, ValueEnum};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// What is logged, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Log {
    /// How much to log: info if the command runs on, else less. RUST_LOG, if this is not given, may say it by module
    #[arg(
        long,
        value_name = "LEVEL",
        env = "DELAYLINE_LOG_LEVEL",
        global = true,
        help_heading = "Global options"
    )]
    log_level: Option<Level>,
    /// How log lines are written; json with --json, else text
    #[arg(
        long,
        value_name = "FORMAT",
        env = "DELAYLINE_LOG_FORMAT",
        global = true,
        help_heading = "Global options"
    )]
    log_format: Option<Format>,
}

/// From which level on lines are logged.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

impl Log {
    /// Whether lines are JSON, for a command that was told to write results as JSON or not.
    pub(crate) fn is_json(&self, json: bool) -> bool {
        self.log_format.map_or(json, |format| format == Format::Json)
    }

    /// Sends lines to stderr, from `usual` on unless something else is said. A thread of its own writes them: a reader that
    /// stalls stalls nobody, and loses lines. What is left is written when the guard is dropped.
    pub(crate) fn start(&self, usual: Level, json: bool) -> WorkerGuard {
        let (writer, guard) = NonBlockingBuilder::default().thread_name("log").finish(std::io::stderr());
        let coloured = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
        let (filter, unread) = self.filter(usual);
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(writer)
            .with_ansi(coloured)
            .with_target(false);
        let _ = if self.is_json(json) { log.json().try_init() } else { log.try_init() };
        if let Some(why) = unread {
            tracing::warn!("RUST_LOG is ignored: {why}");
        }
        guard
    }

    /// What is logged, and why RUST_LOG cannot be read if it cannot.
    fn filter(&self, usual: Level) -> (EnvFilter, Option<String>) {
        let modules = std::env::var("RUST_LOG").ok().filter(|modules| !modules.is_empty());
        match (self.log_level, modules) {
            (Some(level), _) => (level.filter(), None),
            (None, None) => (usual.filter(), None),
            (None, Some(modules)) => match EnvFilter::try_new(modules) {
                Ok(filter) => (filter, None),
                Err(why) => (usual.filter(), Some(why.to_string())),
            },
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        ValueEnum::from_str(text, true)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        ValueEnum::from_str(text, true)
    }
}

impl Level {
    /// What is below info comes from delayline alone.
    fn filter(self) -> EnvFilter {
        EnvFilter::new(match self {
            Level::Off => "off",
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "info,delayline=debug,delayline_tokio=debug",
            Level::Trace => "info,delayline=trace,delayline_tokio=trace",
        })
    }
}
