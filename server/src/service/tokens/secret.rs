use std::fmt::Write;

use sha2::{Digest, Sha256};

const PREFIX: &str = "dl_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// The text of a token, `dl_<id>_<secret>`, both in lower-case hexadecimal. It is not printed.
pub(super) struct Secret {
    /// By which the token is looked up. It is no secret.
    pub(super) id: String,
    secret: String,
}

impl Secret {
    /// A new one, of the operating system's random numbers.
    ///
    /// # Panics
    /// If there are none: a token that can be guessed must not be.
    pub(super) fn draw() -> Secret {
        Secret { id: random_hex::<ID_BYTES>(), secret: random_hex::<SECRET_BYTES>() }
    }

    /// The secret of a text, if it has the form of a token.
    pub(super) fn read(text: &[u8]) -> Option<Secret> {
        let text = str::from_utf8(text).ok()?.strip_prefix(PREFIX)?;
        let (id, secret) = text.split_once('_')?;
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let fits =
            id.len() == 2 * ID_BYTES && secret.len() == 2 * SECRET_BYTES && is_hex(id) && is_hex(secret);
        fits.then(|| Secret { id: id.to_owned(), secret: secret.to_owned() })
    }

    pub(super) fn text(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }

    /// What is kept of it, in hexadecimal. A secret of 256 random bits needs no slow hash.
    pub(super) fn sha256(&self) -> String {
        hex(&self.hash())
    }

    pub(super) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }
}

/// Bytes from their hexadecimal form.
pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn random_hex<const N: usize>() -> String {
    let mut bytes = [0; N];
    if let Err(why) = getrandom::fill(&mut bytes) {
        panic!("the operating system gave no random numbers: {why}");
    }
    hex(&bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_back() {
        let drawn = Secret::draw();
        let read = Secret::read(drawn.text().as_bytes()).unwrap();
        assert_eq!((&read.id, read.hash()), (&drawn.id, drawn.hash()));
        assert_eq!(unhex(&drawn.sha256()), Some(drawn.hash()));
        assert_ne!(Secret::draw().hash(), drawn.hash());
        for wrong in ["", "dl_", "dl_ab_cd", "x", &drawn.text()[1..], &format!("{}x", drawn.text())] {
            assert!(Secret::read(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
