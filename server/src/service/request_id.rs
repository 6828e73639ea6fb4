use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ulid::Ulid;

use crate::service::tokens::now;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The most characters of an id that a client gives.
const MAX_LENGTH: usize = 128;
/// Crockford's base 32, in lower case.
const DIGITS: [u8; 32] = *b"0123456789abcdefghjkmnpqrstvwxyz";
/// How many of them 64 bits take.
const DRAWN_LENGTH: usize = 13;

/// By which a request is found in the log lines of all that it passes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// The id that a request brings, if it is one of 1 to 128 visible ASCII characters; else a new one.
    pub(crate) fn of(headers: &HeaderMap) -> RequestId {
        let mut given = headers.get_all(X_REQUEST_ID).iter();
        match (given.next(), given.next()) {
            (Some(id), None) if is_valid(id.as_bytes()) => RequestId(id.clone()),
            _ => RequestId::draw(),
        }
    }

    fn draw() -> RequestId {
        let random = random();
        let id: [u8; DRAWN_LENGTH] = std::array::from_fn(|digit| {
            let value = (random >> (5 * (DRAWN_LENGTH - 1 - digit))) & 31;
            DIGITS[usize::try_from(value).unwrap_or_default()]
        });
        RequestId(HeaderValue::from_bytes(&id).unwrap_or_else(|_| HeaderValue::from_static("-")))
    }

    /// A new ULID.
    pub(crate) fn draw_ulid() -> RequestId {
        let random = u128::from(random()) << 64 | u128::from(random());
        let ulid = Ulid::from_parts(now().0, random).to_string();
        RequestId(HeaderValue::try_from(ulid).unwrap_or_else(|_| HeaderValue::from_static("-")))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Tells whoever asked.
    pub(crate) fn put_into(self, headers: &mut HeaderMap) {
        headers.insert(X_REQUEST_ID, self.0);
    }
}

fn is_valid(id: &[u8]) -> bool {
    (1..=MAX_LENGTH).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// splitmix64 from a random beginning: no number comes twice.
fn random() -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    static STATE: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(getrandom::u64().unwrap_or_default()));
    let state = STATE.fetch_add(STEP, Relaxed);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn of(given: &[&[u8]]) -> RequestId {
        let given = given.iter().map(|id| (X_REQUEST_ID, HeaderValue::from_bytes(id).unwrap()));
        let mut headers = HeaderMap::new();
        for (name, id) in given {
            headers.append(name, id);
        }
        RequestId::of(&headers)
    }

    #[test]
    fn an_id_of_visible_ascii_is_kept() {
        let longest = "~".repeat(128);
        for given in ["a", "0-9/:@[`{~!", longest.as_str()] {
            assert_eq!(of(&[given.as_bytes()]).as_str(), given);
        }
    }

    #[test]
    fn any_other_is_replaced_by_a_new_one() {
        let too_long = vec![b'a'; 129];
        let bad: [&[&[u8]]; 7] =
            [&[], &[b""], &[b"a b"], &[b"a\tb"], &[b"\xc3\xa4"], &[&too_long], &[b"a", b"b"]];
        for given in bad {
            let id = of(given);
            assert_eq!(id.as_str().len(), DRAWN_LENGTH, "{given:?}");
            assert!(id.as_str().bytes().all(|digit| DIGITS.contains(&digit)), "{id:?}");
        }
    }

    #[test]
    fn no_id_is_drawn_twice() {
        for draw in [RequestId::draw, RequestId::draw_ulid] {
            let ids: HashSet<String> = (0..10_000).map(|_| draw().as_str().to_owned()).collect();
            assert_eq!(ids.len(), 10_000);
        }
        assert_eq!(RequestId::draw_ulid().as_str().len(), 26);
    }
}
