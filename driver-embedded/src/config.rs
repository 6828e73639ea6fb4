use delayline_core::{QueueConfig, Reply, UnixMicros};

use crate::queue::Queue;
use crate::script::Script;

impl Script<'_> {
    /// See `configure.lua`.
    pub(crate) fn configure(&mut self, replaces: Option<u64>, config: &QueueConfig) -> Reply {
        let (time, cfgver) = (self.time, self.queue.meta.cfgver);
        if replaces.is_some_and(|replaces| replaces != cfgver) {
            return Reply::ConfigConflict { time, cfgver, found: self.queue.meta.config.clone() };
        }
        self.is_born();
        let meta = &mut self.queue.meta;
        let forwarded = meta.config.forward.is_some();
        meta.config = config.clone();
        // The text is what is kept: a ladder without rungs reads back as no backoff.
        meta.config.backoff =
            config.backoff.as_ref().map(|backoff| backoff.to_string().parse().unwrap_or(backoff.clone()));
        meta.cfgver += 1;
        let forwards = meta.config.forward.is_some() && !meta.paused;
        let at = if forwards { Some(self.now) } else { self.next_event(None) };
        self.lower_agenda(at);
        self.woken = forwarded && config.forward.is_none();
        self.announce();
        Reply::Configured { time, cfgver: cfgver + 1 }
    }

    /// See `pause.lua`.
    pub(crate) fn pause(&mut self, replaces: Option<u64>, pause: bool) -> Reply {
        let (time, cfgver, paused) = (self.time, self.queue.meta.cfgver, self.queue.meta.paused);
        if replaces.is_some_and(|replaces| replaces != cfgver) {
            return Reply::PauseConflict { time, cfgver, paused };
        }
        self.is_born();
        self.queue.meta.cfgver += 1;
        self.queue.meta.paused = pause;
        if paused && !pause {
            self.lower_agenda(Some(self.now));
            self.woken = true;
        }
        self.announce();
        Reply::Configured { time, cfgver: cfgver + 1 }
    }

    /// See `destroy.lua`.
    pub(crate) fn destroy(&mut self, born: UnixMicros) -> Reply {
        let time = self.time;
        if self.queue.meta.born.unwrap_or_default() != born {
            return Reply::Gone { time };
        }
        let known = [self.agenda.remove(self.name), self.names.remove(self.name), !self.queue.is_empty()];
        if known == [false; 3] {
            return Reply::Gone { time };
        }
        let Queue { due, leased, dead, .. } = std::mem::take(self.queue);
        let [waiting, leased, dead] = [due, leased, dead].map(|place| place.len() as u64);
        Reply::Destroyed { time, waiting, leased, dead }
    }
}
