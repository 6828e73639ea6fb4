use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::failure::Failure;

/// How receivers are believed to be who they are: by the operating system's certificates, and by those of a file.
pub(super) fn config(more: Option<&Path>) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(system.certs);
    if let Some(path) = more {
        add(&mut roots, path)?;
    } else if added == 0 {
        tracing::warn!(
            "the operating system has no certificates, so no https:// can be pushed to: install them, or give --push-ca"
        );
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| Failure::Usage(format!("TLS cannot be set up: {why}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), Failure> {
    let pem = std::fs::read(path).map_err(|why| Failure::Unreadable { path: path.to_path_buf(), why })?;
    let refused = || {
        Failure::Usage(format!(
            "--push-ca {} has no certificate that can be read: it is to be PEM",
            path.display()
        ))
    };
    let certificates: Vec<CertificateDer<'_>> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|_| refused())?;
    let (added, ignored) = roots.add_parsable_certificates(certificates);
    if added == 0 || ignored > 0 { Err(refused()) } else { Ok(()) }
}
