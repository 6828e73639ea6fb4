use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::wrong;
use crate::failure::Failure;

/// The certificates in a file, of which there must be one.
pub(super) fn certificates(path: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let text = read(path)?;
    let found: Result<Vec<CertificateDer<'static>>, Error> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(path, no_pem(&error)))?;
    if found.is_empty() {
        let has = if PrivateKeyDer::from_pem_slice(&text).is_ok() { "a private key, but no" } else { "no" };
        let why = format!(
            "there is {has} certificate in it: {option} is to name a file in PEM with -----BEGIN CERTIFICATE-----"
        );
        return Err(wrong(path, &why));
    }
    Ok(found)
}

/// The first private key in a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let text = read(path)?;
    let is_encrypted = text.windows(9).any(|word| word == b"ENCRYPTED");
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        _ if is_encrypted => wrong(
            path,
            "the key is encrypted, and nobody is there to type its password: write it without one, by \
             `openssl pkey -in FILE -out FILE`, readable by the service alone",
        ),
        Error::NoItemsFound => {
            let has = if CertificateDer::from_pem_slice(&text).is_ok() { "a certificate, but no" } else { "no" };
            let why = format!(
                "there is {has} private key in it: --tls-key is to name a file in PEM with -----BEGIN PRIVATE KEY-----, \
                 or RSA or EC before PRIVATE"
            );
            wrong(path, &why)
        }
        error => wrong(path, no_pem(&error)),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|why| Failure::Unreadable { path: path.to_owned(), why })
}

/// What is wrong, without what the file says: it may be a key.
fn no_pem(error: &Error) -> &'static str {
    match error {
        Error::MissingSectionEnd { .. } => {
            "it stops in the middle: a -----BEGIN …----- has no -----END …----- of the same name"
        }
        Error::IllegalSectionStart { .. } => "a line with -----BEGIN does not end in -----",
        Error::Base64Decode(_) => "what is between -----BEGIN …----- and -----END …----- is no base64",
        _ => "it is no PEM",
    }
}
