use std::ops::RangeInclusive;
use std::path::PathBuf;

use bytesize::ByteSize;
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use delayline_tokio::Span;

use crate::cli::redis::Redis;
use crate::cli::stop::Stop;
use crate::failure::Failure;
use crate::service::audit::Audit;
use crate::service::limits::Limits;
use crate::service::listener::{Exposure, ListenAddress};
use crate::service::lmstfy::LmstfyOptions;
use crate::service::origins::Origin;
use crate::service::push::PushOptions;
use crate::service::recording::Recording;
use crate::service::server::{Server, ServerSettings};
use crate::service::tls::TlsFiles;

const PAYLOAD_MAX: u64 = 16 << 20;
/// The least length of such a token.
const TOKEN_BYTES: usize = 32;
const RECORDER_SIZES: RangeInclusive<u64> = 64 << 10..=1 << 30;

/// Serves the queues over HTTP, in memory unless a Redis is given, until it is told to stop.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
It stops by SIGTERM or ctrl-c once it has answered what it was asked; told twice, it waits for nothing.

Examples:
  delayline serve                                # in memory: nothing survives a restart
  delayline serve --redis redis://127.0.0.1/ --strict
  delayline serve --listen 127.0.0.1:4848 --max-payload 4MiB --timeout 5s --access-log
  delayline serve --redis redis://127.0.0.1/ --forward-to 'list:out-*'
  delayline serve --tls-cert cert.pem --tls-key key.pem
  delayline serve --listen unix:delayline.sock --unix-mode 660
  delayline serve --client-requests '100/s burst 500' --trusted-proxy 127.0.0.1
  delayline serve --flight-recorder serve.recording
  delayline serve --redis redis://127.0.0.1/ --lmstfy 127.0.0.1:7777 --lmstfy-admin 127.0.0.1:7778")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Serve {
    /// Where to listen
    #[arg(
        long,
        help = "Where to listen: HOST:PORT, or unix:PATH for a Unix socket; more with commas",
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = "127.0.0.1:4747",
        env = "DELAYLINE_LISTEN"
    )]
    listen: Vec<ListenAddress>,
    /// The mode of Unix sockets, in octal: who may connect
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = unix_mode, env = "DELAYLINE_UNIX_MODE")]
    unix_mode: u32,
    /// Speak TLS with this certificate, in PEM, and those between it and its root; read again when it changes, or at SIGHUP
    #[arg(long, value_name = "FILE", env = "DELAYLINE_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", env = "DELAYLINE_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Let in only clients that show a certificate of one of these authorities, in PEM
    #[arg(long, value_name = "FILE", env = "DELAYLINE_CLIENT_CA")]
    client_ca: Option<PathBuf>,
    /// Let pages from there ask
    #[arg(
        long,
        help = "Let pages from there ask, as in https://app.example.org; * for any that has a token; may be repeated",
        value_name = "ORIGIN",
        env = "DELAYLINE_CORS",
        value_delimiter = ','
    )]
    cors: Vec<Origin>,
    /// Listen even where other machines can reach it though there are no tokens
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_INSECURE",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    insecure: bool,
    /// Refuse to start on a Redis that may evict jobs
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_STRICT",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    strict: bool,
    /// The largest payload of a job, up to 16MiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", env = "DELAYLINE_MAX_PAYLOAD")]
    max_payload: ByteSize,
    /// How long a request may wait for Redis
    #[arg(long, value_name = "TIME", default_value = "10s", env = "DELAYLINE_TIMEOUT")]
    timeout: Span,
    /// Write a log line for each request
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_ACCESS_LOG",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    access_log: bool,
    /// Let queues be told over HTTP to forward to destinations like this, as in list:out-*; may be repeated
    #[arg(long, value_name = "PATTERN", env = "DELAYLINE_FORWARD_TO", value_delimiter = ',')]
    forward_to: Vec<String>,
    /// Record what the engine is told, and save it into this file at the end, if the engine panics, and at SIGUSR1
    #[arg(long, value_name = "FILE", env = "DELAYLINE_FLIGHT_RECORDER")]
    flight_recorder: Option<PathBuf>,
    /// How much of it to keep, 64KiB to 1GiB: the latest
    #[arg(long, value_name = "SIZE", default_value = "16MiB", env = "DELAYLINE_FLIGHT_RECORDER_SIZE")]
    flight_recorder_size: ByteSize,
    /// A token that may do everything, to make others with, of 32 characters or more; better said by the variable, since
    /// other users of the machine can see a command line
    #[arg(long, value_name = "TOKEN", env = "DELAYLINE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A file whose first line is such a token
    #[arg(long, value_name = "FILE", env = "DELAYLINE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Let nobody in without a token, though there is none yet
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_REQUIRE_TOKENS",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    require_tokens: bool,
    /// Write a line of JSON for each administrative act to the end of this file, instead of to the log
    #[arg(long, value_name = "FILE", env = "DELAYLINE_AUDIT_LOG")]
    audit_log: Option<PathBuf>,
    /// Push the jobs of queues whose config says so; --push=false leaves that to `delayline push`
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_PUSH",
        num_args = 0..=1,
        require_equals = true,
        default_value = "true",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new(),
        help_heading = "Push"
    )]
    push: bool,
    #[command(flatten)]
    push_options: PushOptions,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    lmstfy: LmstfyOptions,
}

