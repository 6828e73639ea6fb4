//! Lua without what only its readers need: comments that have lines of their own, empty lines, indentation.

/// How many bytes [`strip`] leaves of a text.
pub(crate) const fn len(text: &str) -> usize {
    let (text, mut len, mut at) = (text.as_bytes(), 0, 0);
    while at < text.len() {
        let line = line(text, at);
        len += line.end - line.start;
        at = line.next;
    }
    len
}

/// The lines of code of a text whose lines all end.
pub(crate) const fn strip<const LEN: usize>(text: &str) -> [u8; LEN] {
    let (text, mut code, mut len, mut at) = (text.as_bytes(), [0; LEN], 0, 0);
    while at < text.len() {
        let line = line(text, at);
        let mut from = line.start;
        while from < line.end {
            code[len] = text[from];
            len += 1;
            from += 1;
        }
        at = line.next;
    }
    code
}

struct Line {
    /// Where its code starts.
    start: usize,
    /// Where its code ends, line feed included: at the start if it has none.
    end: usize,
    next: usize,
}

const fn line(text: &[u8], mut start: usize) -> Line {
    while start < text.len() && text[start] == b' ' {
        start += 1;
    }
    let mut next = start;
    while next < text.len() && text[next] != b'\n' {
        next += 1;
    }
    assert!(next < text.len(), "the last line has no end");
    let is_comment = next >= start + 2 && text[start] == b'-' && text[start + 1] == b'-';
    let end = if next == start || is_comment { start } else { next + 1 };
    Line { start, end, next: next + 1 }
}
