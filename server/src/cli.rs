//! The command line: what it reads, does and prints.

#[cfg(target_os = "linux")]
mod allocator;
pub(crate) mod commands;
pub(crate) mod exec;
pub(crate) mod fields;
pub(crate) mod file;
pub(crate) mod help;
pub(crate) mod log;
pub(crate) mod nearest;
pub(crate) mod print;
pub(crate) mod printer;
pub(crate) mod queue;
pub(crate) mod redis;
pub(crate) mod settings;
pub(crate) mod stop;
pub(crate) mod table;
pub(crate) mod variables;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ColorChoice, FromArgMatches, Parser, Subcommand};
use tokio::runtime::Runtime;

use self::commands::{
    Cancel, Completions, Config, Consume, Dead, Destroy, Doctor, Edit, Import, Job, List, Man, Namespace,
    Pause, Publish, Pump, Push, Queues, Release, Replay, Reschedule, Rest, Resume, Serve, Stats, Token,
    Trace,
};

use self::log::{Level, Log};
use self::redis::Redis;
use self::settings::{Settings, Unread};
use crate::failure::Failure;

/// How long threads that cannot be told to stop are waited for at the end.
const PATIENCE: Duration = Duration::from_millis(500);

/// A delayed-job queue on Redis
#[derive(Debug, Parser)]
#[command(name = "delayline", version, after_help = help::TOP, max_term_width = 100)]
pub struct Cli {
    /// Write JSON: results, errors and log lines
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    /// Whether to use colours; auto also heeds NO_COLOR
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t = ColorChoice::Auto,
        global = true,
        help_heading = "Global options"
    )]
    color: ColorChoice,
    /// A TOML file of settings, instead of ./delayline.toml or delayline/config.toml in ~/.config
    #[arg(
        long = "config",
        id = "config",
        value_name = "FILE",
        env = "DELAYLINE_CONFIG",
        global = true,
        help_heading = "Global options"
    )]
    settings: Option<PathBuf>,
    #[command(flatten)]
    log: Log,
    /// Where the jobs are.
    #[command(flatten)]
    pub redis: Redis,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Publish a job, or a line of NDJSON each
    Publish(Publish),
    /// Print jobs as they are due, or run a command for each
    Consume(Consume),
    /// Show a job: where it is, when it is due, what it carries
    Job(Job),
    /// List the jobs of a queue that are ready, delayed, leased or dead
    List(List),
    /// Take waiting jobs away
    Cancel(Cancel),
    /// Give waiting jobs another due time
    Reschedule(Reschedule),
    /// Change a waiting job: its payload, headers, attempts, backoff, TTL or due time
    Edit(Edit),
    /// Take jobs from the consumers that hold them
    Release(Release),
    /// List, requeue or purge dead letters
    Dead(Dead),
    /// Name the queues
    Queues(Queues),
    /// Show how much is in a queue, or in each
    Stats(Stats),
    /// Read or change the config of a queue, or show the settings of this command line
    Config(Config),
    /// Stop deliveries from a queue; publishing goes on
    Pause(Pause),
    /// End a pause
    Resume(Resume),
    /// Remove a queue with all it holds
    Destroy(Destroy),
    /// List namespaces, and say how much one may hold
    Namespace(Namespace),
    /// Make, list, rotate and revoke the tokens that the service lets in
    Token(Token),
    /// Serve the queues over HTTP, in memory unless a Redis is given
    Serve(Serve),
    /// Serve a Redis over HTTP as Upstash does, for workers at the edge
    Rest(Rest),
    /// Let jobs expire, be forwarded and be purged though nobody consumes
    Pump(Pump),
    /// Push the jobs of queues whose config names a URL
    Push(Push),
    /// Check that Redis is fit for a queue, and say what to mend
    Doctor(Doctor),
    /// Move the jobs of another system (lmstfy, Redisson) into queues
    Import(Import),
    /// Step the engine through a recording, and print what it decides in words
    Replay(Replay),
    /// Tell the story of one job out of a recording
    Trace(Trace),
    /// Print what makes a shell complete commands and options
    Completions(Completions),
    /// Print the manual, or write a page a command
    Man(Man),
}

