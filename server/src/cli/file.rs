use std::env;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bytesize::ByteSize;
use clap::{ColorChoice, Command};
use delayline_tokio::Span;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::cli::log::{Format, Level};
use crate::failure::Failure;
use crate::service::limits::{ByteRateLimit, MinBodyRate};
use crate::service::listener::ListenAddress;
use crate::service::origins::Origin;
use crate::service::proxies::TrustedProxy;
use crate::service::rate::RateLimit;

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
    listen: Option<OneOrMany<ListenAddress>>,
    unix_mode: Option<String>,
    tls_cert: Option<String>,
    tls_key: Option<String>,
    client_ca: Option<String>,
    cors: Option<Vec<Text<Origin>>>,
    insecure: Option<bool>,
    strict: Option<bool>,
    max_payload: Option<Text<ByteSize>>,
    timeout: Option<Text<Span>>,
    forward_to: Option<Vec<String>>,
    access_log: Option<bool>,
    token_file: Option<String>,
    require_tokens: Option<bool>,
    audit_log: Option<String>,
    flight_recorder: Option<String>,
    flight_recorder_size: Option<Text<ByteSize>>,
    max_connections: Option<usize>,
    max_connections_per_client: Option<usize>,
    max_takes_per_client: Option<usize>,
    client_requests: Option<Text<RateLimit>>,
    client_body_bytes: Option<Text<ByteRateLimit>>,
    trusted_proxy: Option<Vec<Text<TrustedProxy>>>,
    proxy_header: Option<String>,
    max_body_memory: Option<Text<ByteSize>>,
    max_memory: Option<Text<ByteSize>>,
    head_timeout: Option<Text<Span>>,
    body_timeout: Option<Text<Span>>,
    min_body_rate: Option<Text<MinBodyRate>>,
    idle_timeout: Option<Text<Span>>,
    host: Option<Vec<String>>,
    push: Option<bool>,
    push_secret_file: Option<String>,
    push_allow: Option<Vec<String>>,
    push_ca: Option<String>,
    push_concurrency: Option<u32>,
    lmstfy: Option<Text<String>>,
    lmstfy_admin: Option<Text<String>>,
    lmstfy_open: Option<bool>,
    lmstfy_account: Option<Vec<String>>,
}

/// The text of a value that can be read as a `T`.
#[derive(Debug)]
struct Text<T>(String, PhantomData<T>);

/// One such text, or a list of them.
#[derive(Debug)]
struct OneOrMany<T>(Vec<Text<T>>);

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
        let yes_or_no = |given: Option<bool>| given.map(|yes| vec![yes.to_string()]);
        let number = |given: Option<usize>| given.map(|number| vec![number.to_string()]);
        let word = |given: &Option<String>| given.clone().map(|word| vec![word]);
        let settings = [
            ("", "redis", written(redis.as_ref())),
            ("", "prefix", written(prefix.as_ref())),
            ("", "connect_timeout", written(connect_timeout.as_ref())),
            ("", "log_level", written(log_level.as_ref())),
            ("", "log_format", written(log_format.as_ref())),
            ("", "color", written(color.as_ref())),
            ("serve", "listen", serve.listen.as_ref().map(|OneOrMany(texts)| all(texts))),
            ("serve", "unix_mode", word(&serve.unix_mode)),
            ("serve", "tls_cert", word(&serve.tls_cert)),
            ("serve", "tls_key", word(&serve.tls_key)),
            ("serve", "client_ca", word(&serve.client_ca)),
            ("serve", "cors", serve.cors.as_deref().map(all)),
            ("serve", "insecure", yes_or_no(serve.insecure)),
            ("serve", "strict", yes_or_no(serve.strict)),
            ("serve", "max_payload", written(serve.max_payload.as_ref())),
            ("serve", "timeout", written(serve.timeout.as_ref())),
            ("serve", "access_log", yes_or_no(serve.access_log)),
            ("serve", "token_file", word(&serve.token_file)),
            ("serve", "require_tokens", yes_or_no(serve.require_tokens)),
            ("serve", "audit_log", word(&serve.audit_log)),
            ("serve", "flight_recorder", word(&serve.flight_recorder)),
            ("serve", "flight_recorder_size", written(serve.flight_recorder_size.as_ref())),
            ("serve", "max_connections", number(serve.max_connections)),
            ("serve", "max_connections_per_client", number(serve.max_connections_per_client)),
            ("serve", "max_takes_per_client", number(serve.max_takes_per_client)),
            ("serve", "client_requests", written(serve.client_requests.as_ref())),
            ("serve", "client_body_bytes", written(serve.client_body_bytes.as_ref())),
            ("serve", "trusted_proxy", serve.trusted_proxy.as_deref().map(all)),
            ("serve", "proxy_header", word(&serve.proxy_header)),
            ("serve", "max_body_memory", written(serve.max_body_memory.as_ref())),
            ("serve", "max_memory", written(serve.max_memory.as_ref())),
            ("serve", "head_timeout", written(serve.head_timeout.as_ref())),
            ("serve", "body_timeout", written(serve.body_timeout.as_ref())),
            ("serve", "min_body_rate", written(serve.min_body_rate.as_ref())),
            ("serve", "idle_timeout", written(serve.idle_timeout.as_ref())),
            ("serve", "host", serve.host.clone()),
            ("serve", "forward_to", serve.forward_to.clone()),
            ("serve", "push", yes_or_no(serve.push)),
            ("serve", "push_secret_file", word(&serve.push_secret_file)),
            ("serve", "push_allow", serve.push_allow.clone()),
            ("serve", "push_ca", word(&serve.push_ca)),
            ("serve", "push_concurrency", serve.push_concurrency.map(|most| vec![most.to_string()])),
            ("serve", "lmstfy", written(serve.lmstfy.as_ref())),
            ("serve", "lmstfy_admin", written(serve.lmstfy_admin.as_ref())),
            ("serve", "lmstfy_open", yes_or_no(serve.lmstfy_open)),
            ("serve", "lmstfy_account", serve.lmstfy_account.clone()),
        ];
        settings.into_iter().filter_map(|(section, name, values)| Some((section, name, values?))).collect()
    }
}

