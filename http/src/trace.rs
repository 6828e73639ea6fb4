use delayline_core::Trace;

use crate::Headers;

/// The longest `tracestate` that is kept: what the standard asks everybody to pass on.
const STATE_BYTES: usize = 512;

/// Where a request stands in a distributed trace, by its headers `traceparent` and `tracestate`. What the standard calls
/// invalid is left out, since a trace must not stop a job.
pub fn trace(headers: &Headers<'_>) -> Option<Trace> {
    let trace: Trace = str::from_utf8(headers.get("traceparent")?).ok()?.trim().parse().ok()?;
    let states = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("tracestate"));
    let states: Option<Vec<&str>> = states.map(|(_, value)| str::from_utf8(value).ok()).collect();
    let state = states.unwrap_or_default().join(",");
    Some(if state.len() <= STATE_BYTES { Trace { state, ..trace } } else { trace })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(headers: &[(&str, &[u8])]) -> Option<(String, String)> {
        let headers = headers.iter().copied().collect();
        trace(&headers).map(|trace| (trace.to_string(), trace.state))
    }

    #[test]
    fn a_trace_is_read_with_its_state() {
        let parent = ("Traceparent", PARENT.as_bytes());
        let found = |state: &str| Some((PARENT.to_owned(), state.to_owned()));
        assert_eq!(read(&[parent]), found(""));
        assert_eq!(read(&[parent, ("tracestate", b"a=1,b=2")]), found("a=1,b=2"));
        assert_eq!(read(&[("tracestate", b"a=1"), parent, ("TraceState", b"b=2")]), found("a=1,b=2"));
        assert_eq!(read(&[parent, ("tracestate", &[b'x'; STATE_BYTES])]), found(&"x".repeat(STATE_BYTES)));
    }

    #[test]
    fn what_is_no_trace_is_left_out() {
        assert_eq!(read(&[("tracestate", b"a=1")]), None);
        assert_eq!(read(&[("traceparent", b"00-0-0-0")]), None);
        assert_eq!(read(&[("traceparent", b"\xff")]), None);
        let parent = ("traceparent", PARENT.as_bytes());
        for state in [&b"\xff"[..], &[b'x'; STATE_BYTES + 1]] {
            assert_eq!(read(&[parent, ("tracestate", state)]), Some((PARENT.to_owned(), String::new())));
        }
    }
}
