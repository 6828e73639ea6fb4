//! Where this process keeps what it counts, by the `metrics` facade.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use tokio::time::{MissedTickBehavior, interval};

use crate::service::metrics;

const SECONDS: [f64; 14] =
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];
const ATTEMPTS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0];
/// How often what was measured is put into buckets, whether or not anybody scrapes.
const KEPT_UP_EVERY: Duration = Duration::from_secs(5);
/// When a series ends that is not used. Whoever counts takes it for the same one for half as long.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How often idle series are looked for, whether or not anybody scrapes.
const SWEPT_EVERY: u32 = 120;
const ANOTHER: &str = "# This process has another recorder of metrics: what it counts is there, not here.\n";

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Installs the recorder of the process, once, unless whoever embeds the service has installed another. What was
/// registered before is not recorded.
pub(crate) fn install() {
    recorder();
}

/// What was counted, as Prometheus text.
pub(crate) fn render() -> String {
    let Some(recorder) = recorder() else { return ANOTHER.to_owned() };
    recorder.run_upkeep();
    recorder.render()
}

/// Never ends: without it a service that nobody scrapes would keep every single measurement.
pub(crate) async fn keep_up() {
    let mut ticks = interval(KEPT_UP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for _ in 0..SWEPT_EVERY {
            ticks.tick().await;
            if let Some(recorder) = recorder() {
                recorder.run_upkeep();
            }
        }
        let _ = render();
    }
}

fn recorder() -> Option<&'static PrometheusHandle> {
    RECORDER
        .get_or_init(|| build().inspect_err(|error| tracing::warn!(%error, "/metrics is not complete")).ok())
        .as_ref()
}

fn build() -> Result<PrometheusHandle, BuildError> {
    let recorder = builder(IDLE)?.install_recorder()?;
    metrics::describe();
    Ok(recorder)
}

/// Of recorders whose series end when they were not used for so long, unless they are gauges, which are set once.
fn builder(idle: Duration) -> Result<PrometheusBuilder, BuildError> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Full("delayline_attempts".to_owned()), &ATTEMPTS)?;
    Ok(builder.idle_timeout(MetricKindMask::COUNTER | MetricKindMask::HISTOGRAM, Some(idle)))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ::metrics::{counter, gauge, histogram, with_local_recorder};

    use super::*;

    #[test]
    fn series_that_nobody_uses_end_and_others_stay() {
        let recorder = builder(Duration::from_millis(200)).unwrap().build_recorder();
        let handle = recorder.handle();
        with_local_recorder(&recorder, || {
            counter!("idle_total", "queue" => "q").increment(1);
            histogram!("idle_seconds", "queue" => "q").record(0.1);
            gauge!("set").set(1.0);
            let said = handle.render();
            assert!(said.contains("idle_total{") && said.contains("idle_seconds_count{"), "{said}");
            let begun = Instant::now();
            loop {
                counter!("used_total").increment(1);
                let said = handle.render();
                assert!(said.contains("used_total") && said.contains("set 1"), "{said}");
                if !said.contains("idle_") {
                    return;
                }
                assert!(begun.elapsed() < Duration::from_secs(60), "{said}");
                std::thread::yield_now();
            }
        });
    }
}
