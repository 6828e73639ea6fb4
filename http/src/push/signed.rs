use base64ct::{Base64, Encoding};
use thiserror::Error;

use super::Secret;

/// A push as it was received, for whoever wants to know that it is what was sent.
///
/// ```
/// use delayline_http::push::{Secret, Signed, Unverified};
///
/// let secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse::<Secret>()?];
/// let received = Signed {
///     id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
///     timestamp: "1614265330",
///     signatures: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
///     body: br#"{"test": 2432232314}"#,
/// };
/// assert_eq!(received.verify(&secrets, 1_614_265_400, 300), Ok(()));
/// assert_eq!(received.verify(&secrets, 1_614_269_000, 300), Err(Unverified::Stale));
/// # Ok::<(), delayline_http::push::SecretError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The header `webhook-id`.
    pub id: &'a str,
    /// The header `webhook-timestamp`.
    pub timestamp: &'a str,
    /// The header `webhook-signature`.
    pub signatures: &'a str,
    /// The body, byte by byte.
    pub body: &'a [u8],
}

/// Why a push is not to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unverified {
    /// Its id could be taken for an id and a timestamp.
    #[error("its webhook-id has a dot, which no id that is signed has")]
    Id,
    /// Its timestamp is none.
    #[error("its webhook-timestamp is no whole number of seconds")]
    Timestamp,
    /// It was signed too long ago, or too far ahead.
    #[error(
        "its webhook-timestamp is too far from this clock: it is an old one sent again, or a clock is wrong"
    )]
    Stale,
    /// None of its signatures is right.
    #[error("none of its signatures is by a known secret: it was changed on its way, or is somebody else's")]
    Signature,
}

impl Signed<'_> {
    /// Checks that it was signed by one of the secrets, at most `tolerance_s` seconds from `now_s`, in seconds since 1970.
    /// Five minutes are usual.
    pub fn verify(&self, secrets: &[Secret], now_s: u64, tolerance_s: u64) -> Result<(), Unverified> {
        if self.id.contains('.') {
            return Err(Unverified::Id);
        }
        let at: u64 = self.timestamp.parse().map_err(|_| Unverified::Timestamp)?;
        if at.abs_diff(now_s) > tolerance_s {
            return Err(Unverified::Stale);
        }
        let codes = self.signatures.split(' ').filter_map(|signature| signature.split_once(','));
        let mut codes = codes.filter_map(|(version, code)| Some((version, Base64::decode_vec(code).ok()?)));
        let is_right =
            codes.any(|(version, code)| secrets.iter().any(|secret| self.is_by(secret, version, &code)));
        if is_right { Ok(()) } else { Err(Unverified::Signature) }
    }

    fn is_by(&self, secret: &Secret, version: &str, code: &[u8]) -> bool {
        secret.verifies(version, code, self.id, self.timestamp, self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_614_265_330;
    const OTHERS: &str =
        "v1,tFtCZ5RDCPxzWQRWXWPgrCgE2frDBe9gjpbWQxnVfsQ= v1,Mm7xgUVICxZfQ3bgf0h0Dof65L/IFx+PnZvnDWPCX6Q=";

    fn secret(text: &str) -> Secret {
        text.parse().unwrap()
    }

    #[test]
    fn believes_only_what_was_signed() {
        let ours = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let older = secret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
        let (id, timestamp, body) = ("msg_1", "1614265330", &b"{\"a\":1}"[..]);
        let signature = ours.sign(id, timestamp, body);
        let both = format!("{} {signature}", older.sign(id, timestamp, body));
        let among = format!("v1a,hnO3f9T8Ytu9 v1 , {OTHERS} {signature} v2,x");
        let cut = &signature[..signature.len() - 4];
        let with = |signatures| Signed { id, timestamp, signatures, body };
        for (received, secrets, expected) in [
            (with(&*signature), &[&ours][..], Ok(())),
            (with(&*signature), &[&older, &ours], Ok(())),
            (with(&*both), &[&ours], Ok(())),
            (with(&*both), &[&older], Ok(())),
            (with(&*among), &[&ours], Ok(())),
            (with(&*signature), &[&older], Err(Unverified::Signature)),
            (with(&*signature), &[], Err(Unverified::Signature)),
            (with(OTHERS), &[&ours], Err(Unverified::Signature)),
            (with(cut), &[&ours], Err(Unverified::Signature)),
            (with("v1,"), &[&ours], Err(Unverified::Signature)),
            (with(""), &[&ours], Err(Unverified::Signature)),
            (Signed { body: b"{\"a\":2}", ..with(&*signature) }, &[&ours], Err(Unverified::Signature)),
            (Signed { id: "msg_2", ..with(&*signature) }, &[&ours], Err(Unverified::Signature)),
            (Signed { timestamp: "1614265331", ..with(&*signature) }, &[&ours], Err(Unverified::Signature)),
            (Signed { timestamp: "+1614265330", ..with(&*signature) }, &[&ours], Err(Unverified::Signature)),
            (Signed { timestamp: "now", ..with(&*signature) }, &[&ours], Err(Unverified::Timestamp)),
            (Signed { timestamp: "", ..with(&*signature) }, &[&ours], Err(Unverified::Timestamp)),
        ] {
            let secrets: Vec<Secret> = secrets.iter().copied().cloned().collect();
            assert_eq!(received.verify(&secrets, NOW, 300), expected, "{received:?}");
        }
    }

    #[test]
    fn believes_nothing_that_is_old_or_of_the_future() {
        let secrets = [secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
        let signatures = secrets[0].sign("a", "1614265330", b"");
        let received = Signed { id: "a", timestamp: "1614265330", signatures: &signatures, body: b"" };
        for (now, expected) in [
            (NOW, Ok(())),
            (NOW + 300, Ok(())),
            (NOW - 300, Ok(())),
            (NOW + 301, Err(Unverified::Stale)),
            (NOW - 301, Err(Unverified::Stale)),
            (0, Err(Unverified::Stale)),
            (u64::MAX, Err(Unverified::Stale)),
        ] {
            assert_eq!(received.verify(&secrets, now, 300), expected, "{now}");
        }
    }

    #[test]
    fn a_dot_moves_nothing_from_the_body_into_the_id() {
        let secrets = [secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
        let signatures = secrets[0].sign("a", "1000000000", b"1614265330.{}");
        let moved =
            Signed { id: "a.1000000000", timestamp: "1614265330", signatures: &signatures, body: b"{}" };
        assert_eq!(moved.verify(&secrets, NOW, 300), Err(Unverified::Id));
    }
}
