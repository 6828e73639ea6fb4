//! The Lua scripts of the delayline queue: one file a command, shared parts under `lib/`, each with its SHA-1.
//!
//! Every file's header states its keys, arguments, answers, what a repeat does, and how many Redis calls it makes.
//! `delayline-core` encodes their arguments and decodes their answers; `delayline-embedded` does the same in memory.
#![no_std]
#![forbid(unsafe_code)]
#![allow(long_running_const_eval)]

use core::fmt;

/// A script as Redis runs it.
#[derive(Clone, Copy)]
pub struct Script {
    /// The file's name without its extension.
    pub name: &'static str,
    /// The source, shared parts included.
    pub source: &'static str,
    sha1: [u8; 40],
}

impl Script {
    const fn new(name: &'static str, source: &'static str) -> Script {
        Script { name, source, sha1: hex(const_sha1::sha1(source.as_bytes()).as_bytes()) }
    }

    /// The name under which EVALSHA finds the script: 40 hex digits.
    pub fn sha1(&self) -> &str {
        core::str::from_utf8(&self.sha1).unwrap_or_default()
    }

    /// The comment at the head of the script's own file.
    pub fn header(&self) -> impl Iterator<Item = &'static str> {
        let own = self.source.rfind("\n-- First write:").unwrap_or(0);
        let start = self.source[..own].rfind("\n\n").map_or(0, |at| at + 2);
        self.source[start..].lines().take_while(|line| line.starts_with("--"))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({} {})", self.name, self.sha1())
    }
}

const fn hex(digest: [u8; 20]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 40];
    let mut i = 0;
    while i < 20 {
        text[2 * i] = DIGITS[(digest[i] >> 4) as usize];
        text[2 * i + 1] = DIGITS[(digest[i] & 15) as usize];
        i += 1;
    }
    text
}

macro_rules! script {
    ($doc:literal $constant:ident $name:literal: $($part:literal)*) => {
        #[doc = $doc]
        pub static $constant: Script = Script::new(
            $name,
            concat!($(include_str!(concat!("../lib/", $part, ".lua")), "\n",)* include_str!(concat!("../", $name, ".lua"))),
        );
    };
}

script!("Accepts jobs." PUBLISH "publish": "base" "meta" "state" "agenda" "changes" "session");
script!("Grants leases." RESERVE "reserve": "base" "meta" "state" "agenda" "changes" "reap" "sift" "session");
script!("Ends leases with verdicts." SETTLE "settle": "base" "meta" "state" "agenda" "changes");
script!("Renews leases." EXTEND "extend": "base" "meta" "state" "agenda" "changes");
script!("Takes waiting jobs away." CANCEL "cancel": "base" "meta" "state" "agenda" "changes" "session");
script!("Gives waiting jobs another due time." RESCHEDULE "reschedule": "base" "meta" "state" "agenda" "changes" "session");
script!("Reads a shard's agenda and takes its lease." PEEK "peek": "base");
script!("Does what must happen in a queue." TEND "tend": "base" "meta" "state" "agenda" "changes" "reap" "sift");
script!("Makes dead letters due." REQUEUE "requeue": "base" "meta" "state" "agenda" "changes" "dead");
script!("Removes dead letters." PURGE "purge": "base" "meta" "state" "agenda" "changes" "dead");
script!("Replaces a queue's config." CONFIGURE "configure": "base" "meta" "agenda" "config");
script!("Pauses and resumes a queue." PAUSE "pause": "base" "meta" "agenda" "config");
script!("Removes a queue." DESTROY "destroy": "base" "meta");
script!("Reads one job." INSPECT "inspect": "base");
script!("Reads jobs page by page." LIST "list": "base" "meta" "state" "agenda" "changes" "sift");
script!("Reads a queue's config, counters and sizes." STATS "stats": "base" "meta");
script!("Fixes or reads a deployment's layout." OPEN "open":);

/// All scripts.
pub fn all() -> [&'static Script; 17] {
    [
        &PUBLISH,
        &RESERVE,
        &SETTLE,
        &EXTEND,
        &CANCEL,
        &RESCHEDULE,
        &PEEK,
        &TEND,
        &REQUEUE,
        &PURGE,
        &CONFIGURE,
        &PAUSE,
        &DESTROY,
        &INSPECT,
        &LIST,
        &STATS,
        &OPEN,
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_header_is_found_whole() {
        for script in super::all() {
            let header = script.header();
            for line in ["-- Args: 1 clock", "-- Returns: ", "-- Repeat: ", "-- Calls: ", "-- First write: "]
            {
                assert!(script.header().any(|have| have.starts_with(line)), "{}: no {line:?}", script.name);
            }
            assert!(header.count() >= 7, "{}", script.name);
        }
    }
}
