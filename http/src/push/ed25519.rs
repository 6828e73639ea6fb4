use base64ct::{Base64, Encoding};
use ed25519_dalek::{Signature, Signer, SigningKey};

use super::SecretError;

const PUBLIC: &str = "whpk_";
const SEED_BYTES: usize = 32;
const PAIR_BYTES: usize = 64;

/// The private half of an ed25519 key.
pub(super) struct PrivateKey(SigningKey);

impl PrivateKey {
    /// The key of these 32 bytes; the public half may follow.
    pub(super) fn new(bytes: &[u8]) -> Result<PrivateKey, SecretError> {
        if let Ok(pair) = <[u8; PAIR_BYTES]>::try_from(bytes) {
            return SigningKey::from_keypair_bytes(&pair)
                .map(PrivateKey)
                .map_err(|_| SecretError::KeyMismatch);
        }
        let seed = <[u8; SEED_BYTES]>::try_from(bytes);
        let seed = seed.map_err(|_| SecretError::KeyLength { bytes: bytes.len() })?;
        Ok(PrivateKey(SigningKey::from_bytes(&seed)))
    }

    /// The public half as text.
    pub(super) fn public_key(&self) -> String {
        format!("{PUBLIC}{}", Base64::encode_string(self.0.verifying_key().as_bytes()))
    }

    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> [u8; 64] {
        self.0.sign(&signed(id, timestamp, body)).to_bytes()
    }

    pub(super) fn verifies(&self, code: &[u8], id: &str, timestamp: &str, body: &[u8]) -> bool {
        let signature = Signature::from_slice(code);
        signature.is_ok_and(|code| self.0.verify_strict(&signed(id, timestamp, body), &code).is_ok())
    }
}

fn signed(id: &str, timestamp: &str, body: &[u8]) -> Vec<u8> {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::{Secret, Signed, Unverified};

    /// RFC 8032, section 7.1, test 1.
    const SEED: [u8; 32] = [
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44,
        0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
    ];
    const PUBLIC_KEY: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    fn key(bytes: &[u8]) -> Result<Secret, SecretError> {
        format!("whsk_{}", Base64::encode_string(bytes)).parse()
    }

    #[test]
    fn a_key_has_the_public_half_that_the_standard_says() {
        assert_eq!(key(&SEED).unwrap().public_key().as_deref(), Some(PUBLIC_KEY));
        let public = Base64::decode_vec(PUBLIC_KEY.strip_prefix(PUBLIC).unwrap()).unwrap();
        let pair = [&SEED[..], &public].concat();
        assert_eq!(key(&pair).unwrap().public_key().as_deref(), Some(PUBLIC_KEY));
        assert_eq!(key(&[&SEED[..], &[1; 32]].concat()).unwrap_err(), SecretError::KeyMismatch);
        assert_eq!(key(&[1; 31]).unwrap_err(), SecretError::KeyLength { bytes: 31 });
        assert_eq!("whsk_%".parse::<Secret>().unwrap_err(), SecretError::Base64);
        assert_eq!(format!("{:?}", key(&SEED).unwrap()), "Secret(..)");
    }

    #[test]
    fn what_a_key_signs_is_believed_and_nothing_else() {
        let ours = key(&SEED).unwrap();
        let shared: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature = ours.sign("msg_1", "1614265330", b"{}");
        assert!(signature.starts_with("v1a,"), "{signature}");
        let received = Signed { id: "msg_1", timestamp: "1614265330", signatures: &signature, body: b"{}" };
        let as_shared = signature.replace("v1a,", "v1,");
        let mislabelled = Signed { signatures: &as_shared, ..received };
        let changed = Signed { body: b"{ }", ..received };
        for (received, secret, expected) in [
            (received, &ours, Ok(())),
            (received, &shared, Err(Unverified::Signature)),
            (mislabelled, &ours, Err(Unverified::Signature)),
            (changed, &ours, Err(Unverified::Signature)),
            (received, &key(&[3; 32]).unwrap(), Err(Unverified::Signature)),
        ] {
            assert_eq!(
                received.verify(std::slice::from_ref(secret), 1_614_265_330, 0),
                expected,
                "{received:?}"
            );
        }
    }
}
