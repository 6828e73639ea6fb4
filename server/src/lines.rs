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

struct Lines<S> {
    chunks: S,
    buffer: BytesMut,
    searched: usize,
    too_long: bool,
    ended: u64,
    limit: usize,
}

/// Cuts `chunks` into lines as they arrive, keeping no more than `limit` bytes and a chunk. Blank lines are left out.
pub(crate) fn lines<S, E>(chunks: S, limit: usize) -> impl Stream<Item = Result<Line, E>>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    numbered(chunks, limit).map(|line| line.map(|(_, line)| line))
}

/// [`lines`] with their numbers, from 1; blank lines count.
pub(crate) fn numbered<S, E>(chunks: S, limit: usize) -> impl Stream<Item = Result<(u64, Line), E>>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    let lines = Lines { chunks, buffer: BytesMut::new(), searched: 0, too_long: false, ended: 0, limit };
    stream::try_unfold(lines, |mut lines| async move { Ok(lines.next().await?.map(|line| (line, lines))) })
}

impl<S: Stream<Item = Result<Bytes, E>> + Unpin, E> Lines<S> {
    async fn next(&mut self) -> Result<Option<(u64, Line)>, E> {
        loop {
            if let Some(line) = self.buffered() {
                return Ok(Some((self.ended, line)));
            }
            match self.chunks.next().await {
                Some(chunk) => self.buffer.extend_from_slice(&chunk?),
                None => return Ok(self.last().map(|line| (self.ended + 1, line))),
            }
        }
    }

    fn buffered(&mut self) -> Option<Line> {
        while let Some(found) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(self.searched + found);
            self.buffer.advance(1);
            self.searched = 0;
            self.ended += 1;
            if let Some(line) = self.line(line) {
                return Some(line);
            }
        }
        self.searched = self.buffer.len();
        if self.searched > self.limit {
            self.too_long = true;
            self.searched = 0;
            self.buffer.clear();
        }
        None
    }

    fn last(&mut self) -> Option<Line> {
        self.searched = 0;
        let rest = self.buffer.split();
        self.line(rest)
    }

    fn line(&mut self, line: BytesMut) -> Option<Line> {
        if std::mem::take(&mut self.too_long) || line.len() > self.limit {
            return Some(Line::TooLong);
        }
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then(|| Line::Whole(line.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    async fn cut(chunks: &[&'static str], limit: usize) -> Vec<Line> {
        let chunks = chunks.iter().map(|chunk| Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes())));
        lines(stream::iter(chunks), limit).map(Result::unwrap).collect().await
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

    #[tokio::test]
    async fn a_long_line_does_not_stop_those_after_it() {
        let chunks = ["a\n", "1234", "5678", "9", "0\nb\n12345", "\nc\n123456"];
        let expected = [whole("a"), Line::TooLong, whole("b"), Line::TooLong, whole("c"), Line::TooLong];
        assert_eq!(cut(&chunks, 4).await, expected);
    }
}
