use axum::http::{HeaderMap, Uri, header};
use bytes::{BufMut, Bytes, BytesMut};
use percent_encoding::percent_decode_str;

use super::refusal::Refusal;

const EVENT_STREAM: &str = "text/event-stream";

/// What a subscriber hears of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    Channel(Vec<u8>),
    /// All channels whose names are like it.
    Pattern(Vec<u8>),
}

impl Topic {
    /// What a request subscribes to, if it asks for an event stream: the path names the command and the channels, or
    /// patterns of their names.
    pub(super) fn asked(
        uri: &Uri,
        headers: &HeaderMap,
        max_topics: usize,
    ) -> Result<Option<Vec<Topic>>, Refusal> {
        let mut segments = uri.path().trim_start_matches('/').split('/');
        let command = segments.next().unwrap_or_default();
        let topic = match command {
            command if command.eq_ignore_ascii_case("subscribe") => Topic::Channel,
            command if command.eq_ignore_ascii_case("psubscribe") => Topic::Pattern,
            _ => return Ok(None),
        };
        if !wants_events(headers) {
            return Err(Refusal::NoEventStream);
        }
        let mut topics = Vec::new();
        for segment in segments {
            let topic = topic(percent_decode_str(segment).collect());
            if !topics.contains(&topic) {
                topics.push(topic);
            }
            if topics.len() > max_topics {
                return Err(Refusal::TooManyTopics { most: max_topics });
            }
        }
        if topics.is_empty() { Err(Refusal::NoTopic) } else { Ok(Some(topics)) }
    }

    pub(super) fn name(&self) -> &[u8] {
        match self {
            Topic::Channel(name) | Topic::Pattern(name) => name,
        }
    }

    /// The event that says that a subscriber hears of this, and of how much by now.
    pub(super) fn subscribed(&self, count: usize) -> Bytes {
        let kind = match self {
            Topic::Channel(_) => "subscribe",
            Topic::Pattern(_) => "psubscribe",
        };
        event(&[kind.as_bytes(), self.name(), count.to_string().as_bytes()])
    }

    /// The event of a message on a channel.
    pub(super) fn message(&self, channel: &[u8], payload: &[u8]) -> Bytes {
        match self {
            Topic::Channel(_) => event(&[b"message", channel, payload]),
            Topic::Pattern(pattern) => event(&[b"pmessage", pattern, channel, payload]),
        }
    }

    /// The last event of a stream that ends though its subscriber would hear more.
    pub(super) fn ended(&self, why: &str) -> Bytes {
        event(&[b"error", self.name(), why.as_bytes()])
    }
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|one| one.split(';').next().is_some_and(|one| one.trim().eq_ignore_ascii_case(EVENT_STREAM)))
}

/// An event of these words, with commas between them. As server-sent events have it, a text of several lines has `data:`
/// before each.
fn event(words: &[&[u8]]) -> Bytes {
    let text = words.join(&b',');
    let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
    let mut written = BytesMut::with_capacity(text.len() + 16);
    for line in text.split(['\n', '\r']) {
        written.put_slice(b"data: ");
        written.put_slice(line.as_bytes());
        written.put_u8(b'\n');
    }
    written.put_u8(b'\n');
    written.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str, accept: &'static str) -> Result<Option<Vec<Topic>>, String> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
        Topic::asked(&path.parse().unwrap(), &headers, 3).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_path_names_what_is_subscribed_to() {
        let channel = |name: &str| Topic::Channel(name.into());
        assert_eq!(asked("/subscribe/chat", EVENT_STREAM), Ok(Some(vec![channel("chat")])));
        let several = Ok(Some(vec![channel("a/b"), channel("{c}"), channel("")]));
        assert_eq!(asked("/Subscribe/a%2Fb/%7Bc%7D/a%2Fb/", EVENT_STREAM), several);
        let accept = "text/html, Text/Event-Stream;q=0.9";
        assert_eq!(asked("/PSUBSCRIBE/a*?_token=t", accept), Ok(Some(vec![Topic::Pattern("a*".into())])));
        assert_eq!(asked("/get/subscribe", EVENT_STREAM), Ok(None));
        assert_eq!(asked("/", EVENT_STREAM), Ok(None));
    }

    #[test]
    fn what_is_no_subscription_is_told() {
        for (path, accept, says) in [
            ("/subscribe/chat", "*/*", "ERR Command is not available: 'SUBSCRIBE'"),
            ("/psubscribe/chat", "application/json", "ERR Command is not available: "),
            ("/subscribe", EVENT_STREAM, "ERR wrong number of arguments"),
            ("/subscribe/a/b/c/d", EVENT_STREAM, "ERR more than 3 channels"),
        ] {
            let refusal = asked(path, accept).unwrap_err();
            assert!(refusal.starts_with(says), "{path}: {refusal}");
        }
    }

    #[test]
    fn events_are_words_with_commas_between_them() {
        let (chat, pattern) = (Topic::Channel("chat".into()), Topic::Pattern("ch*".into()));
        assert_eq!(chat.subscribed(1), "data: subscribe,chat,1\n\n");
        assert_eq!(pattern.subscribed(2), "data: psubscribe,ch*,2\n\n");
        assert_eq!(chat.message(b"chat", b"a, b"), "data: message,chat,a, b\n\n");
        assert_eq!(pattern.message(b"chat", b""), "data: pmessage,ch*,chat,\n\n");
        assert_eq!(pattern.ended("ERR x"), "data: error,ch*,ERR x\n\n");
    }

    #[test]
    fn lines_of_a_message_are_no_events_of_their_own() {
        let chat = Topic::Channel("chat".into());
        let lines = chat.message(b"chat", b"a\nb\r\nc\rdata: message,chat,d\n\nid: 1");
        let expected =
            "data: message,chat,a\ndata: b\ndata: c\ndata: data: message,chat,d\ndata: \ndata: id: 1\n\n";
        assert_eq!(lines, expected);
        assert_eq!(chat.message(b"chat", b"\xff"), "data: message,chat,\u{fffd}\n\n");
    }
}
