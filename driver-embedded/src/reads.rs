use delayline_core::{JobId, Phase, Place, Reply, Stats, Stored, UnixMs};

use crate::script::Script;
use crate::zset::Zset;

const HOUR_MS: u64 = 3_600_000;

impl Script<'_> {
    /// See `inspect.lua`.
    pub(crate) fn inspect(&self, id: &JobId) -> Reply {
        let (time, queue) = (self.time, &self.queue);
        let state = queue.state.get(id).cloned();
        let waits = queue.due.score(id);
        let (place, at) = match state.as_ref().map(|state| state.phase) {
            Some(Phase::Leased) => (Place::Leased, queue.leased.score(id)),
            Some(Phase::Dead) => (Place::Dead, queue.dead.score(id)),
            _ if waits.is_none() && queue.is_broken(id) => match queue.leased.score(id) {
                Some(end) => (Place::Leased, Some(end)),
                None => (Place::Dead, queue.dead.score(id)),
            },
            _ if waits.is_some_and(|due| due > self.now) => (Place::Delayed, waits),
            _ => (Place::Ready, waits),
        };
        let Some(at) = at else {
            return Reply::Gone { time };
        };
        let record = queue.pool.get(id).cloned().unwrap_or_default();
        let expires = queue.exp.score(id);
        Reply::Found { time, job: Stored { id: id.clone(), place, at, state, expires, record } }
    }

    /// See `list.lua`.
    pub(crate) fn list(
        &self,
        place: Place,
        limit: usize,
        max_bytes: u64,
        after: Option<&(UnixMs, JobId)>,
    ) -> Reply {
        let mut entries = self.entries(place, after);
        let mut page: Vec<_> = entries.by_ref().take(limit).collect();
        let mut more = entries.next().is_some();
        let fit = self.how_many_fit(page.iter().map(|(id, _)| *id), max_bytes);
        if fit < page.len() {
            more = true;
            page.truncate(fit);
        }
        let jobs = page.into_iter().map(|(id, at)| Stored {
            id: id.clone(),
            place,
            at,
            state: self.queue.state.get(id).cloned(),
            expires: None,
            record: self.queue.pool.get(id).cloned().unwrap_or_default(),
        });
        Reply::Listed { time: self.time, jobs: jobs.collect(), more }
    }

    /// What is in one place, after the last one seen.
    fn entries(
        &self,
        place: Place,
        after: Option<&(UnixMs, JobId)>,
    ) -> Box<dyn Iterator<Item = (&JobId, UnixMs)> + '_> {
        let queue = &*self.queue;
        let zset: &Zset<JobId> = match place {
            Place::Ready | Place::Delayed => &queue.due,
            Place::Leased => &queue.leased,
            Place::Dead => &queue.dead,
        };
        let now = self.now;
        match (place, after) {
            (Place::Delayed, after) if after.is_none_or(|(at, _)| *at <= now) => {
                Box::new(zset.since(now + 1))
            }
            (Place::Ready, None) => Box::new(zset.up_to(now)),
            (_, None) => Box::new(zset.iter()),
            (Place::Ready, Some((at, id))) => {
                Box::new(zset.after(*at, id.clone()).take_while(move |(_, at)| *at <= now))
            }
            (_, Some((at, id))) => Box::new(zset.after(*at, id.clone())),
        }
    }

    /// See `stats.lua`.
    pub(crate) fn stats(&self, hours: u8) -> Reply {
        let (queue, meta, now) = (&*self.queue, &self.queue.meta, self.now);
        let ready = queue.due.up_to(now).count();
        let hours = (0..u64::from(hours)).map(|hour| {
            let (from, to) = (now + hour * HOUR_MS, now + (hour + 1) * HOUR_MS);
            queue.due.since(from + 1).take_while(|(_, at)| *at <= to).count() as u64
        });
        let stats = Stats {
            born: meta.born,
            cfgver: meta.cfgver,
            paused: meta.paused,
            config: meta.config.clone(),
            forward_error: meta.forward_error.clone().filter(|error| !error.is_empty()),
            mean_bytes: meta.mean(),
            counters: meta.counters,
            ready: ready as u64,
            delayed: (queue.due.len() - ready) as u64,
            leased: queue.leased.len() as u64,
            dead: queue.dead.len() as u64,
            oldest_due: queue.due.first_score(),
            hours: hours.collect(),
        };
        Reply::Counted { time: self.time, stats }
    }
}
