use std::env;
use std::fmt::Display;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bytesize::ByteSize;
use clap::{ColorChoice, Command};
use delayline_tokio::Span;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::failure::Failure;
use crate::log::{Format, Level};

/// A file of settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    redis: Option<Text<String>>,
    prefix: Option<Text<String>>,
    connect_timeout: Option<Text<Span>>,
    log_level: Option<Text<Level>>,
    log_format: Option<Text<Format>>,
    color: Option<Text<ColorChoice>>,
    serve: Serve,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Serve {
    listen: Option<Text<String>>,
    insecure: Option<bool>,
    strict: Option<bool>,
    max_payload: Option<Text<ByteSize>>,
    timeout: Option<Text<Span>>,
    forward_to: Option<Vec<String>>,
    access_log: Option<bool>,
    flight_recorder: Option<String>,
    flight_recorder_size: Option<Text<ByteSize>>,
    max_connections: Option<usize>,
    max_takes_per_client: Option<usize>,
    max_body_memory: Option<Text<ByteSize>>,
    max_memory: Option<Text<ByteSize>>,
    head_timeout: Option<Text<Span>>,
    body_timeout: Option<Text<Span>>,
    idle_timeout: Option<Text<Span>>,
    host: Option<Vec<String>>,
}

/// The text of a value that can be read as a `T`.
#[derive(Debug)]
struct Text<T>(String, PhantomData<T>);

impl File {
    /// Reads the file that is named, or else the first that is found where one is looked for.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<(PathBuf, File)>, Failure> {
        let found = match named {
            Some(path) => Some(path.to_path_buf()),
            None => places().into_iter().find(|path| path.is_file()),
        };
        let Some(path) = found else { return Ok(None) };
        let text =
            std::fs::read_to_string(&path).map_err(|why| Failure::Unreadable { path: path.clone(), why })?;
        let file =
            File::read(&text).map_err(|(line, why)| Failure::Settings { path: path.clone(), line, why })?;
        Ok(Some((path, file)))
    }

    /// Reads settings; what is wrong comes with its line, which is not quoted, since it may hold a password.
    fn read(text: &str) -> Result<File, (usize, String)> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let begin = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.bytes().take(begin).filter(|byte| *byte == b'\n').count();
            let key = text.lines().nth(line).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
            let why = match key.filter(|key| !key.is_empty() && !error.message().contains(*key)) {
                Some(key) => format!("{key}: {}", error.message()),
                None => error.message().to_string(),
            };
            (line + 1, why)
        })
    }

    /// Makes the settings of this file what is used where neither flag nor environment says otherwise.
    pub(crate) fn as_defaults(&self, command: Command) -> Command {
        self.given().into_iter().fold(command, |command, (section, name, value)| {
            let set = |command: Command| command.mut_arg(name, |arg| arg.default_values(value));
            if section.is_empty() { set(command) } else { command.mut_subcommand(section, set) }
        })
    }

    pub(crate) fn gives(&self, section: &str, name: &str) -> bool {
        self.given().iter().any(|given| (given.0, given.1) == (section, name))
    }

    fn given(&self) -> Vec<(&'static str, &'static str, Vec<String>)> {
        let File { redis, prefix, connect_timeout, log_level, log_format, color, serve } = self;
        let settings = [
            ("", "redis", written(redis.as_ref())),
            ("", "prefix", written(prefix.as_ref())),
            ("", "connect_timeout", written(connect_timeout.as_ref())),
            ("", "log_level", written(log_level.as_ref())),
            ("", "log_format", written(log_format.as_ref())),
            ("", "color", written(color.as_ref())),
            ("serve", "listen", written(serve.listen.as_ref())),
            ("serve", "insecure", serve.insecure.map(|yes| yes.to_string())),
            ("serve", "strict", serve.strict.map(|yes| yes.to_string())),
            ("serve", "max_payload", written(serve.max_payload.as_ref())),
            ("serve", "timeout", written(serve.timeout.as_ref())),
            ("serve", "access_log", serve.access_log.map(|yes| yes.to_string())),
            ("serve", "flight_recorder", serve.flight_recorder.clone()),
            ("serve", "flight_recorder_size", written(serve.flight_recorder_size.as_ref())),
            ("serve", "max_connections", serve.max_connections.map(|most| most.to_string())),
            ("serve", "max_takes_per_client", serve.max_takes_per_client.map(|most| most.to_string())),
            ("serve", "max_body_memory", written(serve.max_body_memory.as_ref())),
            ("serve", "max_memory", written(serve.max_memory.as_ref())),
            ("serve", "head_timeout", written(serve.head_timeout.as_ref())),
            ("serve", "body_timeout", written(serve.body_timeout.as_ref())),
            ("serve", "idle_timeout", written(serve.idle_timeout.as_ref())),
        ];
        let settings = settings.map(|(section, name, value)| (section, name, value.map(|value| vec![value])));
        let forward_to = ("serve", "forward_to", serve.forward_to.clone());
        let host = ("serve", "host", serve.host.clone());
        let settings = settings.into_iter().chain([host, forward_to]);
        settings.filter_map(|(section, name, values)| Some((section, name, values?))).collect()
    }
}

