//! What must be true whenever somebody looks, and at the end.

use bytes::Bytes;
use delayline_core::{
    Command, Engine, Fence, Identity, Phase, QueueName, Reply, Session, State, UnixMicros, Wakeup,
};
use delayline_embedded::Notice;

use super::{EPOCH_MS, World};
use crate::sim::model::{Checked, Key, ensure, key_of};
use crate::sim::names;
use crate::{Contents, Dump};

/// Where jobs are that have not ended, and where queues wait for what happens next.
pub(super) const PLACES: [&str; 4] = [":due", ":leased", ":exp", ":agenda"];
/// What notices and round trips take, if a burst of jobs comes one by one.
const PUNCTUAL_MS: u64 = 400;
/// How long sessions are kept, and late ones are spared, at most, and leases that they remember last.
const SESSIONS_US: i64 = 660_000_000;
/// So many visitors come then, one after the other: more than are kept without being counted, where the count was written
/// over, then enough to end a sweep that was begun before, and for one from the beginning, a minute later.
const LATE_VISITORS: usize = 100;
const VISIT_US: i64 = 5_000_000;
/// So few sessions are not swept.
const KEPT_SESSIONS: usize = 64;
/// A time that never comes, as dumps show it.
const ENDLESS_MS: u64 = 9_999_999_999_999;
/// So many are swept at once at most.
const SWEPT: usize = 1_500;

