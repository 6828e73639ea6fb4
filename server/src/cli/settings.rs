use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use delayline_tokio::redis::parse_redis_url;
use serde::Serialize;

use crate::cli::file::File;
use crate::cli::variables;
use crate::failure::Failure;

/// The options that a file may give, by the section they are in.
pub(crate) const SECTIONS: [(&str, &[&str]); 2] = [
    ("", &["redis", "prefix", "connect_timeout", "log_level", "log_format", "color"]),
    (
        "serve",
        &[
            "listen",
            "unix_mode",
            "tls_cert",
            "tls_key",
            "client_ca",
            "cors",
            "insecure",
            "strict",
            "max_payload",
            "timeout",
            "access_log",
            "token_file",
            "require_tokens",
            "audit_log",
            "flight_recorder",
            "flight_recorder_size",
            "max_connections",
            "max_connections_per_client",
            "max_takes_per_client",
            "client_requests",
            "client_body_bytes",
            "trusted_proxy",
            "proxy_header",
            "max_body_memory",
            "max_memory",
            "head_timeout",
            "body_timeout",
            "min_body_rate",
            "idle_timeout",
            "host",
            "forward_to",
            "push",
            "push_secret_file",
            "push_allow",
            "push_ca",
            "push_concurrency",
            "lmstfy",
            "lmstfy_admin",
            "lmstfy_open",
            "lmstfy_account",
        ],
    ),
];

/// The command line's own settings, each with where it comes from.
#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    /// The file that was read.
    pub(crate) file: Option<PathBuf>,
    /// What is set, and what is not.
    pub(crate) settings: Vec<Setting>,
}

/// One setting.
#[derive(Debug, Serialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) source: Source,
}

/// Where a setting comes from; the first of these that gives it wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    Flag,
    Environment,
    File,
    Default,
}

/// Why there are no settings.
pub(crate) enum Unread {
    Usage(clap::Error),
    File(Failure),
}

/// Reads the command line: flags win over the environment, that over the file, that over what is built in.
pub(crate) fn read(command: Command, words: &[OsString]) -> Result<(ArgMatches, Settings), Unread> {
    let known = command.clone();
    let command = without_empty_variables(command);
    let matches = command.clone().try_get_matches_from(words).map_err(Unread::Usage)?;
    variables::check(&known).map_err(Unread::File)?;
    let named = matches.get_one::<PathBuf>("config").filter(|path| !path.as_os_str().is_empty());
    let file = File::find(named.map(PathBuf::as_path)).map_err(Unread::File)?;
    let Some((path, file)) = file else {
        let settings = Settings::of(&command, &matches, None);
        return Ok((matches, settings));
    };
    let command = file.as_defaults(command);
    let matches = command.clone().try_get_matches_from(words).map_err(Unread::Usage)?;
    let settings = Settings::of(&command, &matches, Some((&path, &file)));
    Ok((matches, settings))
}

/// A variable that is set to nothing counts as not set, so that a script can take one back.
fn without_empty_variables(command: Command) -> Command {
    let is_empty = |arg: &clap::Arg| {
        arg.get_env().is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()))
    };
    let unset = |arg: clap::Arg| {
        if is_empty(&arg) { arg.env(clap::builder::Resettable::Reset) } else { arg }
    };
    command.mut_args(unset).mut_subcommands(|command| command.mut_args(unset))
}

impl Settings {
    fn of(command: &Command, matches: &ArgMatches, file: Option<(&Path, &File)>) -> Settings {
        let mut settings = Vec::new();
        for (section, names) in SECTIONS {
            let of_section = matches_of(section, command, matches);
            for name in names {
                let in_file = file.is_some_and(|(_, file)| file.gives(section, name));
                settings.push(Setting::of(section, name, of_section.as_ref(), in_file));
            }
        }
        Settings { file: file.map(|(path, _)| path.to_path_buf()), settings }
    }
}

/// What the command of a section would find, whichever command was given.
fn matches_of(section: &str, command: &Command, matches: &ArgMatches) -> Option<ArgMatches> {
    if section.is_empty() {
        return Some(matches.clone());
    }
    if let Some(given) = matches.subcommand_matches(section) {
        return Some(given.clone());
    }
    let others = command.clone().try_get_matches_from(["delayline", section]).ok()?;
    others.subcommand_matches(section).cloned()
}

impl Setting {
    fn of(section: &str, name: &str, matches: Option<&ArgMatches>, in_file: bool) -> Setting {
        let source = match matches.and_then(|matches| matches.value_source(name)) {
            Some(ValueSource::CommandLine) => Source::Flag,
            Some(ValueSource::EnvVariable) => Source::Environment,
            _ if in_file => Source::File,
            _ => Source::Default,
        };
        let values = matches.and_then(|matches| matches.get_raw(name)).into_iter().flatten();
        let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        let value = (!values.is_empty()).then(|| values.join(","));
        let value = if name == "redis" { value.as_deref().map(without_password) } else { value };
        let name = if section.is_empty() { name.to_string() } else { format!("{section}.{name}") };
        Setting { name, value, source }
    }
}

/// A URL whose password, wherever it stands, is not shown.
fn without_password(url: &str) -> String {
    if url.starts_with("memory:") {
        return url.to_string();
    }
    let Some(mut parsed) = parse_redis_url(url) else { return "(no address of a queue)".to_string() };
    if parsed.password().is_some() {
        let _ = parsed.set_password(Some("***"));
    }
    let hidden = |name: &str| matches!(name, "pass" | "password");
    if parsed.query_pairs().any(|(name, _)| hidden(&name)) {
        let pairs: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
        let shown = pairs.iter().map(|(name, value)| (name, if hidden(name) { "***" } else { value }));
        parsed.query_pairs_mut().clear().extend_pairs(shown);
    }
    parsed.to_string()
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Flag => "flag",
            Source::Environment => "environment",
            Source::File => "file",
            Source::Default => "default",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("redis://ann:hunter2@example.org:7000/3", "redis://ann:***@example.org:7000/3"),
            ("rediss://:hunter2@example.org/?prefix=shop", "rediss://:***@example.org/?prefix=shop"),
            (
                "redis+unix:///run/redis.sock?user=ann&pass=hunter2",
                "redis+unix:///run/redis.sock?user=ann&pass=***",
            ),
            ("redis://127.0.0.1/", "redis://127.0.0.1/"),
            ("memory://", "memory://"),
            ("ann:hunter2@example.org", "(no address of a queue)"),
            ("redis://:hunter?2@example.org", "(no address of a queue)"),
        ] {
            let said = without_password(url);
            assert!(!said.contains("hunter"), "{said}");
            assert_eq!(said, shown);
        }
    }
}
