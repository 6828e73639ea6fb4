use delayline_core::Job;
use thiserror::Error;

use super::{Url, UrlError};

const HEADER: &str = "push-url";
const PLAIN: &str = "plain http is not allowed: use https://, or allow it";

/// Where the jobs of a queue may be pushed to.
#[derive(Clone, Debug)]
pub struct Targets {
    queue: Option<Url>,
    own: OwnUrls,
    plain_http: bool,
}

/// Which URLs jobs may name for themselves, in their header `push-url`.
#[derive(Clone, Debug, Default)]
pub enum OwnUrls {
    /// None.
    #[default]
    Off,
    /// One of these, or what is below one of them. An origin, as `https://host`, has all of its host below it.
    Within(Vec<Url>),
    /// Any that is `https://`. Whoever may publish then chooses where requests go.
    AnyHttps,
}

/// Why there is nowhere to push a job to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Neither the queue nor the job names a URL.
    #[error("no URL is configured for the queue, and the job has no header push-url: give one of them")]
    None,
    /// The job names what is no URL.
    #[error("its header push-url: {0}")]
    Url(#[from] UrlError),
    /// Jobs may not name URLs.
    #[error("its header push-url is not allowed: leave it out, or allow such URLs")]
    Off,
    /// Jobs may name URLs, but not this one.
    #[error("its header push-url is not among the allowed URLs: publish with another, or allow it")]
    NotAllowed {
        /// Which.
        url: Url,
    },
}

impl Targets {
    /// Jobs go to the URL of their queue, or to their own if they name one that is allowed. `http://` is refused unless
    /// `plain_http`, in what is configured too.
    pub fn new(queue: Option<Url>, own: OwnUrls, plain_http: bool) -> Result<Targets, UrlError> {
        let within = if let OwnUrls::Within(urls) = &own { urls.as_slice() } else { &[] };
        if let Some(url) = within.iter().find(|url| url.has_query()) {
            let why = "what is allowed is a host, and a path at most: leave out the query";
            return Err(UrlError::new(url.as_str(), why));
        }
        if let Some(url) = queue.iter().chain(within).find(|url| !plain_http && !url.is_https()) {
            return Err(UrlError::new(url.as_str(), PLAIN));
        }
        Ok(Targets { queue, own, plain_http })
    }

    /// Where this job goes.
    pub fn of(&self, job: &Job) -> Result<Url, TargetError> {
        match job.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(HEADER)) {
            Some((_, url)) => self.own(url),
            None => self.queue.clone().ok_or(TargetError::None),
        }
    }

    fn own(&self, url: &str) -> Result<Url, TargetError> {
        if matches!(self.own, OwnUrls::Off) {
            return Err(TargetError::Off);
        }
        let url: Url = url.parse()?;
        if !url.is_https() && !self.plain_http {
            return Err(UrlError::new(url.as_str(), PLAIN).into());
        }
        let is_allowed = match &self.own {
            OwnUrls::Off => false,
            OwnUrls::Within(allowed) => allowed.iter().any(|allowed| allowed.contains(&url)),
            OwnUrls::AnyHttps => url.is_https(),
        };
        if is_allowed { Ok(url) } else { Err(TargetError::NotAllowed { url }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::tests::job;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn told(targets: &Targets, own: Option<&str>) -> String {
        let headers = own.map(|url| ("Push-URL".to_owned(), url.to_owned()));
        let job = Job { headers: headers.into_iter().collect(), ..job() };
        targets.of(&job).map_or_else(|error| error.to_string(), |url| url.to_string())
    }

    #[test]
    fn a_job_goes_where_its_queue_says_or_where_it_may() {
        let queue = || Some(url("https://a.example/jobs"));
        let within = || OwnUrls::Within(vec![url("https://b.example/hooks"), url("http://127.0.0.1:8080")]);
        let off = Targets::new(queue(), OwnUrls::Off, false).unwrap();
        let listed = Targets::new(queue(), within(), true).unwrap();
        let any = Targets::new(queue(), OwnUrls::AnyHttps, true).unwrap();
        let none = Targets::new(None, OwnUrls::AnyHttps, false).unwrap();
        for (targets, own, says) in [
            (&off, None, "https://a.example/jobs"),
            (&off, Some("https://b.example/hooks"), "is not allowed: leave it out"),
            (&off, Some("not even one"), "is not allowed: leave it out"),
            (&listed, None, "https://a.example/jobs"),
            (&listed, Some("https://b.example/hooks/1"), "https://b.example/hooks/1"),
            (&listed, Some("http://127.0.0.1:8080/x"), "http://127.0.0.1:8080/x"),
            (&listed, Some("https://a.example/jobs"), "not among the allowed"),
            (&listed, Some("https://b.example/admin"), "not among the allowed"),
            (&listed, Some("https://b.example/hooks/../admin"), ".. in it"),
            (&any, Some("https://c.example/x?y"), "https://c.example/x?y"),
            (&any, Some("http://c.example/"), "not among the allowed"),
            (&any, Some("c.example"), "header push-url: \"c.example\" is no URL"),
            (&none, Some("https://c.example/"), "https://c.example/"),
            (&none, Some("http://c.example/"), "plain http is not allowed"),
            (&none, None, "no URL is configured for the queue"),
        ] {
            let told = told(targets, own);
            assert!(told.contains(says), "{own:?}: {told}");
        }
    }

    #[test]
    fn what_is_configured_is_checked() {
        let plain = Targets::new(Some(url("http://a.example/")), OwnUrls::Off, false).unwrap_err();
        assert!(plain.to_string().contains("plain http is not allowed"), "{plain}");
        assert!(Targets::new(Some(url("http://a.example/")), OwnUrls::Off, true).is_ok());
        let plain = Targets::new(None, OwnUrls::Within(vec![url("http://a.example/")]), false).unwrap_err();
        assert!(plain.to_string().contains("plain http is not allowed"), "{plain}");
        let query =
            Targets::new(None, OwnUrls::Within(vec![url("https://a.example/?x")]), false).unwrap_err();
        assert!(query.to_string().contains("leave out the query"), "{query}");
    }
}
