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
    /// The server is a replica, or refuses writes.
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
}

/// Classifies a server's error; `None` means that the command may have run.
///
/// Every script writes first what Redis refuses whole (see `lua/`), so an error of memory, role or persistence inside a
/// script means that nothing was written. Redis 6.2 puts such an error behind words of its own.
pub fn refusal(error: &str) -> Option<Refusal> {
    if let Some((_, cause)) =
        error.strip_prefix("ERR Error running script").and_then(|text| text.split_once(": -"))
    {
        return refusal(cause).filter(|meaning| matches!(meaning, Refusal::OutOfMemory | Refusal::ReadOnly));
    }
    let code = error.split([' ', ':']).next().unwrap_or_default();
    match code {
        "NOSCRIPT" => Some(Refusal::NoScript),
        "LOADING" => Some(Refusal::Loading),
        "READONLY" | "MISCONF" | "NOREPLICAS" => Some(Refusal::ReadOnly),
        "OOM" => Some(Refusal::OutOfMemory),
        "NOAUTH" | "WRONGPASS" => Some(Refusal::Denied),
        "NOPERM" if !error.contains("script:") => Some(Refusal::Denied),
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK" | "BUSY" => Some(Refusal::Unavailable),
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
            Refusal::ReadOnly => {
                "Redis refuses writes: it is a replica, lacks replicas of its own, or cannot write to disk"
            }
            Refusal::OutOfMemory => "Redis is out of memory: raise maxmemory or remove data",
            Refusal::Quota => "the quota of the Redis provider is used up",
            Refusal::Throttled => "the Redis provider wants fewer requests for a while",
            Refusal::TooLarge => "the request is larger than the Redis provider takes: send smaller jobs",
            Refusal::Rejected => "there is no REST endpoint of Redis at this address: check its URL",
            Refusal::Denied => "Redis denies access: check user, password and ACL",
            Refusal::Unavailable => "Redis is busy, or a part of its cluster is down",
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
