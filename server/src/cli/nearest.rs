/// How alike two names must be, from 0 to 1, for one to be taken for the other misspelt.
const ALIKE: f64 = 0.8;

/// The known name that comes nearest to one that is not known, if any is near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
    let best = alike.filter(|(alike, _)| *alike >= ALIKE).max_by(|one, other| one.0.total_cmp(&other.0));
    best.map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_misspelt_is_found_and_what_is_another_name_is_not() {
        let known = ["welcome", "reports", "orders"];
        for misspelt in ["wellcome", "welcom", "Welcome", "weclome"] {
            assert_eq!(nearest(misspelt, known), Some("welcome"), "{misspelt}");
        }
        assert_eq!(nearest("order", known), Some("orders"));
        assert_eq!(nearest("invoices", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
