use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Prefix, QueueName, Shard, Shards};

const SLOTS: u32 = 16_384;

/// The names of all keys and channels of a deployment: a pure function of its prefix and number of shards.
#[derive(Clone, Debug)]
pub struct Keyspace {
    shards: Shards,
    config: String,
    tags: Vec<String>,
}

impl Keyspace {
    /// The keys under `prefix` over `shards`.
    ///
    /// Shard `i` of `S` has the smallest salt whose cluster slot lies in the `i`-th of `S` equal ranges, so that shards
    /// spread over the nodes of a cluster.
    pub fn new(prefix: &Prefix, shards: Shards) -> Keyspace {
        Keyspace {
            shards,
            config: format!("{{{prefix}}}:config"),
            tags: shards.iter().map(|shard| salted(prefix, shard, shards)).collect(),
        }
    }

    /// The number of shards.
    pub fn shards(&self) -> Shards {
        self.shards
    }

    /// Where the layout and the number of shards are kept.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// The hash tag of a shard with a colon: every key of the shard begins with it.
    ///
    /// # Panics
    /// If the deployment has no such shard.
    pub fn tag(&self, shard: Shard) -> &str {
        &self.tags[usize::from(shard.0)]
    }

    /// The keys of a shard, in the order its scripts declare: agenda, queues, lease.
    pub fn shard_keys(&self, shard: Shard) -> [String; 3] {
        ["agenda", "queues", "lease"].map(|name| format!("{}{name}", self.tag(shard)))
    }

    /// The keys of a queue, in the order its scripts declare.
    pub fn queue_keys(&self, queue: &QueueName) -> [String; 11] {
        let tag = self.tag(self.shards.of(queue));
        ["agenda", "queues", "meta", "pool", "due", "leased", "state", "dead", "exp", "waiting", "big"].map(
            |name| match name {
                "agenda" | "queues" => [tag, name].concat(),
                _ => [tag, queue.as_str(), ":", name].concat(),
            },
        )
    }

    /// The key of a queue's waiting jobs by due time.
    pub fn due_key(&self, queue: &QueueName) -> String {
        format!("{}{queue}:due", self.tag(self.shards.of(queue)))
    }

    /// The channel on which an engine hears which queue has work for it.
    pub fn wake_channel(&self, shard: Shard, engine: crate::Identity) -> String {
        format!("{}wake:{engine}", self.tag(shard))
    }

    /// The channel on which the holder of a shard's lease hears of an earlier head.
    pub fn head_channel(&self, shard: Shard) -> String {
        format!("{}head", self.tag(shard))
    }
}

fn salted(prefix: &Prefix, shard: Shard, shards: Shards) -> String {
    let (i, count) = (u32::from(shard.0), u32::from(shards.count()));
    let range = (i * SLOTS / count)..((i + 1) * SLOTS / count);
    let mut salt = 0u32;
    loop {
        let tag = format!("{prefix}:{i}.{salt}");
        if range.contains(&(u32::from(crc16(tag.as_bytes())) % SLOTS)) {
            return format!("{{{tag}}}:");
        }
        salt += 1;
    }
}

/// CRC-16/XMODEM, as Redis Cluster specifies for its slots.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |mut crc, &byte| {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_is_the_clusters() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    #[test]
    fn one_shard_takes_the_first_salt() {
        let keys = Keyspace::new(&Prefix::default(), Shards::default());
        assert_eq!(keys.tag(Shard(0)), "{dl:0.0}:");
        assert_eq!(keys.config(), "{dl}:config");
        assert_eq!(keys.queue_keys(&"orders".parse().unwrap())[3], "{dl:0.0}:orders:pool");
    }

    #[test]
    fn shards_lie_in_their_ranges_of_the_cluster() {
        let shards = Shards::new(16).unwrap();
        let keys = Keyspace::new(&Prefix::default(), shards);
        for shard in shards.iter() {
            let tag = keys.tag(shard).trim_start_matches('{').trim_end_matches("}:");
            assert_eq!(u32::from(crc16(tag.as_bytes())) % SLOTS / 1024, u32::from(shard.0));
        }
    }
}
