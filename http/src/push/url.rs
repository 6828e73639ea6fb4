use std::fmt;
use std::str::FromStr;

use fluent_uri::Uri;
use percent_encoding::percent_decode_str;
use thiserror::Error;

const SHOWN: usize = 80;

/// Where a job is pushed to: `https://` or `http://`, a host, and no more than a port, a path and a query.
///
/// Stricter than most readers of URLs, so that all of them find the same host and path in it: no user or password, no
/// fragment, no `.` and `..` in the path, no characters that must be escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    is_https: bool,
    /// In lower case.
    host: String,
    port: u16,
    path: String,
    has_query: bool,
}

/// A text that is no URL to push to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no URL to push to, since {why}")]
pub struct UrlError {
    /// The rejected text, cut to 80 characters and before its query.
    pub text: String,
    /// What is wrong with it, and what to do.
    pub why: &'static str,
}

impl Url {
    /// The URL as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is encrypted on its way.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host, in lower case: a name, or an address, in brackets if it is an IPv6 one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, by the scheme where none is written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Scheme, host and port: what all URLs of one server share.
    pub fn origin(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        let usual = if self.is_https { 443 } else { 80 };
        match self.port {
            port if port == usual => format!("{scheme}://{}", self.host),
            port => format!("{scheme}://{}:{port}", self.host),
        }
    }

    /// Whether it has a query.
    pub fn has_query(&self) -> bool {
        self.has_query
    }

    /// Whether `other` is of the same scheme, host and port, and its path is this one's or goes on below it.
    pub fn contains(&self, other: &Url) -> bool {
        let origin = |url: &Url| (url.is_https, url.host.clone(), url.port);
        let below = other.path.strip_prefix(self.path.trim_end_matches('/'));
        origin(self) == origin(other) && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        read(text).map_err(|why| UrlError::new(text, why))
    }
}

impl UrlError {
    pub(super) fn new(text: &str, why: &'static str) -> UrlError {
        let text = text.split('?').next().unwrap_or_default();
        UrlError { text: text.chars().take(SHOWN).collect(), why }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn read(text: &str) -> Result<Url, &'static str> {
    let uri = Uri::parse(text)
        .map_err(|_| "it cannot be read: write https://host/path, and escape what must be escaped")?;
    let is_https = match uri.scheme().as_str().to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        _ => return Err("its scheme is another: begin with https://"),
    };
    let authority = uri.authority().ok_or("it has no host: write https://host/path")?;
    if authority.has_userinfo() {
        return Err("it has a user or a password: let the signature say who pushes");
    }
    if uri.has_fragment() {
        return Err("it has a fragment, which is never sent: leave out the # and what follows");
    }
    let host = authority.host().to_ascii_lowercase();
    let is_named = host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if host.is_empty() || !(is_named || host.starts_with('[')) {
        return Err("its host is no name and no address: write https://host/path");
    }
    let usual = if is_https { 443 } else { 80 };
    let port = authority.port_to_u16().map_err(|_| "its port is over 65535: choose another")?;
    let path = uri.path().as_str();
    if has_dots(path) {
        return Err("its path has . or .. in it: write the path that it leads to");
    }
    Ok(Url {
        text: text.to_owned(),
        is_https,
        host,
        port: port.unwrap_or(usual),
        path: path.to_owned(),
        has_query: uri.has_query(),
    })
}

/// Whether a part of the path is `.` or `..` for whoever unescapes it, before or after taking it apart.
fn has_dots(path: &str) -> bool {
    let path: Vec<u8> = percent_decode_str(path).collect();
    path.split(|byte| b"/\\".contains(byte)).any(|part| part == b"." || part == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn reads_what_every_reader_reads_alike() {
        for text in [
            "https://a.example",
            "https://a.example/",
            "HTTPS://A.Example:8443/hooks/%C3%A9?token=x&y",
            "http://127.0.0.1:8080/x",
            "https://[::1]/x",
            "https://a.example:/x",
            "https://a.example/..a/b../...",
        ] {
            assert_eq!(text.parse::<Url>().map(|url| url.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn refuses_what_readers_could_take_for_something_else() {
        for (text, why) in [
            ("", "cannot be read"),
            ("/hooks", "cannot be read"),
            ("a.example/hooks", "cannot be read"),
            ("https://a.example/a b", "cannot be read"),
            ("https://a.example/\r\nx: y", "cannot be read"),
            ("https://a.example\\@evil.example/", "cannot be read"),
            ("https:\\\\a.example/", "cannot be read"),
            ("https://é.example/", "cannot be read"),
            (" https://a.example/", "cannot be read"),
            ("https://a.example/%zz", "cannot be read"),
            ("https:a.example/", "no host"),
            ("https:///hooks", "no name"),
            ("https://a%2eexample/", "no name"),
            ("https://a.example,evil.example/", "no name"),
            ("ftp://a.example/", "begin with https://"),
            ("javascript:alert(1)", "begin with https://"),
            ("https://ann:x@a.example/", "user or a password"),
            ("https://a.example@evil.example/", "user or a password"),
            ("https://a.example/#evil.example", "fragment"),
            ("https://a.example:65536/", "port"),
            ("https://a.example/hooks/../admin", ".. in it"),
            ("https://a.example/hooks/.", ".. in it"),
            ("https://a.example/hooks/%2e%2E/admin", ".. in it"),
            ("https://a.example/hooks/..%2fadmin", ".. in it"),
            ("https://a.example/hooks/..%5cadmin", ".. in it"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let error = "https://a.example/a b?token=secret".parse::<Url>().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn urls_of_one_server_have_one_origin() {
        for (text, origin) in [
            ("HTTPS://A.Example:443/x?y", "https://a.example"),
            ("https://a.example:8443/x", "https://a.example:8443"),
            ("http://a.example:80", "http://a.example"),
            ("http://a.example:443", "http://a.example:443"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
        ] {
            assert_eq!(url(text).origin(), origin);
        }
    }

    #[test]
    fn an_allowed_url_allows_what_is_below_it() {
        for (allowed, other, is_below) in [
            ("https://a.example", "https://a.example/", true),
            ("https://a.example", "https://A.example:443/x?y", true),
            ("https://a.example/", "https://a.example", true),
            ("https://a.example", "http://a.example/", false),
            ("https://a.example", "https://a.example:8443/", false),
            ("https://a.example", "https://a.example.evil.example/", false),
            ("https://a.example", "https://evil.example/https://a.example", false),
            ("https://a.example/hooks", "https://a.example/hooks", true),
            ("https://a.example/hooks", "https://a.example/hooks/x", true),
            ("https://a.example/hooks/", "https://a.example/hooks/x", true),
            ("https://a.example/hooks", "https://a.example/hooks-of-others", false),
            ("https://a.example/hooks", "https://a.example/", false),
            ("https://a.example/hooks", "https://a.example/Hooks", false),
        ] {
            assert_eq!(url(allowed).contains(&url(other)), is_below, "{allowed} {other}");
        }
    }
}
