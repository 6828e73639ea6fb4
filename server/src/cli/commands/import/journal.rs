use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use delayline_tokio::redis::{Cmd, cmd};

use super::connection::Connection;
use super::origin::Origin;
use crate::failure::Failure;

const LOCK_MS: u64 = 5_000;
/// How often the lock is taken anew while a batch is on its way.
const RENEWED: Duration = Duration::from_secs(1);
/// How long a lock is waited for: that of an import that was killed ends meanwhile.
const PATIENCE: Duration = Duration::from_millis(LOCK_MS + 1_000);
const ASKED: Duration = Duration::from_millis(100);

const CLAIM: &str = concat!(include_str!("lock.lua"), include_str!("claim.lua"));
const PUT_BACK: &str = concat!(include_str!("lock.lua"), include_str!("put_back.lua"));
const FORGET: &str = concat!(include_str!("lock.lua"), include_str!("forget.lua"));
const LOCK: &str = concat!(include_str!("lock.lua"), "return 1\n");
const UNLOCK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1";

/// What an import keeps in the Redis that it moves jobs out of: the elements that it has taken and whose jobs are not yet
/// known to be published, the queues that it has paused, and a lock. It is what a later run goes on from.
pub(super) struct Journal {
    /// A sorted set: an entry an element, its score the due time in ms.
    entries: String,
    /// A hash: what is known of each queue, by its name.
    queues: String,
    lock: String,
    token: String,
}

/// An element that is to be taken.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) element: Vec<u8>,
    /// As Redis wrote it; empty for an element of a list.
    pub(super) score: Vec<u8>,
    /// What the journal keeps of it.
    pub(super) entry: Vec<u8>,
    pub(super) due_ms: u64,
}

impl Journal {
    /// By the name that makes its key, given what follows that; keys of a cluster's slot have a tag in common.
    pub(super) fn new(key: impl Fn(&str) -> String) -> Journal {
        let token = format!("{:016x}", RandomState::new().build_hasher().finish());
        Journal {
            entries: key("delayline-import"),
            queues: key("delayline-import-queues"),
            lock: key("delayline-import-lock"),
            token,
        }
    }

    /// The key of the entries.
    pub(super) fn key(&self) -> &str {
        &self.entries
    }

    /// Takes the lock, so that one import runs at a time.
    pub(super) async fn lock(&self, source: &mut Connection) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            match self.renew(source).await {
                Err(Failure::Importing { .. }) if begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(ASKED).await;
                }
                locked => return locked,
            }
        }
    }

    pub(super) async fn unlock(&self, source: &mut Connection) -> Result<(), Failure> {
        source.ask(cmd("EVAL").arg(UNLOCK).arg(1).arg(&self.lock).arg(&self.token)).await
    }

    async fn renew(&self, source: &mut Connection) -> Result<(), Failure> {
        source.ask(cmd("EVAL").arg(LOCK).arg(1).arg(&self.lock).arg(&self.token).arg(LOCK_MS)).await
    }

    /// Does what may take longer than the lock lasts.
    pub(super) async fn keep<T>(
        &self,
        source: &Connection,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let mut source = source.clone();
        let renewing = async {
            loop {
                tokio::time::sleep(RENEWED).await;
                if let Err(failure) = self.renew(&mut source).await {
                    return failure;
                }
            }
        };
        tokio::select! {
            done = work => Ok(done),
            failure = renewing => Err(failure),
        }
    }

    /// Takes elements out of where they are; answers which were still there.
    pub(super) async fn claim(
        &self,
        source: &mut Connection,
        origin: &Origin,
        claims: impl Iterator<Item = &Claim>,
    ) -> Result<Vec<bool>, Failure> {
        let mut eval = self.script(CLAIM, origin);
        for Claim { element, score, entry, due_ms } in claims {
            eval.arg(element).arg(score).arg(entry).arg(due_ms);
        }
        source.ask(&eval).await
    }

    /// Puts elements back that were taken.
    pub(super) async fn put_back(
        &self,
        source: &mut Connection,
        origin: &Origin,
        claims: impl Iterator<Item = &Claim>,
    ) -> Result<(), Failure> {
        let mut eval = self.script(PUT_BACK, origin);
        for Claim { element, score, entry, .. } in claims {
            eval.arg(element).arg(score).arg(entry);
        }
        source.ask(&eval).await
    }

    fn script(&self, script: &str, origin: &Origin) -> Cmd {
        let mut eval = cmd("EVAL");
        eval.arg(script);
        origin.arguments(&mut eval, [&self.lock, &self.entries], &self.token, LOCK_MS);
        eval
    }

    /// Forgets entries, and removes the keys of their bodies.
    pub(super) async fn forget(
        &self,
        source: &mut Connection,
        entries: impl Iterator<Item = &[u8]>,
        bodies: &[&[u8]],
    ) -> Result<(), Failure> {
        let mut eval = cmd("EVAL");
        eval.arg(FORGET).arg(2 + bodies.len()).arg(&self.lock).arg(&self.entries).arg(bodies);
        eval.arg(&self.token).arg(LOCK_MS);
        entries.for_each(|entry| {
            eval.arg(entry);
        });
        source.ask(&eval).await
    }

    /// Calls a script that begins as `lock.lua` does, on this key and those of `others`.
    pub(super) fn locked(&self, script: &str, key: &[u8], others: &[Vec<u8>]) -> Cmd {
        let mut eval = cmd("EVAL");
        eval.arg(script).arg(2 + others.len()).arg(&self.lock).arg(key).arg(others);
        eval.arg(&self.token).arg(LOCK_MS);
        eval
    }

    /// How many entries there are.
    pub(super) async fn count(&self, source: &mut Connection) -> Result<u64, Failure> {
        source.ask(cmd("ZCARD").arg(&self.entries)).await
    }

    /// What is known of a queue, as it was last noted.
    pub(super) async fn noted(
        &self,
        source: &mut Connection,
        queue: &str,
    ) -> Result<Option<String>, Failure> {
        source.ask(cmd("HGET").arg(&self.queues).arg(queue)).await
    }

    /// All queues that something is known of.
    pub(super) async fn all_noted(&self, source: &mut Connection) -> Result<Vec<(String, String)>, Failure> {
        source.ask(cmd("HGETALL").arg(&self.queues)).await
    }

    pub(super) async fn note(
        &self,
        source: &mut Connection,
        queue: &str,
        known: &str,
    ) -> Result<(), Failure> {
        source.ask(cmd("HSET").arg(&self.queues).arg(queue).arg(known)).await
    }

    pub(super) async fn unnote(&self, source: &mut Connection, queue: &str) -> Result<(), Failure> {
        source.ask(cmd("HDEL").arg(&self.queues).arg(queue)).await
    }
}
