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
            ("WRONGTYPE Operation against a key holding the wrong kind of value script: 1", None),
        ] {
            assert_eq!(refusal(error), meaning, "{error}");
        }
    }
}
