use std::collections::BTreeMap;

use axum::http::HeaderMap;

use super::answer::Refusal;

const ENABLED: &str = "enable-job-version";
const PREFIX: &str = "job-attr-";
const MOST: usize = 16;
const KEY_BYTES: usize = 32;
const VALUE_BYTES: usize = 128;

/// What a publisher says of a job beside its body.
pub(super) type Attributes = BTreeMap<String, String>;

/// The attributes in the headers of a request, if it says that it has some.
pub(super) fn read(headers: &HeaderMap) -> Result<Attributes, Refusal> {
    let is_enabled = headers.get(ENABLED).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"yes"));
    if !is_enabled {
        return Ok(Attributes::new());
    }
    let keys = headers.keys().filter_map(|name| Some((name, name.as_str().strip_prefix(PREFIX)?)));
    let attributes = keys.filter_map(|(name, key)| {
        let value = headers.get(name).filter(|value| !value.is_empty())?;
        let value = String::from_utf8_lossy(value.as_bytes());
        Some((cut(key, KEY_BYTES), cut(&value, VALUE_BYTES)))
    });
    let attributes: Attributes = attributes.collect();
    if attributes.len() > MOST {
        return Err(Refusal::bad("too many attributes, cannot exceed 16"));
    }
    Ok(attributes)
}

/// As much of a text as fits.
fn cut(text: &str, bytes: usize) -> String {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.parse::<axum::http::HeaderName>().unwrap(), value.parse().unwrap()));
        pairs.collect()
    }

    #[test]
    fn attributes_are_read_if_they_are_enabled_and_cut_to_length() {
        let (long_key, long_value) = (format!("Job-Attr-{}", "K".repeat(40)), "é".repeat(65));
        let mut pairs =
            vec![("Job-Attr-A", "1"), ("Job-Attr-Empty", ""), ("X-Other", "2"), (&*long_key, &*long_value)];
        assert_eq!(read(&headers(&pairs)).unwrap(), Attributes::new());
        pairs.push(("Enable-Job-Version", "YeS"));
        let expected = [("a".to_owned(), "1".to_owned()), ("k".repeat(32), "é".repeat(64))];
        assert_eq!(read(&headers(&pairs)).unwrap(), Attributes::from(expected));
    }

    #[test]
    fn there_may_be_sixteen() {
        let names: Vec<String> = (0..17).map(|n| format!("Job-Attr-{n}")).collect();
        let mut pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        pairs.push(("Enable-Job-Version", "yes"));
        assert!(read(&headers(&pairs)).is_err());
        pairs.remove(0);
        assert_eq!(read(&headers(&pairs)).unwrap().len(), 16);
    }
}
