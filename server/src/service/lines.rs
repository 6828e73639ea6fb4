use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};

/// One line of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its bytes, without the end of line.
    Whole(Bytes),
    /// It was longer than allowed; its bytes are gone.
    TooLong,
}

impl Line {
    /// How many bytes of input it was, if that is known, with the end of line.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Line::Whole(line) => line.len() + 1,
            Line::TooLong => 0,
        }
    }
}

/// Cuts what comes into lines, keeping no more than a limit and what came last. Blank lines are left out.
pub(crate) struct Lines {
    buffer: BytesMut,
    searched: usize,
    too_long: bool,
    ended: u64,
    dropped: usize,
    limit: usize,
}

/// Cuts `chunks` into lines as they arrive, with their numbers, from 1; blank lines count.
pub(crate) fn numbered<S, E>(chunks: S, limit: usize) -> impl Stream<Item = Result<(u64, Line), E>>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    stream::try_unfold((chunks, Lines::new(limit)), async |(mut chunks, mut lines)| {
        loop {
            if let Some(line) = lines.pop() {
                return Ok(Some((line, (chunks, lines))));
            }
            match chunks.next().await {
                Some(chunk) => lines.push(&chunk?),
                None => return Ok(lines.last().map(|line| (line, (chunks, lines)))),
            }
        }
    })
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Lines {
        Lines { buffer: BytesMut::new(), searched: 0, too_long: false, ended: 0, dropped: 0, limit }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next line that has come whole, with its number.
    pub(crate) fn pop(&mut self) -> Option<(u64, Line)> {
        while let Some(found) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(self.searched + found);
            self.buffer.advance(1);
            self.dropped += 1;
            self.searched = 0;
            self.ended += 1;
            if let Some(line) = self.line(line) {
                return Some((self.ended, line));
            }
        }
        self.searched = self.buffer.len();
        if self.searched > self.limit {
            self.too_long = true;
            self.dropped += self.searched;
            self.searched = 0;
            self.buffer.clear();
        }
        None
    }

    /// What is left when nothing more comes.
    pub(crate) fn last(&mut self) -> Option<(u64, Line)> {
        self.searched = 0;
        let rest = self.buffer.split();
        self.line(rest).map(|line| (self.ended + 1, line))
    }

    /// How many bytes were put in that are neither kept nor part of a line, since this was last asked.
    pub(crate) fn dropped(&mut self) -> usize {
        std::mem::take(&mut self.dropped)
    }

    fn line(&mut self, line: BytesMut) -> Option<Line> {
        if std::mem::take(&mut self.too_long) || line.len() > self.limit {
            self.dropped += line.len();
            return Some(Line::TooLong);
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            self.dropped += line.len();
            return None;
        }
        Some(Line::Whole(line.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    async fn cut(chunks: &[&'static str], limit: usize) -> Vec<Line> {
        let chunks = chunks.iter().map(|chunk| Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes())));
        numbered(stream::iter(chunks), limit).map(|line| line.unwrap().1).collect().await
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_chunks() {
        for chunks in [
            &["a\nbc\n\n \r\nd"][..],
            &["a", "\n", "b", "c\n\n", " \r", "\nd"],
            &["a\nb", "c\n\n \r\n", "", "d\n"],
        ] {
            assert_eq!(cut(chunks, 9).await, [whole("a"), whole("bc"), whole("d")]);
        }
        assert_eq!(cut(&[], 9).await, []);
    }

    #[tokio::test]
    async fn numbers_count_blank_and_long_lines() {
        let chunks = ["a\n\n12", "3456\n \nb\n\nc"]
            .map(|chunk| Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes())));
        let found: Vec<_> = numbered(stream::iter(chunks), 4).map(Result::unwrap).collect().await;
        assert_eq!(found, [(1, whole("a")), (3, Line::TooLong), (5, whole("b")), (7, whole("c"))]);
    }

    #[test]
    fn every_byte_is_kept_in_a_line_or_dropped() {
        let (mut lines, mut put, mut out) = (Lines::new(4), 0, 0);
        for chunk in ["a\n\n", "12", "34567", "89\n \r\nb", "\n12345\n", "xyz"] {
            lines.push(chunk.as_bytes());
            put += chunk.len();
            while let Some((_, line)) = lines.pop() {
                out += if let Line::Whole(line) = line { line.len() } else { 0 };
            }
            out += lines.dropped();
            assert_eq!(put, out + lines.buffer.len(), "after {chunk:?}");
        }
    }

    #[tokio::test]
    async fn a_long_line_does_not_stop_those_after_it() {
        let chunks = ["a\n", "1234", "5678", "9", "0\nb\n12345", "\nc\n123456"];
        let expected = [whole("a"), Line::TooLong, whole("b"), Line::TooLong, whole("c"), Line::TooLong];
        assert_eq!(cut(&chunks, 4).await, expected);
    }
}
