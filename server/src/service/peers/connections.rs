use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Peer;
use crate::service::client_address::ClientAddress;

/// Who is connected, and how often.
#[derive(Default)]
pub(super) struct Connections {
    peers: BTreeMap<u64, Arc<Peer>>,
    clients: HashMap<ClientAddress, usize>,
}

impl Connections {
    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    /// How many a client has.
    pub(super) fn of_client(&self, client: ClientAddress) -> usize {
        self.clients.get(&client).copied().unwrap_or(0)
    }

    pub(super) fn insert(&mut self, peer: &Arc<Peer>) {
        if let Some(client) = peer.counted() {
            *self.clients.entry(client).or_default() += 1;
        }
        self.peers.insert(peer.number, Arc::clone(peer));
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Arc<Peer>> {
        let peer = self.peers.remove(&number)?;
        if let Some(client) = peer.counted()
            && let Some(count) = self.clients.get_mut(&client)
        {
            *count -= 1;
            if *count == 0 {
                self.clients.remove(&client);
            }
        }
        Some(peer)
    }

    /// Closes up to `most` connections of one client, the longest silent first, of those that the service does nothing for:
    /// of whoever has most connections, but at least `own`. Answers whether there was any.
    pub(super) fn close_some(&mut self, own: usize, most: usize) -> bool {
        let waited_for = self.peers.values().filter(|peer| !peer.is_served());
        let mut clients: HashMap<Option<ClientAddress>, Vec<(u64, u64)>> = HashMap::new();
        for peer in waited_for {
            clients.entry(peer.counted()).or_default().push((peer.active_ms.load(Relaxed), peer.number));
        }
        let ranked = clients.into_iter().map(|(client, silent)| {
            let count = client.map_or(0, |client| self.of_client(client));
            let longest = silent.iter().min().copied();
            (count, Reverse(longest), silent)
        });
        let Some((_, _, mut silent)) = ranked.filter(|(count, ..)| *count >= own).max() else { return false };
        silent.sort_unstable();
        for (_, number) in silent.into_iter().take(most) {
            self.close(number);
        }
        true
    }

    /// Closes the one that has been silent longest, of those that the service does nothing for and that are `such`.
    pub(super) fn close_most_silent(&mut self, such: impl Fn(&Peer) -> bool) {
        let waited_for = self.peers.values().filter(|peer| !peer.is_served() && such(peer));
        let silent = waited_for.min_by_key(|peer| peer.active_ms.load(Relaxed)).map(|peer| peer.number);
        if let Some(number) = silent {
            self.close(number);
        }
    }

    pub(super) fn close_all(&mut self) {
        for peer in std::mem::take(self).peers.into_values() {
            peer.closing.notify_one();
        }
    }

    fn close(&mut self, number: u64) {
        if let Some(peer) = self.remove(number) {
            peer.closing.notify_one();
        }
    }
}
