/// How many bytes the random number of an element takes.
const RANDOM: usize = 8;
/// What an element of Redisson 3.21.1 and later begins with: how long the random number is.
const NEW: u8 = 8;

/// Reads an element of a delayed queue: the bytes that its codec wrote.
///
/// Since 3.21.1 it is the byte 8, 8 random bytes, the length in 64 bits, the lower first, and the bytes; before, the same
/// without the byte 8. The length tells which it is: it is that of all that follows in one of them only.
pub(super) fn read(element: &[u8]) -> Result<&[u8], &'static str> {
    match element.split_first() {
        Some((&NEW, rest)) if payload(rest).is_some() => payload(rest),
        _ => payload(element),
    }
    .ok_or("it is neither of the two formats of RDelayedQueue")
}

fn payload(rest: &[u8]) -> Option<&[u8]> {
    let (length, payload) = rest.get(RANDOM..)?.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*length) == u64::try_from(payload.len()).ok()?).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read() {
        let new = b"\x08abcdefgh\x05\0\0\0\0\0\0\0hello";
        let old = b"abcdefgh\x05\0\0\0\0\0\0\0hello";
        assert_eq!((read(new), read(old)), (Ok(&b"hello"[..]), Ok(&b"hello"[..])));
        assert_eq!(read(b"\x08bcdefgh\0\0\0\0\0\0\0\0"), Ok(&b""[..]), "a random number may begin with 8");
        for length in 0..new.len() {
            assert!(read(&new[..length]).is_err(), "{length}");
        }
        assert!(read(b"plain text that is no element").is_err());
        assert!(read(&[&old[..], b"!"].concat()).is_err());
    }
}
