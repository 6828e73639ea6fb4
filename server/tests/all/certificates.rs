use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::program::write;
use crate::raw::Raw;
use crate::service::Service;

/// A certificate authority of a test's own.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

/// A connection over TLS on which a test writes what it likes.
pub(crate) type Secure = Raw<TlsStream<TcpStream>>;

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Else its certificates would have the name of their issuer, and seem to be signed by themselves.
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// For a service on this machine, or a client.
    pub(crate) fn issue(&self) -> Identity {
        let mut params = CertificateParams::new(["localhost", "127.0.0.1"].map(String::from)).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
            key_der: key.serialize_der(),
        }
    }

    /// What a client believes that trusts this authority, and shows this identity if it has one.
    pub(crate) fn client(&self, identity: Option<&Identity>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let key = PrivateKeyDer::Pkcs8(identity.key_der.clone().into());
                config.with_client_auth_cert(vec![identity.der.clone()], key).unwrap()
            }
        };
        TlsConnector::from(Arc::new(config))
    }

    pub(crate) async fn connect(&self, service: &Service) -> Secure {
        self.client(None).to(service).await.unwrap()
    }
}

impl Identity {
    /// Writes both files into a folder, and says where they are.
    pub(crate) fn write(&self, folder: &Path) -> [String; 2] {
        [write(folder, "cert.pem", &self.certificate), write(folder, "key.pem", &self.key)]
    }

    pub(crate) fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }
}

/// Makes connections over TLS.
pub(crate) trait Connect {
    async fn to(&self, service: &Service) -> std::io::Result<Secure>;
    async fn over(&self, tcp: TcpStream) -> std::io::Result<Secure>;
}

impl Connect for TlsConnector {
    async fn to(&self, service: &Service) -> std::io::Result<Secure> {
        self.over(TcpStream::connect(service.address()).await?).await
    }

    async fn over(&self, tcp: TcpStream) -> std::io::Result<Secure> {
        let name = ServerName::IpAddress(IpAddr::from([127, 0, 0, 1]).into());
        self.connect(name, tcp).await.map(Raw)
    }
}

/// The certificate that the service has shown.
pub(crate) fn shown(secure: &Secure) -> CertificateDer<'static> {
    secure.0.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

/// A service that speaks TLS, its authority, and the folder of its files.
pub(crate) struct Secured {
    pub(crate) service: Service,
    pub(crate) authority: Authority,
    pub(crate) identity: Identity,
    pub(crate) folder: tempfile::TempDir,
}

impl Secured {
    pub(crate) async fn with(arguments: &[&str]) -> Secured {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let identity = authority.issue();
        let [certificate, key] = identity.write(folder.path());
        let tls = ["--tls-cert", &certificate, "--tls-key", &key];
        let service = Service::with(&[&tls[..], arguments].concat()).await;
        Secured { service, authority, identity, folder }
    }

    pub(crate) async fn connect(&self) -> Secure {
        self.authority.connect(&self.service).await
    }

    /// How many jobs of a queue are ready, delayed, leased and dead.
    pub(crate) async fn sizes(&self, queue: &str) -> [u64; 4] {
        let came = self.connect().await.ask(&format!("GET /v1/queues/{queue}"), "", "").await;
        ["ready", "delayed", "leased", "dead"]
            .map(|state| came.json["sizes"][state].as_u64().unwrap_or_default())
    }

    pub(crate) async fn publish(&self, queue: &str, id: &str) {
        let came = self.connect().await.ask(&format!("POST /v1/queues/{queue}/jobs?id={id}"), "", "1").await;
        assert_eq!(came.status, 201, "{came:?}");
    }

    /// The id and the attempt of a job, which must come.
    pub(crate) async fn take(&self, queue: &str) -> (String, u64) {
        let came = self.connect().await.ask(&format!("POST /v1/take?queue={queue}&wait=15s"), "", "").await;
        assert_eq!(came.status, 200, "{came:?}");
        let job = &came.json["jobs"][0];
        (job["id"].as_str().unwrap().to_owned(), job["attempt"].as_u64().unwrap())
    }
}
