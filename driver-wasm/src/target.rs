/// The path and the query of a URL as the platform writes it: with a host, and nothing that a parser would have to mend.
pub(crate) fn target(url: &str) -> (&str, &str) {
    let url = url.split('#').next().unwrap_or_default();
    let host = url.find("://").map_or(0, |at| at + 3);
    let at = url.get(host..).and_then(|rest| rest.find('/')).map_or(url.len(), |at| host + at);
    let target = url.get(at..).unwrap_or_default();
    target.split_once('?').unwrap_or((target, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        for (url, parts) in [
            ("https://a.example/v1/queues/q?x=1&y=/?", ("/v1/queues/q", "x=1&y=/?")),
            ("http://127.0.0.1:8787/", ("/", "")),
            ("https://a.example/a#b?c", ("/a", "")),
            ("https://a.example", ("", "")),
            ("", ("", "")),
        ] {
            assert_eq!(target(url), parts, "{url}");
        }
    }
}
