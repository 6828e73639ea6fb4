use delayline_http::{Object, Problem};
use delayline_tokio::{Namespace, QueueName};
use serde::{Deserialize, Serialize};

use super::Sample;

/// How much a namespace may hold; what is not set is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_field_names, reason = "they are the words of the API")]
pub(crate) struct Ceilings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_queues: Option<u64>,
    /// Dead letters included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_jobs: Option<u64>,
    /// Of records, estimated by their mean length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_bytes: Option<u64>,
}

impl Ceilings {
    pub(crate) fn read(json: &[u8]) -> Result<Ceilings, Problem> {
        let ceilings: Ceilings = Object::read(json).map_err(|error| {
            let detail = format!(
                "the body limits no namespace: {error}: write {{\"max_queues\": 100, \"max_jobs\": 1000000, \
                 \"max_bytes\": 1073741824}}"
            );
            Problem::bad("bad_json", detail)
        })?;
        if ceilings == Ceilings::default() {
            let detail =
                "the body limits nothing: give max_queues, max_jobs or max_bytes, or DELETE what is set";
            return Err(Problem::bad("bad_json", detail));
        }
        Ok(ceilings)
    }

    /// Refuses jobs that would not fit beside what is there.
    pub(super) fn check(
        &self,
        namespace: &Namespace,
        sample: &Sample,
        queue: &QueueName,
        jobs: u64,
        bytes: u64,
    ) -> Result<(), Problem> {
        let queues = sample.queues.len() as u64 + u64::from(!sample.queues.contains(queue));
        let (jobs, bytes) = (sample.jobs().saturating_add(jobs), sample.bytes.saturating_add(bytes));
        for (what, count, most) in [
            ("queues", queues, self.max_queues),
            ("jobs", jobs, self.max_jobs),
            ("bytes", bytes, self.max_bytes),
        ] {
            let Some(most) = most.filter(|most| count > *most) else { continue };
            let detail = format!(
                "namespace {namespace} may hold {most} {what}: wait until jobs are done, purge dead letters, destroy \
                 queues, or ask for a higher max_{what}"
            );
            return Err(Problem::new(429, "namespace_full", detail).retry_after(5));
        }
        Ok(())
    }
}
