use core::fmt;

use serde::{Deserialize, Serialize};

/// Why a command was certainly not executed: sending it again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The server does not know the script yet.
    NoScript,
    /// There is no connection.
    NotConnected,
    /// The server is reading its data from disk.
    Loading,
    /// The server is a replica.
    ReadOnly,
    /// The server's memory is full.
    OutOfMemory,
    /// A quota of the provider is used up.
    Quota,
    /// The provider wants fewer requests for a while.
    Throttled,
    /// The request is larger than the provider takes.
    TooLarge,
    /// The request was turned away before it was carried out: there is no such endpoint, or it cannot be read there.
    Rejected,
    /// The user lacks the right, or is not known.
    Denied,
    /// The server runs a script that does not end, or a part of the cluster is down.
    Unavailable,
    /// The server takes no writes that it could not keep: it cannot write to disk, or lacks replicas.
    NotKept,
    /// The server is a node of a Redis Cluster, and another node holds the key.
    Moved,
}

impl Refusal {
    /// Whether another server, which would not refuse, may answer at the same address by now: the primary, where this one
    /// is a replica, or the one that took over, where this one is only loading its data. Connections are to be made anew,
    /// and the name of the address resolved again.
    pub fn asks_for_another_server(self) -> bool {
        matches!(self, Refusal::ReadOnly | Refusal::Loading)
    }

    /// Whether it lasts until somebody changes something: there is no use in waiting for the server to start.
    pub fn is_lasting(self) -> bool {
        matches!(self, Refusal::Denied | Refusal::Moved)
    }
}

/// Classifies a server's error; `None` means that the command may have run.
///
/// Every script writes first what Redis refuses whole (see `lua/`), so an error of memory, role or persistence inside a
/// script means that nothing was written. Redis 6.2 puts such an error behind words of its own.
pub fn refusal(error: &str) -> Option<Refusal> {
    if let Some((_, cause)) =
        error.strip_prefix("ERR Error running script").and_then(|text| text.split_once(": -"))
    {
        let of_a_write = [Refusal::OutOfMemory, Refusal::ReadOnly, Refusal::NotKept];
        return refusal(cause).filter(|meaning| of_a_write.contains(meaning));
    }
    let code = error.split([' ', ':']).next().unwrap_or_default();
    match code {
        "NOSCRIPT" => Some(Refusal::NoScript),
        "LOADING" => Some(Refusal::Loading),
        "READONLY" | "MASTERDOWN" => Some(Refusal::ReadOnly),
        "MISCONF" | "NOREPLICAS" => Some(Refusal::NotKept),
        "OOM" => Some(Refusal::OutOfMemory),
        "NOAUTH" | "WRONGPASS" => Some(Refusal::Denied),
        "NOPERM" if !error.contains("script:") => Some(Refusal::Denied),
        "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" => Some(Refusal::Unavailable),
        "MOVED" | "ASK" => Some(Refusal::Moved),
        "ERR" if error.contains("max daily request limit") || error.contains("max requests limit") => {
            Some(Refusal::Quota)
        }
        "ERR" if error.starts_with("ERR DB capacity quota exceeded") => Some(Refusal::Quota),
        "ERR" if error.starts_with("ERR max request size exceeded") => Some(Refusal::TooLarge),
        _ => None,
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NoScript => "Redis does not know the script",
            Refusal::NotConnected => "there is no connection to Redis",
            Refusal::Loading => "Redis is still loading its data",
            Refusal::ReadOnly => "Redis refuses writes: it is a replica",
            Refusal::OutOfMemory => "it is out of memory: raise maxmemory, or --max-memory where jobs are in memory, or remove data",
            Refusal::Quota => "the quota of the Redis provider is used up",
            Refusal::Throttled => "the Redis provider wants fewer requests for a while",
            Refusal::TooLarge => "the request is larger than the Redis provider takes: send smaller jobs",
            Refusal::Rejected => "there is no REST endpoint of Redis at this address: check its URL",
            Refusal::Denied => "Redis denies access: check user, password and ACL",
            Refusal::Unavailable => {
                "Redis is busy with a script, or it is a node of a Redis Cluster of which a part is down"
            }
            Refusal::NotKept => "Redis refuses writes: it cannot write to disk, or lacks replicas of its own",
            Refusal::Moved => {
                "another node of this Redis Cluster holds the keys, and Redis Cluster is not driven yet: use a Redis \
                 that holds all keys"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_certainly_did_not_run_is_told_from_what_may_have() {
        for (error, meaning) in [
            ("NOSCRIPT No matching script. Please use EVAL.", Some(Refusal::NoScript)),
            (
                "OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:1.",
                Some(Refusal::OutOfMemory),
            ),
            (
                "ERR Error running script (call to f_00): @user_script:2: @user_script: 2: -OOM command not allowed",
                Some(Refusal::OutOfMemory),
            ),
            (
                "ERR Error running script (call to f_00): @user_script:2: @user_script: 2: -NOPERM denied",
                None,
            ),
            ("READONLY You can't write against a read only replica. script: 1", Some(Refusal::ReadOnly)),
            (
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                Some(Refusal::ReadOnly),
            ),
            ("MISCONF Redis is configured to save RDB snapshots, but", Some(Refusal::NotKept)),
            ("NOREPLICAS Not enough good replicas to write.", Some(Refusal::NotKept)),
            (
                "ERR Error running script (call to f_00): @user_script:2: @user_script: 2: -MISCONF Redis is",
                Some(Refusal::NotKept),
            ),
            ("MOVED 3999 127.0.0.1:6381", Some(Refusal::Moved)),
            ("ASK 3999 127.0.0.1:6381", Some(Refusal::Moved)),
            ("CLUSTERDOWN Hash slot not served", Some(Refusal::Unavailable)),
            ("NOPERM User x has no permissions to run the 'evalsha' command", Some(Refusal::Denied)),
            ("NOPERM denied script: 1, on @user_script:1.", None),
            ("ERR user_script:1: attempt to index a nil value script: 1", None),
            ("ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.", Some(Refusal::Quota)),
            ("ERR max requests limit exceeded. Limit: 500000", Some(Refusal::Quota)),
            ("ERR DB capacity quota exceeded. Limit: 256MB", Some(Refusal::Quota)),
            ("ERR max request size exceeded. Limit: 10485760 bytes", Some(Refusal::TooLarge)),
            ("ERR Error running script (call to f_00): ERR DB capacity quota exceeded.", None),
            ("WRONGTYPE Operation against a key holding the wrong kind of value script: 1", None),
        ] {
            assert_eq!(refusal(error), meaning, "{error}");
        }
    }
}
