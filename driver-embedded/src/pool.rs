use std::collections::BTreeMap;
use std::ops::Deref;

use bytes::Bytes;
use delayline_core::JobId;

/// What a job takes beside its record and twice its id, about: its places in the other keys.
const OVERHEAD: usize = 256;

/// The records of a queue's jobs, and how much they take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    records: BTreeMap<JobId, Bytes>,
    bytes: usize,
}

impl Pool {
    pub(crate) fn insert(&mut self, id: JobId, record: Bytes) {
        self.remove(&id);
        self.bytes += size(&id, &record);
        self.records.insert(id, record);
    }

    pub(crate) fn remove(&mut self, id: &JobId) {
        if let Some(record) = self.records.remove(id) {
            self.bytes -= size(id, &record);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Pool::default();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// How many bytes a job takes, about.
pub(crate) fn size(id: &JobId, record: &[u8]) -> usize {
    record.len() + 2 * id.as_str().len() + OVERHEAD
}

impl Deref for Pool {
    type Target = BTreeMap<JobId, Bytes>;

    fn deref(&self) -> &BTreeMap<JobId, Bytes> {
        &self.records
    }
}
