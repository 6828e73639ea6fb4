//! What a flight recorder needs of an engine beside its inputs.

use alloc::vec::Vec;

use super::{Base, Changer, Consumer, Engine, Flights, OnDemand, Publisher, Pump, Requests, Settler, Watch};
use crate::{
    Backlogged, Config, Entry, Event, Held, JobId, Millis, NewJob, QueueName, RecordError, Ticket, Token,
    Transmit,
};

impl Engine {
    /// [`publish`](Engine::publish), where `encode` makes the record.
    pub(crate) fn publish_as(
        &mut self,
        now: Millis,
        token: Token,
        job: NewJob,
        encode: impl FnOnce(NewJob, &Config) -> Result<Entry, RecordError>,
    ) -> Result<(), Backlogged<NewJob>> {
        self.enter(now);
        if self.base.draining {
            self.base.answer(token, Err(self.base.closed()));
            return Ok(());
        }
        self.publisher.get_or_make().publish(&mut self.base, token, job, encode)
    }

    /// The latest time it was told.
    pub(crate) fn now(&self) -> Millis {
        self.base.now
    }

    /// The events that were not polled yet.
    pub(crate) fn events(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.base.events.iter()
    }

    /// The round trip, while it is in the air.
    pub(crate) fn flight(&self, ticket: Ticket) -> Option<Transmit<'_>> {
        self.flights.transmitted(ticket)
    }

    /// The managed jobs in hand.
    pub(crate) fn in_hand(&mut self) -> impl Iterator<Item = (Held, &QueueName, &JobId)> {
        self.consumer.in_hand()
    }

    /// Its whole state, without the records of jobs, appended to `bytes`. Events that were not polled are left out.
    pub(crate) fn save(&self, bytes: Vec<u8>) -> Result<Vec<u8>, postcard::Error> {
        let Engine { base, flights, publisher, settler, changer, consumer, pump, requests, watch, drained } =
            self;
        postcard::to_extend(
            &(base, flights, publisher, settler, changer, consumer, pump, requests, watch, drained),
            bytes,
        )
    }

    /// The engine whose state this is.
    pub(crate) fn restore(bytes: &[u8]) -> Result<Engine, postcard::Error> {
        type State = (
            Base,
            Flights,
            OnDemand<Publisher>,
            Settler,
            OnDemand<Changer>,
            Consumer,
            Pump,
            Requests,
            Watch,
            bool,
        );
        let state: State = postcard::from_bytes(bytes)?;
        let (base, flights, publisher, settler, changer, consumer, pump, requests, watch, drained) = state;
        Ok(Engine { base, flights, publisher, settler, changer, consumer, pump, requests, watch, drained })
    }
}