fn written<T>(text: Option<&Text<T>>) -> Option<Vec<String>> {
    text.map(|text| vec![text.0.clone()])
}

fn all<T>(texts: &[Text<T>]) -> Vec<String> {
    texts.iter().map(|text| text.0.clone()).collect()
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

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<T>, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: FromStr<Err: Display>> Visitor<'de> for Either<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a list of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMany<T>, E> {
                Text::deserialize(text.into_deserializer()).map(|text| OneOrMany(vec![text]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMany<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(OneOrMany)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_setting() {
        let text = "redis = 'redis://h/'\nprefix = 'p'\nconnect_timeout = '1s'\nlog_level = 'warn'\n\
                    log_format = 'json'\ncolor = 'never'\n[serve]\nlisten = ['127.0.0.1:0', 'unix:s']\nunix_mode = '660'\n\
                    tls_cert = 'c'\ntls_key = 'k'\nclient_ca = 'a'\ncors = ['https://a.example']\ninsecure = true\n\
                    strict = false\nmax_payload = '2MiB'\ntimeout = '5s'\naccess_log = true\ntoken_file = 't'\n\
                    require_tokens = true\naudit_log = 'a'\nflight_recorder = 'f'\n\
                    flight_recorder_size = '1MiB'\nmax_connections = 9\nmax_connections_per_client = 9\n\
                    max_takes_per_client = 9\nclient_requests = '9/s'\nclient_body_bytes = '9KiB/s'\n\
                    trusted_proxy = ['10.0.0.0/8']\nproxy_header = 'forwarded'\n\
                    max_body_memory = '9MiB'\nmax_memory = '9MiB'\nhead_timeout = '9s'\nbody_timeout = '9s'\n\
                    min_body_rate = '9KiB/s'\n\
                    idle_timeout = '9s'\nhost = ['a.example', 'b.example']\nforward_to = ['list:a*', 'stream:b']\n\
                    push = false\npush_secret_file = 'keys'\npush_allow = ['10.0.0.0/8']\npush_ca = 'ca.pem'\n\
                    push_concurrency = 9\n\
                    lmstfy = '127.0.0.1:7777'\nlmstfy_admin = '127.0.0.1:7778'\nlmstfy_open = true\n\
                    lmstfy_account = ['ann:f']\n";
        let given = File::read(text).unwrap().given();
        let names: Vec<(&str, &str)> = given.iter().map(|given| (given.0, given.1)).collect();
        let known = crate::cli::settings::SECTIONS;
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
