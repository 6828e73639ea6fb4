use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ::metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_histogram, histogram};
use axum::http::{Method, StatusCode};

const REQUESTS: &str = "delayline_http_requests_total";
const SECONDS: &str = "delayline_http_request_seconds";
/// The recorder ends a series that was not used for twice as long: until then it is the same one.
const FRESH: Duration = Duration::from_secs(15 * 60);
const UNMATCHED: &str = "unmatched";

/// The series of requests, opened once for each route, method and status.
pub(crate) struct RequestMeters {
    begun: Instant,
    routes: RwLock<HashMap<String, Vec<RequestMeter>>>,
}

struct RequestMeter {
    method: &'static str,
    status: StatusCode,
    answered: Counter,
    seconds: Histogram,
    /// When it was last used, in milliseconds since the meters began.
    used_ms: AtomicU64,
}

/// Tells the recorder what is counted here.
pub(super) fn describe() {
    describe_counter!(REQUESTS, "Requests answered.");
    describe_histogram!(SECONDS, Unit::Seconds, "From a request to the beginning of its answer.");
}

impl RequestMeters {
    pub(crate) fn new() -> Arc<RequestMeters> {
        Arc::new(RequestMeters { begun: Instant::now(), routes: RwLock::default() })
    }

    /// Callers may make methods up, but no series by that.
    pub(crate) fn known(method: &Method) -> &'static str {
        match *method {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            Method::OPTIONS => "OPTIONS",
            _ => "other",
        }
    }

    /// Counts and measures an answer to a request by a [known](RequestMeters::known) method that has begun then.
    pub(crate) fn count(
        &self,
        route: Option<&str>,
        method: &'static str,
        status: StatusCode,
        begun: Instant,
    ) {
        let now = Instant::now();
        let now_ms = u64::try_from((now - self.begun).as_millis()).unwrap_or(u64::MAX);
        self.add(route.unwrap_or(UNMATCHED), method, status, now - begun, now_ms);
    }

    fn add(&self, route: &str, method: &'static str, status: StatusCode, took: Duration, now_ms: u64) {
        let is_counted = {
            let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
            let meter =
                routes.get(route).and_then(|meters| meters.iter().find(|meter| meter.is_of(method, status)));
            meter.is_some_and(|meter| meter.count(now_ms, took))
        };
        if !is_counted {
            self.open(route, method, status, now_ms).count(now_ms, took);
        }
    }

    /// Opens a series, anew if the recorder may have ended it.
    fn open(&self, route: &str, method: &'static str, status: StatusCode, now_ms: u64) -> RequestMeter {
        let meter = || RequestMeter::open(route, method, status, now_ms);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let meters = routes.entry(route.to_owned()).or_default();
        meters.retain(|meter| !meter.is_of(method, status));
        meters.push(meter());
        meter()
    }
}

impl RequestMeter {
    fn open(route: &str, method: &'static str, status: StatusCode, now_ms: u64) -> RequestMeter {
        let route = route.to_owned();
        let seconds = histogram!(SECONDS, "method" => method, "route" => route.clone());
        let code = status.as_str().to_owned();
        let answered = counter!(REQUESTS, "method" => method, "route" => route, "status" => code);
        RequestMeter { method, status, answered, seconds, used_ms: AtomicU64::new(now_ms) }
    }

    fn is_of(&self, method: &'static str, status: StatusCode) -> bool {
        self.method == method && self.status == status
    }

    /// Answers whether it was still fresh, and is counted.
    fn count(&self, now_ms: u64, took: Duration) -> bool {
        let used_ms = self.used_ms.load(Relaxed);
        if u128::from(now_ms.saturating_sub(used_ms)) >= FRESH.as_millis() {
            return false;
        }
        self.used_ms.store(now_ms, Relaxed);
        self.answered.increment(1);
        self.seconds.record(took);
        true
    }
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn a_series_is_opened_once_and_again_when_it_was_idle() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let meters = RequestMeters::new();
        let count = |now_ms| {
            let took = Duration::from_millis(1);
            let count = || meters.add("/a", "GET", StatusCode::OK, took, now_ms);
            ::metrics::with_local_recorder(&recorder, count);
        };
        count(0);
        count(1);
        let rendered = handle.render();
        let expected = r#"delayline_http_requests_total{method="GET",route="/a",status="200"} 2"#;
        assert!(rendered.contains(expected), "{rendered}");
        let idle_ms = u64::try_from(FRESH.as_millis()).unwrap();
        // Whoever counted here last is another recorder, to which a series leads that was opened before.
        let other = PrometheusBuilder::new().build_recorder();
        let count_there = |now_ms| {
            let count = || meters.add("/a", "GET", StatusCode::OK, Duration::ZERO, now_ms);
            ::metrics::with_local_recorder(&other, count);
            other.handle().render().contains("requests_total{")
        };
        assert!(!count_there(idle_ms), "the series is fresh");
        assert!(count_there(2 * idle_ms), "it may have ended");
        assert_eq!(meters.routes.read().unwrap()["/a"].len(), 1);
    }
}
