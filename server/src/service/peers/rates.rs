use super::{Peer, Peers};
use crate::service::client_address::ClientAddress;
use crate::service::rate::{Buckets, Exceeded, RateLimit};

/// How many clients are remembered: some 5 MiB.
const CLIENTS_MAX: usize = 65_536;

/// How much each client asks and sends.
pub(super) struct Rates {
    requests: Option<Metered>,
    body_bytes: Option<Metered>,
}

struct Metered {
    limit: RateLimit,
    clients: Buckets<ClientAddress>,
}

/// A client asks more than it may.
#[derive(Debug)]
pub(crate) enum TooFast {
    Requests(RateLimit, Exceeded),
    BodyBytes(RateLimit, Exceeded),
}

impl Rates {
    pub(super) fn new(requests: Option<RateLimit>, body_bytes: Option<RateLimit>) -> Rates {
        Rates { requests: requests.map(Metered::new), body_bytes: body_bytes.map(Metered::new) }
    }
}

impl Metered {
    fn new(limit: RateLimit) -> Metered {
        Metered { limit, clients: Buckets::new(CLIENTS_MAX) }
    }

    fn take(&self, client: ClientAddress, amount: u64) -> Result<(), (RateLimit, Exceeded)> {
        let taken = self.clients.take(client.counted(), self.limit, amount);
        taken.map_err(|exceeded| (self.limit, exceeded))
    }
}

impl Peers {
    /// Whether anything is asked of clients' rates.
    pub(crate) fn has_rates(&self) -> bool {
        self.rates.requests.is_some() || self.rates.body_bytes.is_some()
    }

    /// A client makes a request whose body is said to have so many bytes, or of unknown length, which counts once it
    /// [is sent](Peer::sends).
    pub(crate) fn asks(&self, client: ClientAddress, announced: u64) -> Result<(), TooFast> {
        let Rates { requests, body_bytes } = &self.rates;
        if let Some(metered) = requests {
            metered.take(client, 1).map_err(|(limit, by)| TooFast::Requests(limit, by))?;
        }
        if let Some(metered) = body_bytes {
            metered.take(client, announced).map_err(|(limit, by)| TooFast::BodyBytes(limit, by))?;
        }
        Ok(())
    }
}

impl Peer {
    /// A client sends so many bytes of a body whose length it did not say.
    pub(crate) fn sends(&self, client: ClientAddress, bytes: u64) {
        if let Some(Metered { limit, clients }) = &self.peers.rates.body_bytes {
            clients.charge(client.counted(), *limit, bytes);
        }
    }
}
