use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::base::Base;
use super::flight::{Flights, Landed};
use crate::{QueueName, Token};

/// A machine that only calls set going.
pub(super) trait Machine {
    fn form(&mut self, base: &mut Base, flights: &mut Flights);
    fn handle_landed(&mut self, base: &mut Base, queue: &QueueName, landed: Landed);
    /// Answers the caller, if the machine knows one of this token.
    fn handle_deadline(&mut self, base: &mut Base, flights: &mut Flights, token: Token) -> bool;
    /// Redis refused for want of memory.
    fn handle_full(&mut self, _: &mut Base, _: &mut Flights) {}
    /// Who waits for an answer.
    fn callers(&self) -> Vec<Token>;
    /// Nobody waits for the answer any more; `false` if nobody did.
    fn forget(&mut self, base: &mut Base, token: Token) -> bool;
}

/// A machine that the first call makes. Its code is reached through what that call left, so a program that never makes
/// one does not link it.
pub(super) struct OnDemand<M>(Option<Made<M>>);

struct Made<M> {
    machine: Box<M>,
    as_machine: fn(&mut M) -> &mut dyn Machine,
}

impl<M> OnDemand<M> {
    pub(super) fn get(&self) -> Option<&M> {
        self.0.as_ref().map(|made| &*made.machine)
    }

    pub(super) fn get_or_make(&mut self) -> &mut M
    where
        M: Machine + Default + 'static,
    {
        &mut self.0.get_or_insert_with(|| Made::new(M::default())).machine
    }

    pub(super) fn machine(&mut self) -> Option<&mut dyn Machine> {
        self.0.as_mut().map(|made| (made.as_machine)(&mut made.machine))
    }
}

impl<M: Machine + 'static> Made<M> {
    fn new(machine: M) -> Made<M> {
        Made { machine: Box::new(machine), as_machine: |machine| machine }
    }
}

impl<M> Default for OnDemand<M> {
    fn default() -> OnDemand<M> {
        OnDemand(None)
    }
}

impl<M: Serialize + Default> Serialize for OnDemand<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.get() {
            Some(machine) => machine.serialize(serializer),
            None => M::default().serialize(serializer),
        }
    }
}

impl<'de, M: Machine + Deserialize<'de> + 'static> Deserialize<'de> for OnDemand<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OnDemand<M>, D::Error> {
        Ok(OnDemand(Some(Made::new(M::deserialize(deserializer)?))))
    }
}
