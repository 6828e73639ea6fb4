use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::Peer;

/// How many takes of each client wait.
pub(super) struct Takes {
    waiting: Mutex<HashMap<IpAddr, usize>>,
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
    peer: Arc<Peer>,
    client: IpAddr,
}

impl Takes {
    pub(super) fn new(most: usize) -> Takes {
        Takes { waiting: Mutex::default(), most }
    }
}

impl Peer {
    /// A take is to wait.
    pub(crate) fn waits(self: &Arc<Peer>) -> Result<Option<Waiting>, TooManyTakes> {
        let Some(client) = self.client else { return Ok(None) };
        let Takes { waiting, most } = &self.peers.takes;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = waiting.entry(client).or_default();
        if *of_client >= *most {
            return Err(TooManyTakes { most: *most });
        }
        *of_client += 1;
        Ok(Some(Waiting { peer: Arc::clone(self), client }))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = self.peer.peers.takes.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_client) = waiting.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                waiting.remove(&self.client);
            }
        }
    }
}
