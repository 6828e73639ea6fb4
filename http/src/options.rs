use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::{Headers, Problem};

const PREFIX: &str = "delayline-";
const JOB_HEADER: &str = "header-";

/// What a request says beside its path and body: the query, and its `Delayline-*` headers.
///
/// A handler reads each option it knows, then calls [`Options::finish`], which refuses what is left: a misspelt option
/// must not be ignored.
#[derive(Debug)]
pub struct Options {
    given: Vec<Given>,
    known: Vec<&'static str>,
}

#[derive(Debug)]
struct Given {
    name: String,
    value: String,
    in_header: bool,
}

impl Options {
    /// All that the query, as it is in the URL, and the headers say.
    pub fn new(query: &str, headers: &Headers<'_>) -> Result<Options, Problem> {
        let query = form_urlencoded::parse(query.as_bytes());
        let mut given: Vec<Given> = query
            .map(|(name, value)| Given { name: name.into(), value: value.into(), in_header: false })
            .collect();
        for (name, value) in headers.iter() {
            let Some(option) = option(name) else { continue };
            let value = str::from_utf8(value)
                .map_err(|_| Problem::bad("bad_option", format!("the header {name} is not UTF-8")))?;
            given.push(Given { name: option, value: value.into(), in_header: true });
        }
        Ok(Options { given, known: Vec::new() })
    }

    /// The option of that name, which may be given once.
    pub fn read<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Result<Option<T>, Problem> {
        let mut all = self.all(name)?;
        match all.len() {
            0 | 1 => Ok(all.pop()),
            _ => Err(Problem::bad("bad_option", format!("{name} is given more than once: give it once"))),
        }
    }

    /// The option of that name, which must be within `range`.
    pub fn in_range<T>(&mut self, name: &'static str, range: RangeInclusive<T>) -> Result<Option<T>, Problem>
    where
        T: FromStr<Err: Display> + PartialOrd + Display,
    {
        let (low, high) = (range.start(), range.end());
        let value = self.read(name).map_err(|mut problem| {
            problem.detail = format!("{}; it must be {low} to {high}", problem.detail);
            problem
        })?;
        match value {
            Some(value) if !range.contains(&value) => {
                Err(Problem::bad("bad_option", format!("{name} is {value}, but must be {low} to {high}")))
            }
            value => Ok(value),
        }
    }

    /// The option of that name, as often as it is given.
    pub fn all<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Result<Vec<T>, Problem> {
        let texts = self.texts(name);
        let values = texts.iter().map(|text| text.parse()).collect::<Result<_, _>>();
        values.map_err(|error| Problem::bad("bad_option", format!("{name}: {error}")))
    }

    fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        self.given.extract_if(.., |given| given.name == name).map(|given| given.value).collect()
    }

    /// The headers of a job, from `Delayline-Header-*`. HTTP has no case in names: they are in lower case.
    pub fn job_headers(&mut self) -> Vec<(String, String)> {
        self.given
            .extract_if(.., |given| given.in_header && given.name.starts_with(JOB_HEADER))
            .map(|given| (given.name[JOB_HEADER.len()..].to_string(), given.value))
            .collect()
    }

    /// Refuses what no one has read.
    pub fn finish(self) -> Result<(), Problem> {
        let Some(unknown) = self.given.first() else { return Ok(()) };
        let use_instead = match self.known.as_slice() {
            [] => "none is known here".to_string(),
            known => format!("use {}", known.join(", ")),
        };
        let shown: String = unknown.name.chars().take(80).collect();
        let what =
            if unknown.in_header { format!("the header Delayline-{shown}") } else { format!("{shown:?}") };
        Err(Problem::bad("unknown_option", format!("{what} is not an option here: {use_instead}")))
    }
}

/// The option that a header of this name is, in lower case.
fn option(name: &str) -> Option<String> {
    let (prefix, option) = name.split_at_checked(PREFIX.len())?;
    prefix.eq_ignore_ascii_case(PREFIX).then(|| option.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_core::Span;

    fn options(query: &str, headers: &[(&str, &str)]) -> Options {
        let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        Options::new(query, &headers).unwrap()
    }

    #[test]
    fn reads_query_and_headers_alike() {
        let mut options = options("delay=5s&queue=a&queue=b", &[("Delayline-TTL", "1h"), ("Accept", "*/*")]);
        assert_eq!(options.read("delay").unwrap(), Some(Span(5_000)));
        assert_eq!(options.read("ttl").unwrap(), Some(Span(3_600_000)));
        assert_eq!(options.read::<Span>("at").unwrap(), None);
        assert_eq!(options.all::<String>("queue").unwrap(), ["a", "b"]);
        options.finish().unwrap();
    }

    #[test]
    fn refuses_what_is_unknown_double_or_unreadable() {
        let mut misspelt = options("dealy=5s", &[]);
        assert_eq!(misspelt.read::<Span>("delay").unwrap(), None);
        let problem = misspelt.finish().unwrap_err();
        assert_eq!(
            (problem.code, &*problem.detail),
            ("unknown_option", "\"dealy\" is not an option here: use delay")
        );
        let problem = options("", &[("Delayline-Dealy", "5s")]).finish().unwrap_err();
        assert!(problem.detail.contains("the header Delayline-dealy is not an option"), "{}", problem.detail);
        let mut twice = options("delay=5s", &[("Delayline-Delay", "5s")]);
        assert!(twice.read::<Span>("delay").unwrap_err().detail.contains("more than once"));
        let problem = options("delay=5", &[]).read::<Span>("delay").unwrap_err();
        assert!(problem.detail.starts_with("delay: 5 in \"5\" has no unit"), "{}", problem.detail);
    }

    #[test]
    fn job_headers_come_from_headers_only() {
        let mut options =
            options("header-a=1", &[("Delayline-Header-Tenant", "x"), ("Delayline-Header-B", "é")]);
        let headers = options.job_headers();
        assert_eq!(headers, [("tenant".to_string(), "x".to_string()), ("b".to_string(), "é".to_string())]);
        assert_eq!(options.finish().unwrap_err().code, "unknown_option");
    }
}