/// Does what the command line says, and says on stderr what went wrong: the whole program.
///
/// It is no `async fn`, which each program that calls it would compile anew.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    allocator::give_back_soon();
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(why) => {
            eprintln!("delayline: the operating system gave no threads: {why}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(run(std::env::args_os().collect()));
    // What was started is killed as its task ends; a read from stdin that is under way cannot be ended.
    runtime.shutdown_timeout(PATIENCE);
    code
}

async fn run(words: Vec<OsString>) -> ExitCode {
    let said = |word: &str| words.iter().take_while(|given| *given != "--").any(|given| given == word);
    let wants_json = said("--json");
    let read = settings::read(help::command(color(&words)), &words);
    let parsed = read.and_then(|(matches, settings)| {
        Ok((Cli::from_arg_matches(&matches).map_err(Unread::Usage)?, settings))
    });
    match parsed {
        Ok((cli, settings)) => cli.run(&settings).await,
        Err(Unread::Usage(error)) if wants_json && error.use_stderr() => {
            ended(Err(Failure::Usage(error.render().to_string())), true)
        }
        Err(Unread::Usage(error)) => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
        Err(Unread::File(failure)) => ended(Err(failure), wants_json),
    }
}

impl Cli {
    async fn run(self, settings: &Settings) -> ExitCode {
        let choice = match self.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        let log = self.log.start(self.command.usual_log_level(), self.json);
        let done = self.attempt(settings).await;
        if done.is_ok() && self.command.runs_on() {
            tracing::info!("stopped");
        }
        drop(log);
        ended(done, self.log.is_json(self.json))
    }

    async fn attempt(&self, settings: &Settings) -> Result<(), Failure> {
        let Cli { redis, json, .. } = self;
        match &self.command {
            Command::Publish(publish) => publish.run(redis, *json).await,
            Command::Consume(consume) => consume.run(redis, *json).await,
            Command::Job(job) => job.run(redis, *json).await,
            Command::List(list) => list.run(redis, *json).await,
            Command::Cancel(cancel) => cancel.run(redis, *json).await,
            Command::Reschedule(reschedule) => reschedule.run(redis, *json).await,
            Command::Edit(edit) => edit.run(redis, *json).await,
            Command::Release(release) => release.run(redis, *json).await,
            Command::Dead(dead) => dead.run(redis, *json).await,
            Command::Queues(queues) => queues.run(redis, *json).await,
            Command::Stats(stats) => stats.run(redis, *json).await,
            Command::Config(config) => config.run(redis, settings, *json).await,
            Command::Pause(pause) => pause.run(redis, *json).await,
            Command::Resume(resume) => resume.run(redis, *json).await,
            Command::Destroy(destroy) => destroy.run(redis, *json).await,
            Command::Namespace(namespace) => namespace.run(redis, *json).await,
            Command::Token(token) => token.run(redis, *json).await,
            Command::Serve(serve) => serve.run(redis).await,
            Command::Rest(rest) => rest.run(redis).await,
            Command::Pump(pump) => pump.run(redis).await,
            Command::Push(push) => push.run(redis).await,
            Command::Doctor(doctor) => doctor.run(redis, *json).await,
            Command::Import(import) => import.run(redis, *json).await,
            Command::Replay(replay) => replay.run(*json),
            Command::Trace(trace) => trace.run(*json),
            Command::Completions(completions) => completions.run(*json),
            Command::Man(man) => man.run(*json),
        }
    }
}

impl Command {
    /// Whether it goes on until it is told to stop.
    fn runs_on(&self) -> bool {
        matches!(
            self,
            Command::Serve(_) | Command::Rest(_) | Command::Consume(_) | Command::Pump(_) | Command::Push(_)
        )
    }

    /// A command that ends by itself says at its end what went wrong; one that may last says when Redis is away.
    fn usual_log_level(&self) -> Level {
        match self {
            _ if self.runs_on() => Level::Info,
            Command::Stats(stats) if stats.watches() => Level::Warn,
            Command::Publish(publish) if publish.has_many() => Level::Warn,
            Command::Import(_) => Level::Warn,
            _ => Level::Error,
        }
    }
}

fn ended(done: Result<(), Failure>, json: bool) -> ExitCode {
    let Err(failure) = done else { return ExitCode::SUCCESS };
    if failure.is_unread() {
        return ExitCode::SUCCESS;
    }
    let code = failure.exit_code();
    if json {
        eprintln!("{}", failure.json());
    } else {
        let bad = help::BAD;
        anstream::eprintln!("{bad}delayline:{bad:#} {failure}");
    }
    ExitCode::from(code)
}

/// What is said of colours, for what is printed before the command line is understood.
fn color(words: &[OsString]) -> ColorChoice {
    let words = words.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let mut said = words.skip_while(|word| *word != "--color" && !word.starts_with("--color="));
    let value = match said.next().and_then(|word| word.split_once('=')) {
        Some((_, value)) => Some(value),
        None => said.next(),
    };
    value.and_then(|value| value.parse().ok()).unwrap_or(ColorChoice::Auto)
}
