//! The version of a config as the header `ETag`, and what requests say of one that they know.

use crate::{Headers, Problem};

/// The version of a config as the header `ETag`.
pub(crate) fn etag(cfgver: u64) -> String {
    format!("\"{cfgver}\"")
}

/// The version that `If-Match` names, with quotes or without; `*` is any.
pub fn if_match(headers: &Headers<'_>) -> Result<Option<u64>, Problem> {
    let Some(text) = headers.text("if-match")? else { return Ok(None) };
    let text = text.trim();
    if text == "*" {
        return Ok(None);
    }
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let refused =
        || Problem::bad("bad_header", "If-Match is no version: pass the ETag or cfgver of the config");
    bare.parse().map(Some).map_err(|_| refused())
}

/// Whether `If-None-Match` says that the config of this version is known.
pub(crate) fn is_known(headers: &Headers<'_>, cfgver: u64) -> Result<bool, Problem> {
    let Some(text) = headers.text("if-none-match")? else { return Ok(false) };
    let current = etag(cfgver);
    let mut known = text.split(',').map(str::trim);
    Ok(known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == current))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers<'a>(name: &'a str, value: &'a str) -> Headers<'a> {
        [(name, value.as_bytes())].into_iter().collect()
    }

    #[test]
    fn a_version_may_have_quotes() {
        for (text, version) in [("3", Some(3)), ("\"3\"", Some(3)), (" * ", None)] {
            assert_eq!(if_match(&headers("If-Match", text)).unwrap(), version, "{text}");
        }
        assert_eq!(if_match(&headers("x", "3")).unwrap(), None);
        for text in ["", "one", "\"3", "W/\"3\""] {
            assert_eq!(if_match(&headers("if-match", text)).unwrap_err().code, "bad_header", "{text}");
        }
    }

    #[test]
    fn a_config_is_known_by_any_of_its_tags() {
        for (text, is_known_as_3) in [
            ("\"3\"", true),
            ("W/\"3\"", true),
            ("\"2\", \"3\"", true),
            ("*", true),
            ("3", false),
            ("\"33\"", false),
            ("", false),
        ] {
            assert_eq!(is_known(&headers("If-None-Match", text), 3).unwrap(), is_known_as_3, "{text}");
        }
        assert!(!is_known(&headers("x", "\"3\""), 3).unwrap());
    }
}
