//! The Lua scripts of the delayline queue: one file a command, shared parts under `lib/`, each with its SHA-1.
//!
//! Every file's header states its keys, arguments, answers, what a repeat does, and how many Redis calls it makes.
//! `delayline-core` encodes their arguments and decodes their answers; `delayline-embedded` does the same in memory.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use core::fmt;

/// A script as Redis runs it.
#[derive(Clone, Copy)]
pub struct Script {
    /// The file's name without its extension.
    pub name: &'static str,
    parts: &'static [&'static str],
    sha1: &'static str,
}

impl Script {
    /// What Redis is sent: the shared parts and the script's own, without comments and indentation.
    pub fn source(&self) -> String {
        self.parts.concat()
    }

    /// The name under which EVALSHA finds the script: 40 hex digits.
    pub fn sha1(&self) -> &'static str {
        self.sha1
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

/// What the build script has made of a file.
macro_rules! built {
    ($($name:expr),*) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $($name),*))
    };
}

macro_rules! scripts {
    ($($doc:literal $constant:ident $name:literal: $($part:literal)*;)*) => {
        $(
            #[doc = $doc]
            pub static $constant: Script = Script {
                name: $name,
                parts: &[$(built!("lib/", $part, ".lua"),)* built!($name, ".lua")],
                sha1: built!($name, ".sha1"),
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

include!("table.rs");

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
