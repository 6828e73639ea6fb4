use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Peers;
use crate::service::client_address::ClientAddress;

/// How many takes of each client wait.
pub(super) struct Takes {
    waiting: Mutex<HashMap<ClientAddress, usize>>,
    most: usize,
}

/// The client has as many takes waiting as it may.
#[derive(Debug)]
pub(crate) struct TooManyTakes {
    /// How many it may have.
    pub(crate) most: usize,
}

/// A take waits until this is dropped.
pub(crate) struct Waiting {
    peers: Arc<Peers>,
    client: ClientAddress,
}

impl Takes {
    pub(super) fn new(most: usize) -> Takes {
        Takes { waiting: Mutex::default(), most }
    }
}

impl Peers {
    /// A take of this client is to wait.
    pub(crate) fn waits(self: &Arc<Peers>, client: ClientAddress) -> Result<Waiting, TooManyTakes> {
        let client = client.counted();
        let Takes { waiting, most } = &self.takes;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = waiting.entry(client).or_default();
        if *of_client >= *most {
            return Err(TooManyTakes { most: *most });
        }
        *of_client += 1;
        Ok(Waiting { peers: Arc::clone(self), client })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = self.peers.takes.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_client) = waiting.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                waiting.remove(&self.client);
            }
        }
    }
}
