use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Where a job's publishing stands in a distributed trace: W3C Trace Context (<https://www.w3.org/TR/trace-context/>).
///
/// As text it is the header `traceparent`; stored it takes 26 bytes beside the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Names the whole trace; never all zeros.
    pub trace_id: [u8; 16],
    /// Names the caller's span; never all zeros.
    pub parent_id: [u8; 8],
    /// Bit 1: the caller may have recorded it.
    pub flags: u8,
    /// The header `tracestate`, passed on as it is; empty if there is none.
    pub state: String,
}

/// A text that is not a `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{text:?} is not a traceparent: write 00-<32 hex digits>-<16 hex digits>-<2 hex digits> in lower case, \
     neither id all zeros"
)]
pub struct TraceError {
    /// The rejected text, cut to 80 characters.
    pub text: String,
}

impl FromStr for Trace {
    type Err = TraceError;

    /// Reads a `traceparent` of version 00, or the part of a later one that has its form; the state is left empty.
    fn from_str(text: &str) -> Result<Trace, TraceError> {
        parse(text).ok_or_else(|| TraceError { text: text.chars().take(80).collect() })
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace_id, parent_id) = (u128::from_be_bytes(self.trace_id), u64::from_be_bytes(self.parent_id));
        write!(f, "00-{trace_id:032x}-{parent_id:016x}-{:02x}", self.flags)
    }
}

fn parse(text: &str) -> Option<Trace> {
    let mut fields = text.split('-');
    let version = hex(fields.next()?, 2)?;
    let trace_id = hex(fields.next()?, 32)?;
    let parent_id = u64::try_from(hex(fields.next()?, 16)?).ok()?;
    let flags = u8::try_from(hex(fields.next()?, 2)?).ok()?;
    let complete = version != 0 || fields.next().is_none();
    (complete && version != 0xff && trace_id != 0 && parent_id != 0).then(|| Trace {
        trace_id: trace_id.to_be_bytes(),
        parent_id: parent_id.to_be_bytes(),
        flags,
        state: String::new(),
    })
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    lower.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_traceparent_reads_back_as_it_was_written() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(text.parse::<Trace>().unwrap().to_string(), text);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later";
        assert_eq!(later.parse::<Trace>().unwrap().to_string(), text);
    }

    #[test]
    fn what_the_standard_calls_invalid_is_refused() {
        for text in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(text.parse::<Trace>().is_err(), "{text}");
        }
    }
}
