use delayline_core::Identity;

use super::whole;

/// Whether a field of `meta` is a session: `s<engine><verb><lane>`.
pub(super) fn is_one(field: &[u8]) -> bool {
    let Some((engine, rest)) =
        field.strip_prefix(b"s").and_then(|rest| rest.split_at_checked(Identity::TEXT_LEN))
    else {
        return false;
    };
    let engine = std::str::from_utf8(engine).is_ok_and(|text| text.parse::<Identity>().is_ok());
    let Some((b'p' | b'r' | b'c', lane)) = rest.split_first() else { return false };
    engine && !lane.is_empty() && lane.iter().all(u8::is_ascii_digit)
}

/// Until when it is kept: its second word, after the sequence, if its text is one that scripts write.
pub(super) fn kept_until(field: &[u8], text: &[u8]) -> Option<u64> {
    let verb = field.get(1 + Identity::TEXT_LEN)?;
    let mut words = std::str::from_utf8(text).ok()?.split(' ').filter(|word| !word.is_empty());
    whole(words.next()?)?;
    let until = whole(words.next()?)?;
    let first = words.next()?;
    let letters = |text: &str, known: &str| text.chars().all(|letter| known.contains(letter));
    let mut numbers =
        |count: usize| words.by_ref().take(count).filter(|word| whole(word).is_some()).count() == count;
    let fits = match verb {
        b'p' => whole(first).is_some() && words.next().is_none_or(|text| letters(text, "nrdf")),
        b'r' => whole(first).is_some() && numbers(1),
        _ => letters(first, "oldgx") && words.all(|step| step.parse::<i64>().is_ok()),
    };
    fits.then_some(until)
}
