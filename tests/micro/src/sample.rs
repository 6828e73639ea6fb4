use std::iter;

use bytes::Bytes;
use delayline_core::wire::{Args, Value};
use delayline_core::{
    Ceiling, Command, Due, Entry, Fence, Identity, JobId, QueueName, Record, Session, Settlement,
};

/// The fence of all that is granted here.
const FENCE: u64 = 1_763_700_000_000_000;

/// A job as it is stored whose body has so many bytes: JSON, as bodies are.
pub fn record(bytes: usize) -> Record {
    let text = b"{\"order\":1763700,\"customer\":\"c-48151623\",\"lines\":[{\"sku\":\"A-17\",\"count\":2}]},";
    let body: Vec<u8> = text.iter().copied().cycle().take(bytes).collect();
    Record { body: body.into(), ..Record::default() }
}

/// The commands of a life of so many jobs: their publish, the reserve that grants them, the settle that acknowledges them.
///
/// # Panics
/// If they are more than a reserve may ask for.
pub fn commands(jobs: u16, record: &Bytes) -> [Command; 3] {
    let queue: QueueName = "orders".parse().expect("a name");
    let session = Session { engine: Identity(7), lane: 0, sequence: 12 };
    let entry = |id: JobId| Entry {
        id,
        due: Due::After { ms: 0 },
        ttl_ms: 0,
        replace: false,
        edit: None,
        record: record.clone(),
    };
    let leases = ids(jobs).map(|id| (id, Fence(FENCE), Settlement::Ack)).collect();
    let ceiling = Ceiling { jobs: 2_000_000, bytes: 0 };
    let jobs_of_it = ids(jobs).map(entry).collect();
    [
        Command::Publish { queue: queue.clone(), session, ceiling, jobs: jobs_of_it },
        Command::Reserve {
            queue: queue.clone(),
            session,
            count: jobs,
            lease_ms: 30_000,
            max_bytes: 1 << 20,
            wakeable: true,
        },
        Command::Settle { queue, tidy: false, leases },
    ]
}

/// What a publish of so many jobs answers, as a transport reads it.
pub fn published(jobs: u16) -> Value {
    let us = FENCE.to_string();
    let letters = "n".repeat(jobs.into());
    Value::Array(["ok", &us, &us, &letters].map(text).into())
}

/// What a reserve that grants so many jobs answers, as a transport reads it.
pub fn granted(jobs: u16, record: &Bytes) -> Value {
    let each = |value: &dyn Fn(JobId) -> Value| Value::Array(ids(jobs).map(value).collect());
    let (us, due) = (FENCE, FENCE / 1000);
    let state = format!("L{us}00010010000100{due}00");
    Value::Array(vec![
        text("ok"),
        text(&us.to_string()),
        text(&us.to_string()),
        text(&(due + 30_000).to_string()),
        text(""),
        each(&|id| text(id.as_str())),
        each(&|_| text(&due.to_string())),
        each(&|_| Value::Bytes(record.clone())),
        each(&|_| text(&state)),
        text(""),
        text("1"),
    ])
}

fn text(text: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

fn ids(jobs: u16) -> impl Iterator<Item = JobId> {
    let mut number = 0;
    let id = move || {
        number += 1;
        format!("job-{number:010}").parse().expect("an id")
    };
    iter::repeat_with(id).take(jobs.into())
}

/// Takes a command's words into one buffer, each after its length, as RESP has them.
#[derive(Debug, Default)]
pub struct Words(pub Vec<u8>);

impl Args for Words {
    fn arg(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes.len().to_be_bytes());
        self.0.extend_from_slice(bytes);
    }
}
