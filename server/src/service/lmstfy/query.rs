use std::str::FromStr;

use super::answer::Refusal;

/// The options in a query.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(query: Option<&str>) -> Query {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Query(pairs.into_owned().collect())
    }

    /// The first value of that name, be it empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// A number without a sign, if there is an option of that name.
    pub(super) fn unsigned<T: FromStr>(
        &self,
        name: &'static str,
        unless_given: T,
        refused: &'static str,
    ) -> Result<T, Refusal> {
        let Some(text) = self.get(name) else { return Ok(unless_given) };
        let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| Refusal::bad(refused))
    }

    /// A number that may have a sign, and must be as large as this at least.
    pub(super) fn at_least(
        &self,
        name: &'static str,
        least: i64,
        unless_given: i64,
        refused: &'static str,
    ) -> Result<u64, Refusal> {
        let number = self.get(name).map_or(Ok(unless_given), str::parse::<i64>);
        let number = number.ok().filter(|number| *number >= least);
        number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| Refusal::bad(refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsigned(query: &str) -> Option<u16> {
        Query::of(Some(query)).unsigned("n", 7, "").ok()
    }

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        for (query, number) in [
            ("", Some(7)),
            ("n=0", Some(0)),
            ("n=007", Some(7)),
            ("n=65535", Some(65_535)),
            ("n=5&n=x", Some(5)),
            ("n=%35", Some(5)),
            ("n=", None),
            ("n", None),
            ("n=65536", None),
            ("n=-1", None),
            ("n=%2B1", None),
            ("n=1.0", None),
            ("n=1_0", None),
            ("n=0x1", None),
            ("n=+1", None),
        ] {
            assert_eq!(unsigned(query), number, "{query}");
        }
        let signed = |query: &str, least| Query::of(Some(query)).at_least("n", least, 7, "").ok();
        for (query, least, number) in [
            ("", 1, Some(7)),
            ("n=%2B5", 1, Some(5)),
            ("n=0", 0, Some(0)),
            ("n=0", 1, None),
            ("n=-1", 0, None),
            ("n=9223372036854775807", 0, Some(i64::MAX.unsigned_abs())),
            ("n=9223372036854775808", 0, None),
        ] {
            assert_eq!(signed(query, least), number, "{query}");
        }
    }
}
