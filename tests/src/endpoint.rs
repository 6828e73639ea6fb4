use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// How a service is to be secured.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// Whether it speaks TLS, by a certificate that is made for it.
    pub tls: bool,
    /// What clients show, good ones and attackers, and who does not is not let in.
    pub token: Option<String>,
}

/// Where a service is, and how it is spoken to.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<TlsConnector>,
    /// A line of a head.
    pub(crate) authorization: String,
}

/// Makes a certificate, writes it and its key into a folder, and answers what `serve` is told of it and what clients trust.
pub(crate) fn certify(folder: &Path) -> (Vec<String>, TlsConnector) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    fs::write(&certificate, cert.pem()).expect("a file for the certificate");
    fs::write(&key, signing_key.serialize_pem()).expect("a file for its key");
    let arguments = [("--tls-cert", certificate), ("--tls-key", key)];
    let arguments =
        arguments.into_iter().flat_map(|(option, path)| [option.to_owned(), path.display().to_string()]);
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a certificate that can be trusted");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions of TLS").with_root_certificates(roots).with_no_client_auth();
    (arguments.collect(), TlsConnector::from(Arc::new(config)))
}

impl From<SocketAddr> for Endpoint {
    /// In clear text, for whoever asks.
    fn from(address: SocketAddr) -> Endpoint {
        Endpoint { address, tls: None, authorization: String::new() }
    }
}
