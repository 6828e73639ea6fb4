use std::collections::BTreeSet;

use delayline_core::{Command, Due, JobId, QueueName, Reply, Settlement, Shard, State, UnixMicros, UnixMs};

use crate::bug::Bug;
use crate::changes::Changes;
use crate::destination::Destinations;
use crate::notices::Notices;
use crate::queue::Queue;
use crate::reserve::Ask;
use crate::store::Pace;
use crate::zset::Zset;

/// One run of a script over one queue: the keys it declares, the clock it read, what it is about to change and announce.
pub(crate) struct Script<'a> {
    pub(crate) time: UnixMicros,
    pub(crate) now: UnixMs,
    pub(crate) shard: Shard,
    pub(crate) name: &'a QueueName,
    pub(crate) queue: &'a mut Queue,
    pub(crate) agenda: &'a mut Zset<QueueName>,
    pub(crate) names: &'a mut BTreeSet<QueueName>,
    pub(crate) destinations: &'a mut Destinations,
    pub(crate) notices: &'a mut Notices,
    pub(crate) pace: Pace,
    pub(crate) bug: Option<Bug>,
    pub(crate) changes: Changes,
    pub(crate) soon: Option<UnixMs>,
    pub(crate) head: Option<UnixMs>,
    pub(crate) woken: bool,
    /// The queue has just come to be.
    pub(crate) newborn: bool,
}

impl Script<'_> {
    /// A delay counts from the call and rounds up; no delay means now.
    pub(crate) fn after(&self, ms: u64) -> UnixMs {
        Due::After { ms }.counted_from(self.time)
    }

    /// The answer where newer scripts keep more of the queue than these know. Acks alone do not read `meta`: a state of
    /// theirs shows it.
    fn gated(&self, command: &Command) -> Option<Reply> {
        let gate = self.queue.meta.gate.clone();
        let Command::Settle { tidy, leases, .. } = command else {
            let gate = gate.filter(|_| command.has_gate() && !self.planted(Bug::GateIgnored))?;
            return Some(Reply::Gated { time: Some(self.time), gate });
        };
        let timed = *tidy || leases.iter().any(|(_, _, settlement)| *settlement != Settlement::Ack);
        let is_newer = |state: &State| state.flags >= State::GATED;
        let shows =
            |id: &JobId| !self.queue.is_broken(id) && self.queue.state_of(id).as_ref().is_some_and(is_newer);
        let is_gated = timed && gate.is_some() || leases.iter().any(|(id, _, _)| shows(id));
        (is_gated && !self.planted(Bug::GateIgnored))
            .then(|| Reply::Gated { time: timed.then_some(self.time), gate: gate.unwrap_or_default() })
    }

    pub(crate) fn planted(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(crate) fn run(mut self, command: &Command) -> Reply {
        if let Some(gated) = self.gated(command) {
            return gated;
        }
        match command {
            Command::Publish { session, ceiling, jobs, .. } => self.publish(session, *ceiling, jobs),
            Command::Reserve { session, count, lease_ms, max_bytes, wakeable, .. } => {
                let want = usize::from(*count);
                let (lease_ms, max_bytes, wakeable) = (*lease_ms, *max_bytes, *wakeable);
                self.reserve(session, &Ask { want, lease_ms, max_bytes, wakeable })
            }
            Command::Settle { tidy, leases, .. } => self.settle(*tidy, leases),
            Command::Extend { lease_ms, leases, .. } => self.extend(*lease_ms, leases),
            Command::Cancel { session, ids, .. } => self.cancel(session, ids),
            Command::Reschedule { session, jobs, .. } => self.reschedule(session, jobs),
            Command::Tend { limit, forward, .. } => self.tend(usize::from(*limit), forward.as_ref()),
            Command::Requeue { dead, .. } => self.requeue(dead),
            Command::Purge { dead, .. } => self.purge(dead),
            Command::Configure { cfgver, config, .. } => self.configure(*cfgver, config),
            Command::Pause { cfgver, paused, .. } => self.pause(*cfgver, *paused),
            Command::Destroy { born, .. } => self.destroy(*born),
            Command::Inspect { id, .. } => self.inspect(id),
            Command::List { place, limit, max_bytes, after, .. } => {
                self.list(*place, usize::from(*limit), *max_bytes, after.as_ref())
            }
            Command::Stats { hours, .. } => self.stats(*hours),
            Command::Open { .. } | Command::Server | Command::Peek { .. } | Command::Queues { .. } => {
                Reply::Broken("the command is about no queue".to_owned())
            }
        }
    }
}
