use crate::Problem;

/// The headers of a request: their names in whatever case, their values as bytes.
pub struct Headers<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Headers<'a> {
    /// The value of that name; the first, if it is there more than once.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The value of that name as text.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        let text = self.get(name).map(str::from_utf8).transpose();
        text.map_err(|_| Problem::bad("bad_header", format!("the header {name} is not UTF-8")))
    }

    /// Each with its name, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.0.iter().copied()
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Headers<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(headers: I) -> Headers<'a> {
        Headers(headers.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case_and_values_may_be_no_text() {
        let headers: Headers =
            [("Content-Type", &b"a/b"[..]), ("x", b"\xff"), ("X", b"2")].into_iter().collect();
        assert_eq!(headers.text("content-type").unwrap(), Some("a/b"));
        assert_eq!(headers.get("x"), Some(&b"\xff"[..]));
        assert_eq!(headers.text("X").unwrap_err().detail, "the header X is not UTF-8");
        assert_eq!(headers.text("y").unwrap(), None);
    }
}