impl Serve {
    /// Listens, and connects to where the jobs are.
    pub async fn bind(&self, redis: &Redis) -> Result<Server, Failure> {
        let max_payload = self.max_payload()?;
        self.limits.validate()?;
        let settings = ServerSettings {
            listen: self.listen.clone(),
            exposure: Exposure { is_exposed: self.is_exposed(), unix_mode: self.unix_mode },
            tls: self.tls_files()?,
            cors: self.cors.clone(),
            strict: self.strict,
            max_payload,
            timeout: self.timeout,
            access_log: self.access_log,
            forward_to: self.forward_to.clone(),
            push: if self.push { Some(self.push_options.settings()?) } else { None },
            recording: self.recording()?,
            limits: self.limits.clone(),
            bootstrap: self.bootstrap()?,
            require_tokens: self.require_tokens,
            audit: self.audit()?,
            lmstfy: self.lmstfy.clone(),
        };
        Server::bind(settings, redis.patient_builder(), redis.url().unwrap_or("memory://")).await
    }

    /// Serves until it is told to stop, by SIGTERM or ctrl-c; told twice, it waits for nothing.
    pub(crate) async fn run(&self, redis: &Redis) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let server = tokio::select! {
            bound = self.bind(redis) => bound?,
            () = stop.clone().asked() => return Ok(()),
        };
        tokio::select! {
            done = server.run_until(stop.clone().asked()) => done,
            () = stop.insisted() => Err(Failure::Interrupted),
        }
    }

    fn bootstrap(&self) -> Result<Vec<String>, Failure> {
        let mut tokens = Vec::new();
        if let Some(path) = &self.token_file {
            let unread = |why| Failure::Unreadable { path: path.clone(), why };
            let text = std::fs::read_to_string(path).map_err(unread)?;
            tokens.push(("--token-file", text.lines().next().unwrap_or_default().trim().to_owned()));
        }
        if let Some(token) = &self.token {
            tokens.push(("--token", token.clone()));
        }
        let is_token =
            |text: &str| text.len() >= TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
        match tokens.iter().find(|(_, token)| !is_token(token)) {
            Some((place, _)) => Err(Failure::Usage(format!(
                "{place} holds no token of {TOKEN_BYTES} or more letters, digits or signs of ASCII: make one by \
                 `openssl rand -hex 32`"
            ))),
            None => Ok(tokens.into_iter().map(|(_, token)| token).collect()),
        }
    }

    fn audit(&self) -> Result<Audit, Failure> {
        Audit::to(self.audit_log.clone())
            .map_err(|why| Failure::Unwritable { path: self.audit_log.clone().unwrap_or_default(), why })
    }

    /// Whether other machines may reach it. Whoever has to show a certificate is somebody.
    fn is_exposed(&self) -> bool {
        self.insecure || self.client_ca.is_some()
    }

    /// Half of what TLS needs is no reason to go without it: a file may give one setting, and the command line the other.
    fn tls_files(&self) -> Result<Option<TlsFiles>, Failure> {
        match (self.tls_cert.clone(), self.tls_key.clone(), self.client_ca.clone()) {
            (Some(certificate), Some(key), client_ca) => Ok(Some(TlsFiles { certificate, key, client_ca })),
            (None, None, None) => Ok(None),
            (Some(_), None, _) => {
                Err(Failure::Usage("--tls-cert needs --tls-key, the key of the certificate".to_owned()))
            }
            (None, Some(_), _) => {
                Err(Failure::Usage("--tls-key needs --tls-cert, its certificate".to_owned()))
            }
            (None, None, Some(_)) => Err(Failure::Usage(
                "--client-ca needs --tls-cert and --tls-key: there are no certificates without TLS"
                    .to_owned(),
            )),
        }
    }

    fn max_payload(&self) -> Result<usize, Failure> {
        let bytes = self.max_payload.as_u64();
        match usize::try_from(bytes) {
            Ok(payload) if (1..=PAYLOAD_MAX).contains(&bytes) => Ok(payload),
            _ => {
                Err(Failure::Usage(format!("--max-payload is {}, but must be 1B to 16MiB", self.max_payload)))
            }
        }
    }

    fn recording(&self) -> Result<Option<Recording>, Failure> {
        let Some(path) = &self.flight_recorder else { return Ok(None) };
        let bytes = self.flight_recorder_size.as_u64();
        let fits = usize::try_from(bytes).ok().filter(|_| RECORDER_SIZES.contains(&bytes));
        let size = fits.ok_or_else(|| {
            let size = self.flight_recorder_size;
            Failure::Usage(format!("--flight-recorder-size is {size}, but must be 64KiB to 1GiB"))
        })?;
        let recording = Recording::begin(path, size);
        recording.map(Some).map_err(|why| Failure::Unwritable { path: path.clone(), why })
    }
}

fn unix_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "a mode is three digits of 0 to 7, as in 660".to_owned())
}