impl World<'_> {
    /// What is accepted is there, and nothing else; counters add up; sizes equal a recount; the agenda is never late.
    pub(super) fn check(&mut self) -> Checked {
        let dump = self.store.dump();
        for queue in 0..self.queues.len() {
            self.check_counters(&dump, queue)?;
            self.check_jobs(&dump, queue)?;
            self.check_named(&dump, queue)?;
            if !self.witness.set_back && !self.spoiled {
                self.check_agenda(&dump, queue)?;
            }
        }
        Ok(())
    }

    /// Where nothing fails, and the first node has had a slot free all the time, no job waits for a poll.
    pub(super) fn check_punctual(&self, queue: &QueueName) -> Checked {
        let late_ms = self.ledger.late_ms;
        let free_us = self.now_us.saturating_sub(self.busy_us);
        let first = &self.nodes[0];
        let is_full = |engine: &Engine| engine.held() == usize::from(engine.config().slots);
        let is_away = !first.hears || first.engine.as_ref().is_none_or(is_full);
        let busy = is_away || free_us <= late_ms * 1000;
        let punctual = late_ms <= PUNCTUAL_MS || busy || self.ledger.was_paused(queue);
        ensure!(punctual || !self.punctual, "a free worker is told", "{queue}: a job waited {late_ms} ms");
        Ok(())
    }

    /// Whoever runs a job is told to stop before it runs elsewhere, unless it stands still.
    pub(super) fn check_told(&self, now: UnixMicros, command: &Command, reply: &Reply) -> Checked {
        let (Some(queue), Reply::Granted { jobs, .. }) = (command.queue(), reply) else { return Ok(()) };
        if !self.steady {
            return Ok(());
        }
        for grant in jobs {
            let key = key_of(queue, &grant.id)?;
            for (n, node) in
                self.nodes.iter().enumerate().filter(|(_, node)| node.still_until_us < self.now_us)
            {
                let stale = node.running.values().find(|(of, fence)| {
                    *of == key && *fence != grant.state.fence && self.witness.is_over(key, *fence, now)
                });
                ensure!(
                    stale.is_none(),
                    "a handler is told when its lease is lost",
                    "{} of {queue} is granted, and runs on node {n}, which was not told",
                    grant.id
                );
            }
        }
        Ok(())
    }

    /// No command sweeps more sessions than a script may read at once.
    pub(super) fn check_swept(&self, command: &Command, before: Option<usize>) -> Checked {
        let Some(after) = command.queue().and_then(|queue| self.store.sessions(queue)) else { return Ok(()) };
        let swept = before.unwrap_or(0).saturating_sub(after);
        let gone = matches!(command, Command::Destroy { .. });
        ensure!(swept <= SWEPT || gone, "what a script reads is bounded", "{swept} sessions at once");
        Ok(())
    }

    /// One nonsensical answer costs no lease.
    pub(super) fn check_abandoned(&self, key: Key, fence: Fence) -> Checked {
        let lives = !self.witness.is_over(key, fence, self.redis_now());
        let costs = self.only_garbled && lives && self.ledger.is_held(key, fence);
        ensure!(
            !costs,
            "nonsense costs no lease",
            "{} of {} is given up by its holder, whose lease lives",
            names::job(key.1),
            names::queue(key.0)
        );
        Ok(())
    }

    fn check_counters(&mut self, dump: &Dump, queue: usize) -> Checked {
        if self.ledger.is_uncounted(queue) {
            return Ok(());
        }
        let (now, name, keys) = (self.redis_now(), names::queue(queue), self.keys.clone());
        let stats = Command::Stats { queue: name.clone(), hours: 0 };
        let Reply::Counted { stats, .. } = self.store.execute(now, &stats) else { return Ok(()) };
        let c = stats.counters;
        let ended = c.acked + c.cancelled + c.expired + c.purged + c.forwarded + c.lost;
        let held = stats.ready + stats.delayed + stats.leased + stats.dead;
        ensure!(c.published == ended + held, "counters add up", "{name}: {c:?} against {held} jobs");
        ensure!(c.lost == 0 && c.unreadable == 0, "nothing is lost", "{name}: {c:?}");
        let counted = crate::sim::model::Counts {
            published: c.published,
            granted: c.granted,
            acked: c.acked,
            nacked: c.nacked,
            snoozed: c.snoozed,
            released: c.released,
            cancelled: c.cancelled,
            requeued: c.requeued,
            forwarded: c.forwarded,
        };
        let seen = self.ledger.counts(queue);
        ensure!(counted == seen, "counters say what happened", "{name}: {counted:?}, but {seen:?}");
        let dead = c.died.checked_sub(c.requeued + c.purged);
        ensure!(dead == Some(stats.dead), "counters add up", "{name}: {c:?} against {} dead", stats.dead);
        let keys = keys.queue_keys(&name);
        let recount = |key: &str| members(dump, key).count() as u64;
        let sizes = [stats.ready + stats.delayed, stats.leased, stats.dead];
        let recounted = [&keys[4], &keys[5], &keys[7]].map(|key| recount(key));
        ensure!(sizes == recounted, "sizes equal a recount", "{name}: {sizes:?}, recounted {recounted:?}");
        Ok(())
    }

    fn check_jobs(&self, dump: &Dump, queue: usize) -> Checked {
        let name = names::queue(queue);
        let keys = self.keys.queue_keys(&name);
        let pool = hash(dump, &keys[3]);
        for job in self.ledger.certain(queue) {
            let id = names::job(job);
            let there = pool.is_some_and(|pool| pool.contains_key(id.as_str().as_bytes()));
            ensure!(there, "accepted means delivered", "{id} of {name} vanished");
        }
        for id in pool.into_iter().flat_map(|pool| pool.keys()) {
            let id = String::from_utf8_lossy(id);
            let known = id.parse().ok().and_then(|id| names::number(&id));
            let known = known
                .is_some_and(|job| self.ledger.knows((queue, job)) || self.ledger.is_spoiled((queue, job)));
            ensure!(known, "sizes are exact", "{id} of {name} has ended, but is there");
        }
        let states = hash(dump, &keys[6]);
        let spoiled = |id: &Bytes| {
            let job = String::from_utf8_lossy(id).parse().ok().and_then(|id| names::number(&id));
            job.is_some_and(|job| self.ledger.is_spoiled((queue, job)))
        };
        for (id, _) in members(dump, &keys[7]).filter(|(id, _)| !spoiled(id)) {
            let state = states.and_then(|states| states.get(id)).and_then(|text| State::parse(text));
            let explained = state
                .as_ref()
                .is_some_and(|state| state.phase == Phase::Dead && !state.reason.as_str().is_empty());
            ensure!(explained, "every dead job has its reason", "{id:?} of {name}: {state:?}");
        }
        Ok(())
    }

    /// What was tended, or published to a minute after names were lost, is in the index of its shard.
    fn check_named(&self, dump: &Dump, queue: usize) -> Checked {
        let name = names::queue(queue);
        let keys = self.keys.queue_keys(&name);
        let there = hash(dump, &keys[1]).is_some_and(|index| index.contains_key(name.as_str().as_bytes()));
        ensure!(there || !self.ledger.is_named(queue), "a queue is in its index", "{name} is not");
        Ok(())
    }

    /// Who tends is told of a queue that came to be.
    pub(super) fn check_announced(&self, births: u64, notices: &[Notice]) -> Checked {
        let heads = |notice: &Notice| matches!(notice.wakeup, Wakeup::Head(..));
        let told = notices.iter().any(heads) || !self.nodes.iter().any(|node| node.hears);
        ensure!(told || self.ledger.births == births, "a queue that comes to be is announced", "it was not");
        Ok(())
    }

    fn check_agenda(&self, dump: &Dump, queue: usize) -> Checked {
        let (now, name) = (self.redis_now().floor_ms().0, names::queue(queue));
        let keys = self.keys.queue_keys(&name);
        let first =
            |key: &str, from: u64| members(dump, key).map(|(_, score)| score).find(|score| *score >= from);
        let next = [first(&keys[4], now + 1), first(&keys[5], 0), first(&keys[8], 0)];
        let member = format!("q{name}");
        let at = members(dump, &keys[0]).find(|(name, _)| *name == member.as_bytes()).map(|(_, at)| at);
        if let Some(needed) = next.into_iter().flatten().min() {
            let late = at.is_none_or(|at| at > needed.max(now));
            ensure!(
                !late,
                "the agenda is never late",
                "{name}: it says {at:?}, but something happens at {needed}"
            );
        }
        Ok(())
    }

    /// The places of jobs that are not empty, dead letters aside, and the agenda.
    pub(super) fn places_in_use(&mut self) -> Vec<String> {
        let dump = self.store.dump();
        let in_use = |key: &&String| PLACES.iter().any(|place| key.ends_with(place));
        dump.keys().filter(in_use).cloned().collect()
    }

    /// The living process that holds the lease of a shard.
    pub(super) fn tending(&mut self) -> Option<usize> {
        let dump = self.store.dump();
        let leases = dump.iter().filter(|(key, _)| key.ends_with(":lease"));
        let holders = leases.filter_map(|(_, text)| match text {
            Contents::Text(text) => std::str::from_utf8(text).ok()?.split(' ').next()?.parse().ok(),
            _ => None,
        });
        let live = |holder| Some(*self.live.get(&holder)?);
        holders.filter_map(live).find(|node| self.nodes[*node].engine.is_some())
    }

    /// Whether something on an agenda is overdue.
    pub(super) fn is_overdue(&mut self) -> bool {
        let (now, dump) = (self.redis_now().floor_ms().0, self.store.dump());
        let agendas = dump.keys().filter(|key| key.ends_with(":agenda"));
        agendas.filter_map(|key| members(&dump, key).next()).any(|(_, at)| at < now)
    }

    /// Whoever tends shards fixes their number again where it was lost.
    pub(super) fn check_config(&mut self) -> Checked {
        let fixed = self.store.dump().contains_key(self.keys.config());
        ensure!(
            fixed || !self.unopened || self.is_cron_alone(),
            "the shards agree",
            "their number was not fixed again"
        );
        Ok(())
    }

    /// When the last thing happens that these places name: where Redis's clock was set back, that is far ahead. A lease
    /// without an end names nothing.
    pub(super) fn last_in(&mut self, places: &[&str]) -> u64 {
        let dump = self.store.dump();
        let named = dump.keys().filter(|key| places.iter().any(|place| key.ends_with(place)));
        let scores = named.flat_map(|key| members(&dump, key).map(|(_, score)| score));
        let last = scores.filter(|score| *score < ENDLESS_MS).max().unwrap_or(0);
        (last.saturating_sub(EPOCH_MS) * 1000).saturating_add_signed(-self.redis.ahead_us)
    }

    pub(super) fn check_end(&mut self) -> Checked {
        for (n, node) in self.nodes.iter().enumerate() {
            ensure!(node.asked.is_empty(), "every caller is answered", "node {n}: {:?}", node.asked);
        }
        let dump = self.store.dump();
        self.check_forwarded(&dump)?;
        self.check_left(&dump)?;
        self.check_sessions()
    }

    /// Who comes when sessions were kept long enough sweeps them: no more are left than those of a while, and a handful.
    fn check_sessions(&mut self) -> Checked {
        let visited: Vec<QueueName> =
            std::mem::take(&mut self.visited).into_iter().map(names::queue).collect();
        for queue in visited {
            self.redis.ahead_us += SESSIONS_US;
            for _ in 0..LATE_VISITORS {
                self.redis.ahead_us += VISIT_US;
                let session = Session { engine: Identity(self.handlers.any()), lane: 0, sequence: 1 };
                let (count, lease_ms, max_bytes, wakeable) = (0, 1_000, 1_000, false);
                let of = queue.clone();
                let visit = Command::Reserve { queue: of, session, count, lease_ms, max_bytes, wakeable };
                let (now, before) = (self.redis_now(), self.store.sessions(&queue));
                let reply = self.store.execute(now, &visit);
                let granted = matches!(reply, Reply::Granted { .. });
                ensure!(granted, "every command is answered", "{visit:?}: {reply:?}");
                self.check_swept(&visit, before)?;
            }
            let sessions = self.store.sessions(&queue).unwrap_or_else(|| self.dumped_sessions(&queue));
            ensure!(
                sessions <= KEPT_SESSIONS + LATE_VISITORS,
                "sessions stay bounded",
                "{queue} keeps {sessions} after all but {LATE_VISITORS} ended"
            );
        }
        Ok(())
    }

    fn dumped_sessions(&mut self, queue: &QueueName) -> usize {
        let dump = self.store.dump();
        let is_session = |field: &&Bytes| field.len() == 14 && field[0] == b's';
        let meta = hash(&dump, &self.keys.queue_keys(queue)[2]);
        meta.map_or(0, |meta| meta.keys().filter(is_session).count())
    }

    fn check_left(&self, dump: &Dump) -> Checked {
        for (key, contents) in dump {
            let kept = ["config", ":meta", "queues", "lease"].iter().any(|name| key.ends_with(name));
            let forwarded = matches!(contents, Contents::List(_) | Contents::Stream(_));
            let waits_for_the_dead =
                key.ends_with(":waiting") && (self.witness.rolled_back || !self.has_the_living(contents));
            let broken = (0..self.queues.len()).filter(|queue| self.ledger.is_broken(*queue));
            let mut broken = broken.map(|queue| self.keys.queue_keys(&names::queue(queue)));
            let ghost = broken.any(|keys| keys[3..].contains(key));
            let allowed = kept || forwarded || waits_for_the_dead || ghost;
            ensure!(allowed, "nothing is left behind", "{key}: {contents:?}");
        }
        Ok(())
    }

    /// What a queue forwards arrives once for each time it was accepted, and what left it so is there.
    fn check_forwarded(&self, dump: &Dump) -> Checked {
        for (queue, plan) in self.queues.iter().enumerate() {
            let Some((_, key)) = plan.forward.as_ref().and_then(|to| to.split_once(':')) else { continue };
            let arrived: Vec<u32> = match dump.get(key) {
                Some(Contents::List(bodies)) => bodies.iter().filter_map(job_in).collect(),
                Some(Contents::Stream(entries)) => {
                    entries.iter().filter_map(|entry| job_in(entry.get(1)?)).collect()
                }
                _ => Vec::new(),
            };
            let name = names::queue(queue);
            let counted = self.ledger.counts(queue).forwarded;
            ensure!(
                counted == arrived.len() as u64,
                "forwarded once",
                "{name}: {counted}, arrived {arrived:?}"
            );
            for job in self.ledger.forwarded(queue) {
                ensure!(
                    arrived.contains(&job),
                    "accepted means delivered",
                    "j{job} of {name} did not arrive"
                );
            }
            for job in &arrived {
                let times = arrived.iter().filter(|other| *other == job).count();
                let most = self.ledger.accepted().filter(|instance| instance.key == (queue, *job)).count();
                ensure!(
                    times <= most,
                    "forwarded once",
                    "j{job} of {name} arrived {times} times, not {most}"
                );
            }
        }
        Ok(())
    }

    fn has_the_living(&self, waiting: &Contents) -> bool {
        let Contents::Sorted(entries) = waiting else { return true };
        let living: Vec<String> =
            self.nodes.iter().filter_map(|node| Some(node.engine.as_ref()?.identity().to_string())).collect();
        entries.iter().any(|(member, _)| living.iter().any(|text| text.as_bytes() == member.as_ref()))
    }
}

fn job_in(body: &Bytes) -> Option<u32> {
    names::number(&String::from_utf8_lossy(body).split(' ').next()?.parse().ok()?)
}

fn members<'a>(dump: &'a Dump, key: &str) -> impl Iterator<Item = (&'a Bytes, u64)> + use<'a> {
    let members = match dump.get(key) {
        Some(Contents::Sorted(members)) => members.as_slice(),
        _ => &[],
    };
    members.iter().map(|(member, score)| (member, *score))
}

fn hash<'a>(dump: &'a Dump, key: &str) -> Option<&'a std::collections::BTreeMap<Bytes, Bytes>> {
    match dump.get(key) {
        Some(Contents::Hash(fields)) => Some(fields),
        _ => None,
    }
}
