use std::io::{self, Write};
use std::path::PathBuf;

use delayline_http::{Route, Time};
use serde::Serialize;

use crate::service::client_address::ClientAddress;
use crate::service::tokens::now;

/// Where a line goes for each administrative act: who did what, from where, and what came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    /// The log, if there is none.
    file: Option<PathBuf>,
}

/// An administrative act. It holds neither a token nor a body.
#[derive(Debug, Serialize)]
pub(crate) struct Act {
    operation: String,
    method: String,
    path: String,
    token: Option<String>,
    client: Option<ClientAddress>,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    #[serde(flatten)]
    act: &'a Act,
    status: u16,
}

impl Act {
    pub(crate) fn new(route: &Route, path: &str, token: Option<&str>, client: Option<ClientAddress>) -> Act {
        Act {
            operation: format!("{:?}", route.operation),
            method: route.method.to_owned(),
            path: without_secrets(path),
            token: token.map(str::to_owned),
            client,
        }
    }

    /// One by lmstfy's admin API: a path without the token, and an account in the place of one.
    pub(crate) fn of_lmstfy(
        method: &str,
        path: String,
        account: Option<&str>,
        client: Option<ClientAddress>,
    ) -> Act {
        let (operation, method) = ("Lmstfy".to_owned(), method.to_owned());
        Act { operation, method, path, token: account.map(str::to_owned), client }
    }
}

/// A path in which a token that stands there by mistake, in the place of its id, has lost its secret.
fn without_secrets(path: &str) -> String {
    let parts =
        path.split('/').map(|part| match part.strip_prefix("dl_").and_then(|token| token.split_once('_')) {
            Some((id, _)) => id,
            None => part,
        });
    parts.collect::<Vec<_>>().join("/")
}

impl Audit {
    /// Lines go to the end of `file`, which is opened for each, so that it can be rotated.
    pub(crate) fn to(file: Option<PathBuf>) -> io::Result<Audit> {
        let audit = Audit { file };
        audit.append(b"")?;
        Ok(audit)
    }

    pub(crate) async fn record(&self, act: &Act, status: u16) {
        let line = Line { time: Time(now()).to_string(), act, status };
        let mut line = serde_json::to_vec(&line).unwrap_or_default();
        if self.file.is_none() {
            return tracing::info!(target: "delayline::audit", "audit {}", String::from_utf8_lossy(&line));
        }
        line.push(b'\n');
        let audit = self.clone();
        let written = tokio::task::spawn_blocking(move || audit.append(&line)).await;
        if let Err(error) = written.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
            tracing::error!(%error, "an administrative act cannot be written into the audit file");
        }
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut options = std::fs::OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.append(true).create(true).open(file)?.write_all(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_a_path_loses_its_secret() {
        assert_eq!(without_secrets("/v1/tokens/dl_0123_4567/rotate"), "/v1/tokens/0123/rotate");
        assert_eq!(without_secrets("/v1/queues/dl_x/pause"), "/v1/queues/dl_x/pause");
    }
}
