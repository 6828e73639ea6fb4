use std::fs;
use std::path::Path;

use bytes::Bytes;
use delayline_core::{
    Ceiling, Command, Compression, Due, Entry, Identity, QueueName, Record, Reply, Session, Settlement,
    Shards,
};
use delayline_lua::Script;

use super::life::Lives;
use crate::{RedisServer, RedisStore};

const LEASE_MS: u64 = 30_000;

/// Jobs that live by scripts, in a queue of their own.
pub(super) struct Scripts {
    store: RedisStore,
    queue: QueueName,
    sequence: u64,
    published: u64,
    record: Bytes,
}

impl Scripts {
    /// By the scripts of this build, or by those of another commit's folder `lua`.
    pub(super) fn new(server: &RedisServer, queue: &str, folder: Option<&Path>) -> Scripts {
        let mut store = RedisStore::new(server, Shards::default());
        if let Some(folder) = folder {
            let table = read(&folder.join("src/table.rs"));
            store.run_instead(
                delayline_lua::all().into_iter().map(|script| (script, source(folder, &table, script))),
            );
        }
        let record = Record { body: vec![b'x'; 100].into(), ..Record::default() };
        let record = record.encode(Compression::Off).expect("a small record").to_bytes();
        let queue = queue.parse().expect("a name");
        Scripts { store, queue, sequence: 0, published: 0, record }
    }

    fn session(&mut self) -> Session {
        self.sequence += 1;
        Session { engine: Identity(7), lane: 0, sequence: self.sequence }
    }
}

impl Lives for Scripts {
    fn publish(&mut self, count: usize) {
        let session = self.session();
        let entry = |number: u64| Entry {
            id: format!("job-{number:010}").parse().expect("an id"),
            due: Due::After { ms: 0 },
            ttl_ms: 0,
            replace: false,
            edit: None,
            record: self.record.clone(),
        };
        let jobs = (self.published..).take(count).map(entry).collect();
        self.published += count as u64;
        let ceiling = Ceiling { jobs: 0, bytes: 0 };
        let publish = Command::Publish { queue: self.queue.clone(), session, ceiling, jobs };
        match self.store.execute(None, &publish) {
            Reply::Published { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn run(&mut self, count: usize) {
        let (session, queue) = (self.session(), self.queue.clone());
        let count = u16::try_from(count).expect("a small batch");
        let (lease_ms, max_bytes) = (LEASE_MS, 1 << 20);
        let reserve = Command::Reserve { queue, session, count, lease_ms, max_bytes, wakeable: true };
        let Reply::Granted { jobs, fence, .. } = self.store.execute(None, &reserve) else {
            panic!("nothing was granted");
        };
        assert_eq!(jobs.len(), usize::from(count));
        let leases = jobs.into_iter().map(|job| (job.id, fence, Settlement::Ack)).collect();
        let settle = Command::Settle { queue: self.queue.clone(), tidy: false, leases };
        match self.store.execute(None, &settle) {
            Reply::Settled { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A script as another commit's table puts it together.
fn source(folder: &Path, table: &str, script: &Script) -> String {
    let line = table.lines().find(|line| line.contains(&format!(" \"{}\":", script.name)));
    let line = line.unwrap_or_else(|| panic!("{} has no {}", folder.display(), script.name));
    let parts = line.split_once(':').map_or("", |(_, parts)| parts).split('"').skip(1).step_by(2);
    let files = parts.map(|part| folder.join("lib").join(part)).chain([folder.join(script.name)]);
    let text: Vec<String> = files.map(|file| read(&file.with_extension("lua"))).collect();
    let lines = text.iter().flat_map(|text| text.lines()).map(|line| line.trim_start_matches(' '));
    lines.filter(|line| !line.is_empty() && !line.starts_with("--")).flat_map(|line| [line, "\n"]).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}
