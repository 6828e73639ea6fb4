//! Jobs as a reserve grants them, for the first time and without options.

use delayline_core::{Compression, Fence, Grant, Phase, Reason, Record, State, UnixMs};

pub(crate) const START_MS: u64 = 1_760_000_000_000;

pub(crate) fn grant(id: &str) -> Grant {
    let record = Record::default().encode(Compression::Off).unwrap().to_bytes();
    let due = UnixMs(START_MS);
    let state = State {
        phase: Phase::Leased,
        fence: Fence(7),
        attempts: 1,
        verdict: None,
        max: 10,
        deliveries: 1,
        flags: 0,
        due,
        extension: String::new(),
        reason: Reason::default(),
    };
    Grant { id: id.parse().unwrap(), due, record, state }
}
