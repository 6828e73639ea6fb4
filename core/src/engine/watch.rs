use serde::{Deserialize, Serialize};

use super::base::Base;
use super::flight::{Flights, Landed, Lane};
use crate::wire::LAYOUT;
use crate::{Command, Event, Millis, Pumping, Reply, Shards, UnixMicros};

/// Looks at what deployment this is, along with round trips that are made anyway. Where Redis was emptied, or evicted the
/// config, whoever opens the deployment next fixes a number of shards, and it may be another.
#[derive(Serialize, Deserialize)]
pub(super) struct Watch {
    /// When it looked last; `None` if the next round trip is to tell.
    looked: Option<Millis>,
    flying: bool,
    born: Option<UnixMicros>,
}

/// What was seen.
pub(super) enum Seen {
    Same,
    /// The same deployment, begun anew: nobody in it waits for jobs any more.
    Anew,
    /// Another: its layout and number of shards.
    Other(u32, Shards),
}

impl Watch {
    pub(super) fn new(base: &Base) -> Watch {
        let looked = (base.config.pump != Pumping::Always).then_some(base.now);
        Watch { looked, flying: false, born: None }
    }

    /// Redis may have been another meanwhile: the next round trip tells.
    pub(super) fn look_again(&mut self) {
        self.looked = None;
    }

    /// Writes the config if it is gone. A run that cron starts is too short for it: its driver opens the deployment.
    pub(super) fn form(&mut self, base: &Base, flights: &mut Flights) {
        let pause_ms = base.config.pump_lease_ms / 2;
        let is_early = self.looked.is_some_and(|looked| base.now.since(looked) < pause_ms);
        if self.flying || is_early || base.draining || base.config.pump == Pumping::WhenDue {
            return;
        }
        let open = Command::Open { shards: base.config.shards };
        self.flying = flights.submit_along(base, Lane::Watch, open);
    }

    pub(super) fn handle_landed(&mut self, base: &mut Base, landed: Landed) -> Seen {
        self.flying = false;
        self.looked = None;
        match landed.reply {
            Some(Reply::Opened { .. }) | None => self.learn(base, &landed),
            Some(_) => {
                self.looked = Some(base.now);
                base.events.push_back(Event::Fault(landed.batch.fault(landed.reply)));
                Seen::Same
            }
        }
    }

    /// What an answer says of the deployment, whoever asked.
    pub(super) fn learn(&mut self, base: &Base, landed: &Landed) -> Seen {
        let Some(Reply::Opened { layout, shards, born, .. }) = landed.reply else { return Seen::Same };
        if (layout, shards) != (LAYOUT, base.config.shards) {
            return Seen::Other(layout, shards);
        }
        self.looked = landed.batch.first_sent;
        let known = self.born.replace(born);
        if known.is_some_and(|known| known != born) { Seen::Anew } else { Seen::Same }
    }
}
