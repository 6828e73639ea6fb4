use std::fmt::Display;
use std::str::FromStr;

use delayline_core::{JobId, Lease, QueueName};

use crate::Problem;

/// What a part of the path can be.
pub trait Segment: FromStr<Err: Display> {
    /// What it is called.
    const NAME: &'static str;
    /// The code of the problem that it cannot be read.
    const CODE: &'static str;
}

impl Segment for QueueName {
    const NAME: &'static str = "queue";
    const CODE: &'static str = "bad_queue_name";
}

impl Segment for JobId {
    const NAME: &'static str = "id";
    const CODE: &'static str = "bad_job_id";
}

impl Segment for Lease {
    const NAME: &'static str = "lease";
    const CODE: &'static str = "bad_lease";
}

/// Reads a name, saying what is wrong with it.
pub fn named<T: Segment>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error| Problem::bad(T::CODE, error))
}
