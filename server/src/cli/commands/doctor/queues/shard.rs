use std::collections::BTreeSet;

use delayline_core::{Identity, Keyspace, Shard};
use delayline_tokio::QueueName;
use delayline_tokio::redis::cmd;

use super::super::wire::Wire;
use super::fault::Fault;
use super::judge::Judge;
use super::mend::Mend;
use super::{Pairs, aside, time, whole};

const PAGE: usize = 500;
/// No pump's lease is longer.
const LONGEST_LEASE_MS: u64 = 60_000;
const AGENDA: &str = "1";
const QUEUES: &str = "2";
const LEASE: &str = "3";

/// What all queues of a shard have in common.
pub(super) struct Ring<'a> {
    pub(super) keys: &'a Keyspace,
    pub(super) shard: Shard,
    /// At most so many queues.
    pub(super) limit: usize,
}

impl Ring<'_> {
    /// Looks at the keys of the shard; the queues that it names. Whether there are more is told beside.
    pub(super) async fn examine(
        &self,
        wire: &mut Wire,
        judge: &mut Judge,
    ) -> Result<(BTreeSet<QueueName>, bool), String> {
        let names = self.keys.shard_keys(self.shard);
        let place = format!("shard {}", self.shard);
        let time = wire.now().await?;
        let now = time.floor_ms().0;
        let mut sound = [true; 3];
        for ((key, ought), sound) in names.iter().zip(["zset", "hash", "string"]).zip(&mut sound) {
            let is: String = wire.ask(cmd("TYPE").arg(key)).await?;
            if is != "none" && is != ought {
                let aside = aside(self.keys.tag(self.shard), key, time);
                let problem = format!("a key is a {is}, not a {ought}");
                let change = format!("rename {key} to {aside}");
                let mend = Mend::set_aside(key, &is, aside);
                *sound = judge.take(wire, &place, Fault::new(problem, key.clone(), change, mend)).await;
            }
        }
        let [agenda, queues, lease] = sound;
        if agenda {
            self.agenda(wire, judge, &names, &place, now).await?;
        }
        if lease {
            self.lease(wire, judge, &names, &place, now).await?;
        }
        if queues { self.queues(wire, judge, &names, &place).await } else { Ok(Default::default()) }
    }

    async fn agenda(
        &self,
        wire: &mut Wire,
        judge: &mut Judge,
        names: &[String; 3],
        place: &str,
        now: u64,
    ) -> Result<(), String> {
        let (mut cursor, mut seen) = (0_u64, 0);
        loop {
            let mut scan = cmd("ZSCAN");
            scan.arg(&names[0]).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, entries): Pairs = wire.ask(&scan).await?;
            seen += entries.len();
            for (member, at) in entries {
                let queue = member.strip_prefix(b"q").and_then(|name| self.queue(name));
                if queue.is_some() && time(&at).is_some() {
                    continue;
                }
                let mend = Mend::of(names).only_if(&[b"ZSCORE", AGENDA.as_bytes(), &member], Some(&at));
                let shown = shown(&member);
                let (problem, change, mend) = match queue {
                    Some(queue) => (
                        "queues are on the agenda at no time",
                        format!("have {queue} tended now"),
                        mend.write(&[b"ZADD", AGENDA.as_bytes(), now.to_string().as_bytes(), &member]),
                    ),
                    None => (
                        "what is on the agenda is no queue of this shard",
                        format!("take {shown} off the agenda"),
                        mend.write(&[b"ZREM", AGENDA.as_bytes(), &member]),
                    ),
                };
                judge.take(wire, place, Fault::new(problem.to_owned(), shown, change, mend)).await;
            }
            if next == 0 || seen >= self.limit {
                return Ok(());
            }
            cursor = next;
        }
    }

    async fn queues(
        &self,
        wire: &mut Wire,
        judge: &mut Judge,
        names: &[String; 3],
        place: &str,
    ) -> Result<(BTreeSet<QueueName>, bool), String> {
        let (mut cursor, mut queues) = (0_u64, BTreeSet::new());
        loop {
            let mut scan = cmd("HSCAN");
            scan.arg(&names[1]).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, fields): Pairs = wire.ask(&scan).await?;
            for (name, _) in fields {
                if let Some(queue) = self.queue(&name) {
                    queues.insert(queue);
                    continue;
                }
                let mend = Mend::of(names)
                    .only_if(&[b"HEXISTS", QUEUES.as_bytes(), &name], Some(b"1"))
                    .write(&[b"HDEL", QUEUES.as_bytes(), &name]);
                let shown = shown(&name);
                let change = format!("take {shown} out of the index");
                let problem = "what the index names is no queue of this shard".to_owned();
                judge.take(wire, place, Fault::new(problem, shown, change, mend)).await;
            }
            if next == 0 || queues.len() >= self.limit {
                return Ok((queues, next != 0));
            }
            cursor = next;
        }
    }

    async fn lease(
        &self,
        wire: &mut Wire,
        judge: &mut Judge,
        names: &[String; 3],
        place: &str,
        now: u64,
    ) -> Result<(), String> {
        let lease: Option<Vec<u8>> = wire.ask(cmd("GET").arg(&names[2])).await?;
        let Some(lease) = lease else { return Ok(()) };
        let until = std::str::from_utf8(&lease).ok().and_then(|text| {
            let (engine, until) = text.split_once(' ')?;
            engine.parse::<Identity>().ok()?;
            whole(until)
        });
        let problem = match until {
            Some(until) if until <= now + LONGEST_LEASE_MS => return Ok(()),
            Some(_) => "who tends it has a lease that is longer than any",
            None => "the lease of who tends it cannot be read",
        };
        let mend = Mend::of(names)
            .only_if(&[b"GET", LEASE.as_bytes()], Some(&lease))
            .write(&[b"UNLINK", LEASE.as_bytes()]);
        let change = format!("remove {}: who tends the shard takes it again", names[2]);
        judge.take(wire, place, Fault::new(problem.to_owned(), shown(&lease), change, mend)).await;
        Ok(())
    }

    fn queue(&self, name: &[u8]) -> Option<QueueName> {
        let name: QueueName = std::str::from_utf8(name).ok()?.parse().ok()?;
        (self.keys.shards().of(&name) == self.shard).then_some(name)
    }
}

fn shown(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes).escape_debug().take(60).collect();
    format!("{text:?}")
}
