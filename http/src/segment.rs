use std::fmt::Display;
use std::str::FromStr;

use delayline_core::{JobId, Lease, Namespace, QueueName};

use crate::Problem;

/// What a part of the path can be.
pub trait Segment: FromStr<Err: Display> {
    /// What it is called.
    const NAME: &'static str;
    /// The code of the problem that it cannot be read.
    const CODE: &'static str;

    /// The queue that it names, if it names one: a token may be for some queues only.
    fn queue(&self) -> Option<&QueueName> {
        None
    }
}

impl Segment for QueueName {
    const NAME: &'static str = "queue";
    const CODE: &'static str = "bad_queue_name";

    fn queue(&self) -> Option<&QueueName> {
        Some(self)
    }
}

impl Segment for JobId {
    const NAME: &'static str = "id";
    const CODE: &'static str = "bad_job_id";
}

impl Segment for Lease {
    const NAME: &'static str = "lease";
    const CODE: &'static str = "bad_lease";

    fn queue(&self) -> Option<&QueueName> {
        Some(&self.queue)
    }
}

impl Segment for Namespace {
    const NAME: &'static str = "namespace";
    const CODE: &'static str = "bad_namespace";
}

/// Reads a name, saying what is wrong with it.
pub fn named<T: Segment>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error| Problem::bad(T::CODE, error))
}
