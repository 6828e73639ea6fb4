use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

/// By which a client of Upstash tells a replica how new what it reads must be.
pub(super) const SYNC_TOKEN: &str = "upstash-sync-token";

/// Gives clients tokens that grow. All commands go to one Redis, which shows each the writes that were answered before, so
/// that what a client sends back needs no look.
pub(super) struct SyncTokens(AtomicU64);

impl SyncTokens {
    /// They go on from the clock, in microseconds, so that they grow across restarts too.
    pub(super) fn new() -> SyncTokens {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SyncTokens(AtomicU64::new(u64::try_from(since.as_micros()).unwrap_or(0)))
    }

    /// The answer to a request with these headers, with a token if the client wants one: later than what it sent.
    pub(super) fn stamp(&self, mut response: Response, asked: &HeaderMap) -> Response {
        if let Some(sent) = asked.get(SYNC_TOKEN) {
            let sent = sent.to_str().ok().and_then(|sent| sent.parse::<u64>().ok()).unwrap_or(0);
            // A number that no clock has reached is none of these.
            let sent = if sent < u64::MAX / 2 { sent } else { 0 };
            let last = self.0.fetch_max(sent, Ordering::Relaxed).max(sent);
            let token = self.0.fetch_add(1, Ordering::Relaxed).max(last) + 1;
            response.headers_mut().insert(SYNC_TOKEN, HeaderValue::from(token));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;

    fn stamped(tokens: &SyncTokens, sent: &str) -> u64 {
        let asked = HeaderMap::from_iter([(SYNC_TOKEN.parse().unwrap(), sent.parse().unwrap())]);
        let response = tokens.stamp(().into_response(), &asked);
        response.headers()[SYNC_TOKEN].to_str().unwrap().parse().unwrap()
    }

    #[test]
    fn each_token_is_later_than_those_before() {
        let tokens = SyncTokens::new();
        let first = stamped(&tokens, "");
        let second = stamped(&tokens, "a token of somebody else");
        assert!(second > first);
        // Of another endpoint, whose clock is ahead.
        let third = stamped(&tokens, &(second + 1_000).to_string());
        assert!(third > second + 1_000);
        assert!(stamped(&tokens, &first.to_string()) > third);
        let fourth = stamped(&tokens, &u64::MAX.to_string());
        assert!(fourth > third && fourth < third + 10);
        let answered = tokens.stamp(().into_response(), &HeaderMap::new());
        assert!(!answered.headers().contains_key(SYNC_TOKEN));
    }

    #[test]
    fn tokens_grow_across_restarts() {
        let before = stamped(&SyncTokens::new(), "");
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(stamped(&SyncTokens::new(), "") > before);
    }
}
