use core::fmt;

use serde::{Deserialize, Serialize};

use crate::QueueName;

/// One of the parts a deployment's queues are spread over; all keys of a shard share a cluster slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shard(pub u16);

/// How many shards a deployment has: fixed when its first engine opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16")]
pub struct Shards(u16);

impl Shards {
    /// The most shards a deployment can have.
    pub const MAX: u16 = 256;

    /// `count` shards, if that is 1 to [`Shards::MAX`].
    pub fn new(count: u16) -> Option<Shards> {
        (1..=Shards::MAX).contains(&count).then_some(Shards(count))
    }

    /// How many there are.
    pub fn count(self) -> u16 {
        self.0
    }

    /// Every shard in order.
    pub fn iter(self) -> impl Iterator<Item = Shard> {
        (0..self.0).map(Shard)
    }

    /// Where a queue lives: FNV-1a of its name modulo the number of shards.
    pub fn of(self, queue: &QueueName) -> Shard {
        let hash = fnv_1a(queue.as_str().as_bytes()) % u32::from(self.0);
        Shard(u16::try_from(hash).unwrap_or(0))
    }
}

impl TryFrom<u16> for Shards {
    type Error = &'static str;

    fn try_from(count: u16) -> Result<Shards, &'static str> {
        Shards::new(count).ok_or("a number of shards is 1 to 256")
    }
}

impl Default for Shards {
    fn default() -> Shards {
        Shards(1)
    }
}

impl fmt::Display for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::vec;

    #[test]
    fn queues_spread_evenly() {
        let shards = Shards::new(16).unwrap();
        let mut sizes = vec![0; 16];
        for i in 0..1600 {
            sizes[usize::from(shards.of(&format!("queue-{i}").parse().unwrap()).0)] += 1;
        }
        assert!(sizes.iter().all(|&size| (80..=120).contains(&size)), "{sizes:?}");
    }

    #[test]
    fn fnv_1a_is_the_published_function() {
        assert_eq!(fnv_1a(b""), 0x811c_9dc5);
        assert_eq!(fnv_1a(b"foobar"), 0xbf9c_f968);
    }
}
