use std::time::SystemTime;

use delayline_http::Time;
use delayline_tokio::UnixMs;
use serde::Serialize;

/// How a target does, as one process knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TargetState {
    target: String,
    /// `closed`, `open` or `half_open`.
    circuit: &'static str,
    /// Until when nothing is sent there.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<String>,
    in_flight: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<LastFailure>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct LastFailure {
    at: String,
    why: String,
}

impl TargetState {
    pub(super) fn new(
        origin: &str,
        circuit: &'static str,
        held_until: Option<SystemTime>,
        in_flight: u32,
        last_failure: Option<(SystemTime, String)>,
    ) -> TargetState {
        TargetState {
            target: origin.to_owned(),
            circuit,
            held_until: held_until.map(written),
            in_flight,
            last_failure: last_failure.map(|(at, why)| LastFailure { at: written(at), why }),
        }
    }
}

fn written(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(UnixMs(u64::try_from(since.as_millis()).unwrap_or_default())).to_string()
}
