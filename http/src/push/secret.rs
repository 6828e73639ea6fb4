use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

const PREFIX: &str = "whsec_";
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
/// What signatures of this kind begin with.
pub(super) const VERSION: &str = "v1";

/// What pushes are signed with, and whoever receives them knows too: `whsec_` and 24 to 64 random bytes in base64.
///
/// It is not printed, not even for debugging.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

/// A text that is no [`Secret`]'s. It is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// It does not begin with `whsec_`.
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
}

impl Secret {
    /// The signature of what is sent: `v1,` and a code in base64.
    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let code = self.over(id, timestamp, body).finalize().into_bytes();
        format!("{VERSION},{}", Base64::encode_string(&code))
    }

    /// Whether `code` is that of what was received, found out in a time that does not depend on the code.
    pub(super) fn verifies(&self, code: &[u8], id: &str, timestamp: &str, body: &[u8]) -> bool {
        self.over(id, timestamp, body).verify_slice(code).is_ok()
    }

    fn over(&self, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let head = [id.as_bytes(), b".", timestamp.as_bytes(), b"."];
        let mut code = self.0.clone();
        head.into_iter().chain([body]).for_each(|part| code.update(part));
        code
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Secret, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::Prefix)?;
        let key = Base64::decode_vec(encoded).map_err(|_| SecretError::Base64)?;
        let bytes = key.len();
        let key = Some(key).filter(|key| LENGTHS.contains(&key.len()));
        let keyed = key.and_then(|key| Hmac::new_from_slice(&key).ok());
        keyed.map(Secret).ok_or(SecretError::Length { bytes })
    }
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
            assert_eq!(read.as_ref().map(|_| ()).map_err(|error| *error), expected);
            let shown = format!("{read:?}");
            assert!(!shown.contains("MfKQ") && !shown.contains("BwcH") && !shown.contains('7'), "{shown}");
        }
    }
}
