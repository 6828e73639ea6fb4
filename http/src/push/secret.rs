use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

#[cfg(feature = "ed25519")]
use super::ed25519::PrivateKey;

const SHARED: &str = "whsec_";
const PRIVATE: &str = "whsk_";
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
/// What a signature by a shared secret begins with.
const V1: &str = "v1";
/// What a signature by an ed25519 key begins with.
#[cfg(feature = "ed25519")]
const V1A: &str = "v1a";

/// What pushes are signed with. It is not printed, not even for debugging.
///
/// As text it is either `whsec_` and 24 to 64 random bytes in base64, which the receivers have to know too; or, with the
/// feature `ed25519`, `whsk_` and 32 random bytes in base64, of which receivers need the public half only.
#[derive(Clone)]
pub struct Secret(Key);

#[derive(Clone)]
enum Key {
    Shared(Hmac<Sha256>),
    #[cfg(feature = "ed25519")]
    Private(std::sync::Arc<PrivateKey>),
}

/// A text that is no [`Secret`]'s. It is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// It begins with neither `whsec_` nor `whsk_`.
    #[error("a signing secret begins with whsec_: write whsec_ and 24 to 64 random bytes in base64")]
    Prefix,
    /// It is not base64.
    #[error("what follows whsec_ in a signing secret is not base64: use the standard alphabet with padding")]
    Base64,
    /// It is too short or too long.
    #[error("a signing secret of {bytes} bytes cannot be used: make one of 24 to 64, of 32 if in doubt")]
    Length {
        /// How many bytes it has.
        bytes: usize,
    },
    /// It is an ed25519 key of another length than such keys have.
    #[error(
        "an ed25519 signing key of {bytes} bytes cannot be used: write whsk_ and 32 random bytes in base64"
    )]
    KeyLength {
        /// How many bytes it has.
        bytes: usize,
    },
    /// Its second half is not the public half of its first.
    #[error("an ed25519 signing key of 64 bytes ends with its public half, and this one ends with another's")]
    KeyMismatch,
    /// It is an ed25519 key, and this program was built without them.
    #[error(
        "keys that begin with whsk_ are not supported here: write whsec_ and 24 to 64 random bytes in base64"
    )]
    NoKeys,
}

impl Secret {
    /// The public half of an ed25519 key, `whpk_` and base64; a shared secret has none.
    pub fn public_key(&self) -> Option<String> {
        match &self.0 {
            Key::Shared(_) => None,
            #[cfg(feature = "ed25519")]
            Key::Private(key) => Some(key.public_key()),
        }
    }

    /// The signature of what is sent: `v1,` or `v1a,` and a code in base64.
    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        match &self.0 {
            Key::Shared(secret) => {
                let code = over(secret, id, timestamp, body).finalize().into_bytes();
                format!("{V1},{}", Base64::encode_string(&code))
            }
            #[cfg(feature = "ed25519")]
            Key::Private(key) => format!("{V1A},{}", Base64::encode_string(&key.sign(id, timestamp, body))),
        }
    }

    /// Whether `code`, of a signature of this version, is that of what was received; found out in a time that does not
    /// depend on the code.
    pub(super) fn verifies(
        &self,
        version: &str,
        code: &[u8],
        id: &str,
        timestamp: &str,
        body: &[u8],
    ) -> bool {
        match &self.0 {
            Key::Shared(secret) => {
                version == V1 && over(secret, id, timestamp, body).verify_slice(code).is_ok()
            }
            #[cfg(feature = "ed25519")]
            Key::Private(key) => version == V1A && key.verifies(code, id, timestamp, body),
        }
    }
}

fn over(secret: &Hmac<Sha256>, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let head = [id.as_bytes(), b".", timestamp.as_bytes(), b"."];
    let mut code = secret.clone();
    head.into_iter().chain([body]).for_each(|part| code.update(part));
    code
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Secret, SecretError> {
        if let Some(encoded) = text.strip_prefix(PRIVATE) {
            return private(encoded);
        }
        let encoded = text.strip_prefix(SHARED).ok_or(SecretError::Prefix)?;
        let key = Base64::decode_vec(encoded).map_err(|_| SecretError::Base64)?;
        let bytes = key.len();
        let key = Some(key).filter(|key| LENGTHS.contains(&key.len()));
        let keyed = key.and_then(|key| Hmac::new_from_slice(&key).ok());
        keyed.map(|shared| Secret(Key::Shared(shared))).ok_or(SecretError::Length { bytes })
    }
}

#[cfg(feature = "ed25519")]
fn private(encoded: &str) -> Result<Secret, SecretError> {
    let bytes = Base64::decode_vec(encoded).map_err(|_| SecretError::Base64)?;
    PrivateKey::new(&bytes).map(|key| Secret(Key::Private(key.into())))
}

#[cfg(not(feature = "ed25519"))]
fn private(_: &str) -> Result<Secret, SecretError> {
    Err(SecretError::NoKeys)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_the_reference_libraries_do() {
        for (secret, id, timestamp, body, signature) in [
            (
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                "1614265330",
                r#"{"test": 2432232314}"#,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            (
                "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
                "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
                "1649367553",
                r#"{"email":"test@example.com","username":"test_user"}"#,
                "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
            ),
        ] {
            let secret: Secret = secret.parse().unwrap();
            assert_eq!(secret.sign(id, timestamp, body.as_bytes()), signature);
            assert_eq!(secret.public_key(), None);
        }
    }

    #[test]
    fn refuses_what_is_no_secret_without_showing_it() {
        let of = |bytes: usize| format!("whsec_{}", Base64::encode_string(&vec![7; bytes]));
        for (text, expected) in [
            (of(24), Ok(())),
            (of(64), Ok(())),
            (of(23), Err(SecretError::Length { bytes: 23 })),
            (of(65), Err(SecretError::Length { bytes: 65 })),
            ("whsec_".into(), Err(SecretError::Length { bytes: 0 })),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(), Err(SecretError::Prefix)),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS".into(), Err(SecretError::Base64)),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_".into(), Err(SecretError::Base64)),
        ] {
            let read = text.parse::<Secret>();
            assert_eq!(read.as_ref().map(|_| ()).map_err(|error| *error), expected, "{text}");
            let said = match read {
                Ok(secret) => format!("{secret:?}"),
                Err(error) => error.to_string(),
            };
            assert!(!said.contains("MfKQ9r8G") && !said.contains("BwcHBwcH"), "{said}");
        }
    }

    #[cfg(not(feature = "ed25519"))]
    #[test]
    fn a_key_is_refused_where_none_is_supported() {
        let key = format!("whsk_{}", Base64::encode_string(&[7; 32]));
        assert_eq!(key.parse::<Secret>().unwrap_err(), SecretError::NoKeys);
    }
}
