mod pem;
mod stamp;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::WebPkiClientVerifier;
use rustls::{InconsistentKeys, ServerConfig};
use tokio_rustls::TlsAcceptor;

use self::stamp::Stamp;
use crate::failure::Failure;

/// How often the files are looked at, without reading them.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(5);
/// What is spoken over TLS.
const PROTOCOL: &[u8] = b"http/1.1";

/// The files of a service that speaks TLS, all in PEM.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    /// The certificate, and those between it and the root.
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Whose certificates clients must show, if they must show any.
    pub(crate) client_ca: Option<PathBuf>,
}

/// How connections begin TLS, as the files say it at the time. Connections that have begun go on as they are.
pub(crate) struct Tls {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    /// What was read last, whether it was right or wrong.
    tried: Mutex<Vec<Stamp>>,
}

impl Tls {
    /// Reads the files, which must be right.
    pub(crate) fn open(files: TlsFiles) -> Result<Arc<Tls>, Failure> {
        let tried = Mutex::new(files.stamps());
        let current = RwLock::new(Arc::new(files.load()?));
        Ok(Arc::new(Tls { files, current, tried }))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&current))
    }

    /// Reads the files again whenever they have changed or SIGHUP asks for it; never ends.
    pub(crate) async fn keep_fresh(self: Arc<Tls>) -> std::io::Result<()> {
        let mut asked = Asked::listen()?;
        loop {
            let is_asked = tokio::select! {
                () = tokio::time::sleep(LOOKED_AT_EVERY) => false,
                () = asked.next() => true,
            };
            let tls = Arc::clone(&self);
            tokio::task::spawn_blocking(move || tls.refresh(is_asked)).await?;
        }
    }

    /// Reads the files if they have changed since they were read last, or if that is asked for. If they are wrong, what was
    /// right before goes on, and the log says so once.
    fn refresh(&self, is_asked: bool) {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.files.stamps();
        if *tried == found && !is_asked {
            return;
        }
        *tried = found;
        let certificate = self.files.certificate.display();
        match self.files.load() {
            Ok(config) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                tracing::info!("new connections get the certificate that is in {certificate} now");
            }
            Err(error) => tracing::error!("{error}; new connections get the certificate from before"),
        }
    }
}

impl TlsFiles {
    fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).map(PathBuf::as_path)
    }

    /// What each file is, before it is read: one that changes meanwhile is read again.
    fn stamps(&self) -> Vec<Stamp> {
        self.all().map(Stamp::of).collect()
    }

    fn load(&self) -> Result<ServerConfig, Failure> {
        let chain = pem::certificates(&self.certificate, "--tls-cert")?;
        let key = pem::key(&self.key)?;
        stamp::warn_of_readers(&self.key);
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&self.certificate, &error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(verifier(path, provider)?),
        };
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(|error| self.mismatch(error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(config)
    }

    /// Why a certificate and its key cannot be used.
    fn mismatch(&self, error: rustls::Error) -> Failure {
        match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                let certificate = self.certificate.display();
                wrong(&self.key, &format!("the key is not that of the first certificate in {certificate}"))
            }
            rustls::Error::InvalidCertificate(why) => {
                wrong(&self.certificate, &format!("the first certificate cannot be used: {why:?}"))
            }
            error => wrong(&self.key, &error),
        }
    }
}

fn verifier(
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in pem::certificates(path, "--client-ca")? {
        roots.add(certificate).map_err(|error| wrong(path, &error))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, why: &(impl ToString + ?Sized)) -> Failure {
    Failure::Certificate { path: path.to_owned(), why: why.to_string() }
}

/// Who asks for the files to be read again.
#[cfg(unix)]
struct Asked(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Asked {
    fn listen() -> std::io::Result<Asked> {
        use tokio::signal::unix::{SignalKind, signal};

        signal(SignalKind::hangup()).map(Asked)
    }

    async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
struct Asked;

#[cfg(not(unix))]
impl Asked {
    fn listen() -> std::io::Result<Asked> {
        Ok(Asked)
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}
