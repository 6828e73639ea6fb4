use axum::http::Uri;
use bytes::Bytes;
use percent_encoding::percent_decode_str;

use super::command::Command;
use super::limits::RequestLimits;
use super::refusal::Refusal;
use super::token::Token;
use crate::service::body::{Inbound, Unread};

/// What a request asks for.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) enum Request {
    One(Command),
    /// In their order, not atomic.
    Pipeline(Vec<Command>),
    /// Atomic.
    Transaction(Vec<Command>),
}

impl Request {
    /// Reads the path: what it names is read from the body, or else it is a command itself.
    pub(super) fn read(uri: &Uri, body: Bytes, limits: RequestLimits) -> Result<Request, Refusal> {
        match uri.path() {
            "/" if body.is_empty() => Err(Refusal::Empty),
            "/" => command(&body, limits).map(Request::One),
            "/pipeline" => commands(&body, limits).map(Request::Pipeline),
            "/multi-exec" => commands(&body, limits).map(Request::Transaction),
            path => Ok(Request::One(in_path(path, uri.query().unwrap_or_default(), body))),
        }
    }

    /// How many commands it has.
    pub(super) fn commands(&self) -> usize {
        match self {
            Request::One(_) => 1,
            Request::Pipeline(commands) | Request::Transaction(commands) => commands.len(),
        }
    }
}

/// The whole body, if it has at most `limit` bytes. Of one that has more, a part is read for nothing, so that its sender comes
/// to read the answer.
pub(super) async fn whole(body: Inbound, limit: usize) -> Result<Bytes, Refusal> {
    let announced = body.announced();
    body.whole(limit).await.map_err(|unread| match unread {
        Unread::TooLarge => Refusal::TooLarge { limit, bytes: announced.max(limit + 1) },
        Unread::TooSlow(patience) => Refusal::Slow(patience),
        Unread::NoRoom => Refusal::NoRoom,
        Unread::Broken(error) => Refusal::Broken(error),
    })
}

fn command(body: &[u8], limits: RequestLimits) -> Result<Command, Refusal> {
    let expected = r#"a command, like ["GET","key"]"#;
    Command::one(body, limits).map_err(|why| Refusal::Json { expected, why })
}

fn commands(body: &[u8], limits: RequestLimits) -> Result<Vec<Command>, Refusal> {
    let expected = r#"commands, like [["GET","key"]]"#;
    let commands = Command::several(body, limits).map_err(|why| Refusal::Json { expected, why })?;
    if commands.is_empty() { Err(Refusal::NoCommands) } else { Ok(commands) }
}

/// The segments of a path, then the body if there is one, then the query.
fn in_path(path: &str, query: &str, body: Bytes) -> Command {
    let segments = path.trim_start_matches('/').split('/');
    let segments = segments.map(|segment| percent_decode_str(segment).collect::<Bytes>());
    let body = Some(body).filter(|body| !body.is_empty());
    let query = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| !Token::is_parameter(name));
    let query = query.flat_map(|(name, value)| [Some(name), Some(value).filter(|value| !value.is_empty())]);
    let query = query.flatten().map(|word| word.into_owned().into_bytes().into());
    Command::new(segments.chain(body).chain(query))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uri: &str, body: &[u8]) -> Result<Request, Refusal> {
        let limits = RequestLimits { bytes: 1 << 20, commands: 9, words: 99, answer_bytes: 1 << 20 };
        Request::read(&uri.parse().unwrap(), Bytes::copy_from_slice(body), limits)
    }

    fn words(words: &[&[u8]]) -> Command {
        Command::new(words)
    }

    #[test]
    fn a_path_is_a_command_with_the_body_and_the_query_behind_it() {
        for (uri, body, expected) in [
            ("/get/foo", &b""[..], &[&b"get"[..], b"foo"][..]),
            ("/ping", b"", &[b"ping"]),
            ("/set/foo?EX=100", b"bar", &[b"set", b"foo", b"bar", b"EX", b"100"]),
            ("/set/foo/bar?_token=t&nx&EX=1", b"", &[b"set", b"foo", b"bar", b"nx", b"EX", b"1"]),
            ("/set/a%2Fb%20c/%ff%00+?x=a+b", b"", &[b"set", b"a/b c", b"\xff\0+", b"x", b"a b"]),
            ("/set/foo/", b"", &[b"set", b"foo", b""]),
            ("/set/foo", b"\xff\x00", &[b"set", b"foo", b"\xff\0"]),
            ("/Pipeline", b"", &[b"Pipeline"]),
        ] {
            assert_eq!(read(uri, body).unwrap(), Request::One(words(expected)), "{uri}");
        }
    }

    #[test]
    fn a_body_is_one_command_or_several() {
        let (set, get) = (words(&[b"SET", b"k", b"1"]), words(&[b"GET", b"k"]));
        assert_eq!(read("/?_token=t", br#"["GET","k"]"#).unwrap(), Request::One(get));
        let get = words(&[b"GET", b"k"]);
        let two = br#"[["SET","k",1],["GET","k"]]"#;
        assert_eq!(read("/multi-exec", two).unwrap(), Request::Transaction(vec![set, get]));
        let both = vec![words(&[b"SET", b"k", b"1"]), words(&[])];
        assert_eq!(read("/pipeline", br#"[["SET","k",1],[]]"#).unwrap(), Request::Pipeline(both));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for (uri, body, says) in [
            ("/", &b""[..], "ERR empty command"),
            ("/", b"GET k", "ERR the body cannot be read as a command, like"),
            ("/", b"[\"GET\",\"\xff\"]", "ERR the body cannot be read as a command"),
            ("/pipeline", b"", "ERR the body cannot be read as commands, like [["),
            ("/pipeline", br#"["GET","k"]"#, "ERR the body cannot be read as commands"),
            ("/pipeline", b"[]", "ERR empty pipeline"),
            ("/multi-exec", b"[]", "ERR empty pipeline"),
        ] {
            let refusal = read(uri, body).unwrap_err().to_string();
            assert!(refusal.starts_with(says), "{uri}: {refusal}");
        }
    }
}