fn written<T>(text: Option<&Text<T>>) -> Option<String> {
    text.map(|text| text.0.clone())
}

/// Where a file is looked for.
fn places() -> Vec<PathBuf> {
    let given = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = given("XDG_CONFIG_HOME").or_else(|| Some(given("HOME")?.join(".config")));
    let homely = home.map(|home| home.join("delayline").join("config.toml"));
    [PathBuf::from("delayline.toml")].into_iter().chain(homely).collect()
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse::<T>() {
            Ok(_) => Ok(Text(text, PhantomData)),
            Err(why) => Err(D::Error::custom(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_setting() {
        let text = "redis = 'redis://h/'\nprefix = 'p'\nconnect_timeout = '1s'\nlog_level = 'warn'\n\
                    log_format = 'json'\ncolor = 'never'\n[serve]\nlisten = '127.0.0.1:0'\ninsecure = true\n\
                    strict = false\nmax_payload = '2MiB'\ntimeout = '5s'\naccess_log = true\nflight_recorder = 'f'\n\
                    flight_recorder_size = '1MiB'\nmax_connections = 9\nmax_takes_per_client = 9\n\
                    max_body_memory = '9MiB'\nmax_memory = '9MiB'\nhead_timeout = '9s'\nbody_timeout = '9s'\n\
                    idle_timeout = '9s'\nhost = ['a.example', 'b.example']\nforward_to = ['list:a*', 'stream:b']\n";
        let given = File::read(text).unwrap().given();
        let names: Vec<(&str, &str)> = given.iter().map(|given| (given.0, given.1)).collect();
        let known = crate::settings::SECTIONS;
        let known = known.iter().flat_map(|(section, names)| names.iter().map(|name| (*section, *name)));
        assert_eq!(names, known.collect::<Vec<_>>());
    }

    #[test]
    fn says_what_is_wrong_and_where_but_quotes_no_password() {
        for (text, line, says) in [
            (
                "prefix = 'p'\nredsi = 'redis://:hunter2@h/'",
                2,
                "unknown field `redsi`, expected one of `redis`",
            ),
            ("[serve]\nlisten = 5", 2, "listen: invalid type: integer `5`, expected a string"),
            ("\n[serve]\n\ntimeout = '5'", 4, "timeout: 5 in \"5\" has no unit: write 5s"),
            ("[server]\nlisten = 'x'", 1, "unknown field `server`"),
            ("redis = 'redis://:hunter2@h/", 1, "redis: "),
            ("color = 'blue'", 1, "color: "),
            ("redis = 'a'\nredis = 'redis://:hunter2@h/'", 2, "duplicate key"),
        ] {
            let (found, why) = File::read(text).unwrap_err();
            assert_eq!(found, line, "{text}: {why}");
            assert!(why.contains(says), "{text}: {why}");
            assert!(!why.contains("hunter2"), "{why}");
        }
    }
}
