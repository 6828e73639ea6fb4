//! The Lua scripts of the delayline queue: one file a command, shared parts under `lib/`, each with its SHA-1.
//!
//! Every file's header states its keys, arguments, answers, what a repeat does, and how many Redis calls it makes.
//! `delayline-core` encodes their arguments and decodes their answers; `delayline-embedded` does the same in memory.
#![no_std]
#![forbid(unsafe_code)]
#![allow(long_running_const_eval)]

extern crate alloc;

mod code;

use alloc::string::String;
use core::fmt;

/// A script as Redis runs it.
#[derive(Clone, Copy)]
pub struct Script {
    /// The file's name without its extension.
    pub name: &'static str,
    parts: &'static [&'static str],
    sha1: [u8; 40],
}

impl Script {
    /// What Redis is sent: the shared parts and the script's own, without comments and indentation.
    pub fn source(&self) -> String {
        self.parts.concat()
    }

    /// The name under which EVALSHA finds the script: 40 hex digits.
    pub fn sha1(&self) -> &str {
        core::str::from_utf8(&self.sha1).unwrap_or_default()
    }

    /// The source as it is written, comments included.
    pub fn written(&self) -> &'static str {
        written(self.name)
    }

    /// The comment at the head of the script's own file.
    pub fn header(&self) -> impl Iterator<Item = &'static str> {
        let written = self.written();
        let own = written.rfind("\n-- First write:").unwrap_or(0);
        let start = written[..own].rfind("\n\n").map_or(0, |at| at + 2);
        written[start..].lines().take_while(|line| line.starts_with("--"))
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

/// The code of a text that is known at compile time. The same text in two places is linked once.
macro_rules! code {
    ($($text:expr),*) => {{
        const TEXT: &str = concat!($($text),*);
        const CODE: [u8; code::len(TEXT)] = code::strip(TEXT);
        match core::str::from_utf8(&CODE) {
            Ok(code) => code,
            Err(_) => panic!("whole lines of text are text"),
        }
    }};
}

macro_rules! scripts {
    ($($doc:literal $constant:ident $name:literal: $($part:literal)*;)*) => {
        $(
            #[doc = $doc]
            pub static $constant: Script = Script {
                name: $name,
                parts: &[
                    $(code!(include_str!(concat!("../lib/", $part, ".lua"))),)*
                    code!(include_str!(concat!("../", $name, ".lua"))),
                ],
                sha1: {
                    const SOURCE: &str = code!(
                        $(include_str!(concat!("../lib/", $part, ".lua")),)*
                        include_str!(concat!("../", $name, ".lua"))
                    );
                    hex(const_sha1::sha1(SOURCE.as_bytes()).as_bytes())
                },
            };
        )*

        /// All scripts.
        pub fn all() -> [&'static Script; 17] {
            [$(&$constant),*]
        }

        /// Apart from the scripts, since only tests and people read comments: programs do not link them.
        fn written(name: &str) -> &'static str {
            match name {
                $($name => concat!(
                    $(include_str!(concat!("../lib/", $part, ".lua")), "\n",)*
                    include_str!(concat!("../", $name, ".lua")),
                ),)*
                _ => "",
            }
        }
    };
}

scripts! {
    "Accepts jobs." PUBLISH "publish": "base" "meta" "state" "agenda" "changes" "session" "sweep";
    "Grants leases." RESERVE "reserve": "base" "meta" "state" "agenda" "changes" "lease" "reap" "sift" "session" "sweep";
    "Ends leases with verdicts." SETTLE "settle": "base" "meta" "state" "agenda" "changes" "lease";
    "Renews leases." EXTEND "extend": "base" "meta" "state" "agenda" "changes";
    "Takes waiting jobs away." CANCEL "cancel": "base" "meta" "state" "agenda" "changes" "session" "sweep";
    "Gives waiting jobs another due time." RESCHEDULE "reschedule": "base" "meta" "state" "agenda" "changes" "session" "sweep";
    "Reads a shard's agenda and takes its lease." PEEK "peek": "base";
    "Does what must happen in a queue." TEND "tend": "base" "meta" "state" "agenda" "changes" "lease" "reap" "sift" "sweep";
    "Makes dead letters due." REQUEUE "requeue": "base" "meta" "state" "agenda" "changes" "dead";
    "Removes dead letters." PURGE "purge": "base" "meta" "state" "agenda" "changes" "dead";
    "Replaces a queue's config." CONFIGURE "configure": "base" "meta" "agenda" "config";
    "Pauses and resumes a queue." PAUSE "pause": "base" "meta" "agenda" "config";
    "Removes a queue." DESTROY "destroy": "base" "meta";
    "Reads one job." INSPECT "inspect": "base" "meta" "state";
    "Reads jobs page by page." LIST "list": "base" "meta" "state" "agenda" "changes" "sift";
    "Reads a queue's config, counters and sizes." STATS "stats": "base" "meta" "config";
    "Fixes or reads a deployment's layout." OPEN "open":;
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

    #[test]
    fn what_is_sent_is_what_is_written_less_comments_and_indentation() {
        for script in super::all() {
            let lines = script.written().lines().map(|line| line.trim_start_matches(' '));
            let code = lines.filter(|line| !line.is_empty() && !line.starts_with("--"));
            assert!(script.source().lines().eq(code), "{}", script.name);
            assert!(!script.written().contains("[["), "{}: a text or comment of many lines", script.name);
        }
    }
}
