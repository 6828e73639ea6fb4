use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use delayline_http::push::Secret;
use ipnet::IpNet;
use rustls::ClientConfig;

use super::addresses::Addresses;
use super::resolver::{Resolve, SystemResolver};
use super::tls;
use crate::failure::Failure;

/// How this process pushes, whichever queues.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Push")]
#[allow(clippy::struct_field_names)] // they are the names of the options
pub(crate) struct PushOptions {
    /// A file of keys to sign pushes with, one a line: whsec_… (shared) or whsk_… (ed25519). All of them sign, so that one
    /// can replace another
    #[arg(long, value_name = "FILE", env = "DELAYLINE_PUSH_SECRET_FILE")]
    push_secret_file: Option<PathBuf>,
    /// Such keys themselves, for the environment; more with commas
    #[arg(
        long,
        value_name = "KEY",
        env = "DELAYLINE_PUSH_SECRET",
        hide_env_values = true,
        value_delimiter = ','
    )]
    push_secret: Vec<Hidden>,
    /// Let pushes reach addresses that are not public, as in 10.1.0.0/16; may be repeated
    #[arg(long, value_name = "CIDR", env = "DELAYLINE_PUSH_ALLOW", value_delimiter = ',')]
    push_allow: Vec<IpNet>,
    /// Believe receivers with certificates of these authorities too, beside those of the operating system: PEM
    #[arg(long, value_name = "FILE", env = "DELAYLINE_PUSH_CA")]
    push_ca: Option<PathBuf>,
    /// The most pushes at once, of all queues, 1 to 10000
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        env = "DELAYLINE_PUSH_CONCURRENCY",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    push_concurrency: u32,
}

/// A text that is not shown, not even for debugging.
#[derive(Clone)]
struct Hidden(String);

/// What pushes need that the options say.
pub(crate) struct PushSettings {
    pub(super) secrets: Vec<Secret>,
    pub(super) addresses: Addresses,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) tls: ClientConfig,
    pub(super) requests: usize,
}

impl PushOptions {
    /// Reads the files that are named.
    pub(crate) fn settings(&self) -> Result<PushSettings, Failure> {
        Ok(PushSettings {
            secrets: self.secrets()?,
            addresses: Addresses::allowing(&self.push_allow),
            resolver: Arc::new(SystemResolver),
            tls: tls::config(self.push_ca.as_deref())?,
            requests: usize::try_from(self.push_concurrency).unwrap_or(usize::MAX),
        })
    }

    /// What pushes are signed with.
    pub(crate) fn secrets(&self) -> Result<Vec<Secret>, Failure> {
        let mut secrets = match &self.push_secret_file {
            Some(path) => read(path)?,
            None => Vec::new(),
        };
        for Hidden(text) in &self.push_secret {
            let secret = text.parse();
            secrets.push(secret.map_err(|error| Failure::Usage(format!("--push-secret: {error}")))?);
        }
        Ok(secrets)
    }
}

/// The keys of a file: one a line, besides empty lines and those that begin with #.
fn read(path: &Path) -> Result<Vec<Secret>, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|why| Failure::Unreadable { path: path.to_path_buf(), why })?;
    let lines = text.lines().map(str::trim).enumerate();
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = keys.map(|(n, key)| {
        let refused = |error| Failure::Usage(format!("--push-secret-file, line {}: {error}", n + 1));
        key.parse().map_err(refused)
    });
    let secrets: Vec<Secret> = read.collect::<Result<_, _>>()?;
    if secrets.is_empty() {
        Err(Failure::Usage(format!("--push-secret-file {} has no key", path.display())))
    } else {
        Ok(secrets)
    }
}

impl std::str::FromStr for Hidden {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Hidden, Self::Err> {
        Ok(Hidden(text.to_owned()))
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden(..)")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: PushOptions,
    }

    fn options(words: &[&str]) -> PushOptions {
        Cli::parse_from(["delayline"].iter().chain(words)).options
    }

    #[test]
    fn keys_come_from_a_file_and_from_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let (shared, private) =
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=");
        std::fs::write(&path, format!("# keys\n\n {shared}\n{private}\n")).unwrap();
        let file = path.display().to_string();
        let read = options(&["--push-secret-file", &file, "--push-secret", shared]).secrets().unwrap();
        let public: Vec<Option<String>> = read.iter().map(Secret::public_key).collect();
        let key = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=".to_owned();
        assert_eq!(public, [None, Some(key), None]);
    }

    #[test]
    fn a_key_that_is_wrong_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let file = path.display().to_string();
        for (text, says) in [
            ("# none\n", "has no key"),
            ("whsec_hunter2", "line 1: what follows whsec_ in a signing secret is not base64"),
            ("\nhunter2", "line 2: a signing secret begins with whsec_"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = options(&["--push-secret-file", &file]).secrets().unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("hunter2"), "{error}");
        }
        let given = options(&["--push-secret", "hunter2"]);
        assert!(!format!("{given:?}").contains("hunter2"));
        assert!(!given.secrets().unwrap_err().to_string().contains("hunter2"));
    }
}
