use alloc::format;

use super::base::Base;
use super::settler::{Settler, Whose};
use crate::{
    Backoff, Event, Fault, Grant, Job, Lease, Millis, QueueName, Reason, Record, RecordError, Settlement,
    UnixMicros, UnixMs,
};

const NEWER_MS: u64 = 60_000;

/// What every grant of a reply has in common.
pub(super) struct Granted {
    pub(super) lease_ms: u64,
    pub(super) lease_end: Millis,
    pub(super) lease_ends: UnixMs,
    pub(super) backoff: Option<Backoff>,
    pub(super) time: UnixMicros,
}

impl Granted {
    /// A grant as a job; what cannot be read is settled here.
    pub(super) fn read(
        &self,
        base: &mut Base,
        settler: &mut Settler,
        queue: &QueueName,
        grant: Grant,
    ) -> Option<Job> {
        let (id, fence, state) = (grant.id, grant.state.fence, grant.state);
        let record = match Record::decode(&grant.record, base.config.body_limit) {
            Ok(record) => record,
            Err(error) => {
                let settlement = match &error {
                    RecordError::Newer { .. } => Settlement::Release { after_ms: NEWER_MS },
                    other => Settlement::Bury { reason: Reason::new(&format!("unreadable: {other}")) },
                };
                settler.settle(base, queue, (id, fence), settlement, Whose::Nobody);
                base.events.push_back(Event::Fault(Fault::Record(error)));
                return None;
            }
        };
        let backoff =
            record.metadata.backoff.as_ref().or(self.backoff.as_ref()).unwrap_or(&base.config.backoff);
        let retry_ms = backoff.delay_ms(state.attempts.into(), base.config.salt, &id);
        Some(Job {
            held: None,
            lease: Lease { queue: queue.clone(), id, fence, retry_ms },
            attempt: state.attempts,
            max_attempts: state.max,
            deliveries: state.deliveries,
            due: grant.due,
            lease_ends: self.lease_ends,
            late_ms: self.time.floor_ms().since(grant.due),
            published: record.metadata.published,
            content_type: record.metadata.content_type,
            headers: record.metadata.headers,
            trace: record.metadata.trace,
            last_reason: state.reason,
            body: record.body,
        })
    }
}
