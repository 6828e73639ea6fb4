use std::time::Duration;

use crate::Random;

/// What a shim does from now on.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// New connections are closed as soon as they are made.
    pub refuse: bool,
    /// Messages to subscribers do not arrive.
    pub swallow_messages: bool,
    /// What befalls calls of scripts: the first that fits.
    pub faults: Vec<(On, Fault)>,
    /// How often a fault befalls in all, if there is an end to it.
    pub most: Option<u64>,
}

/// Which calls of scripts a fault befalls. What a client sends to set up a connection is never meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The n-th since the plan was set, counted from 1, and no other.
    Nth(u64),
    /// Each n-th since the plan was set.
    Every(u64),
    /// So many of a hundred, drawn from the shim's seed.
    Percent(u64),
    /// The n-th of those that arrive together, counted from 1: of a pipeline.
    Place(u64),
}

/// What befalls a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server never gets it, nor anything after it on this connection.
    LoseRequest,
    /// It is carried out; its reply never arrives, nor any after it on this connection.
    LoseReply,
    /// The connection ends, and the server never gets it.
    CutBefore,
    /// It is carried out, and the connection ends before its reply.
    CutAfter,
    /// It is carried out, and the connection ends within its reply.
    CutWithin,
    /// It is carried out, and half of its reply arrives, and nothing after that.
    Half,
    /// It is carried out; its reply is late, and those behind it.
    Delay(Duration),
    /// The server never gets it; the answer is this error, written without its sign.
    Refuse(&'static str),
    /// It is carried out; the answer is replaced by these bytes.
    Answer(&'static [u8]),
}

impl Plan {
    /// One fault, and nothing else.
    pub fn one(on: On, fault: Fault) -> Plan {
        Plan { faults: vec![(on, fault)], ..Plan::default() }
    }

    /// The same, so many times in all.
    #[must_use]
    pub fn times(self, most: u64) -> Plan {
        Plan { most: Some(most), ..self }
    }

    /// What befalls the `count`-th command since the plan was set, the `place`-th of those that came together.
    pub(super) fn strike(&mut self, count: u64, place: u64, random: &mut Random) -> Option<Fault> {
        if self.most == Some(0) {
            return None;
        }
        let mut fits = |on: On| match on {
            On::Nth(nth) => count == nth,
            On::Every(nth) => count.is_multiple_of(nth),
            On::Percent(percent) => random.percent(percent),
            On::Place(nth) => place == nth,
        };
        let fault = self.faults.iter().find(|(on, _)| fits(*on)).map(|(_, fault)| *fault)?;
        self.most = self.most.map(|most| most - 1);
        Some(fault)
    }
}
