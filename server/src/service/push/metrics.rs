use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const REQUESTS: &str = "delayline_push_requests_total";
const SECONDS: &str = "delayline_push_seconds";
const IN_FLIGHT: &str = "delayline_push_in_flight";
const CIRCUIT: &str = "delayline_push_circuit_open";
/// The most hosts that have a series of their own.
const HOSTS: usize = 100;

static OPENED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Tells the recorder what is counted here.
pub(crate) fn describe() {
    describe_counter!(REQUESTS, "Pushes, by how they ended.");
    describe_histogram!(
        SECONDS,
        Unit::Seconds,
        "From the beginning of a push to its answer, or to its failure."
    );
    describe_gauge!(IN_FLIGHT, "Pushes under way.");
    describe_gauge!(
        CIRCUIT,
        "Whether pushes to a host are held back since it fails; of the first 100 that did."
    );
}

pub(super) fn begun() {
    gauge!(IN_FLIGHT).increment(1.0);
}

pub(super) fn ended() {
    gauge!(IN_FLIGHT).decrement(1.0);
}

pub(super) fn answered(outcome: &'static str, took: Duration) {
    counter!(REQUESTS, "outcome" => outcome).increment(1);
    histogram!(SECONDS).record(took);
}

pub(super) fn circuit(origin: &str, is_open: bool) {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if opened.contains(origin) || opened.len() < HOSTS {
        opened.insert(origin.to_owned());
        gauge!(CIRCUIT, "host" => origin.to_owned()).set(if is_open { 1.0 } else { 0.0 });
    }
}
