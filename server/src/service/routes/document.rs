//! The API's document, for programs and for people: made once, and the same for all.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use delayline_http::openapi;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use sha2::{Digest, Sha256};

use crate::service::app::Shared;

static DOCUMENTS: LazyLock<Documents> = LazyLock::new(Documents::new);

struct Documents {
    json: Bytes,
    page: Bytes,
    /// What a browser may load for the page: its style, and nothing else.
    policy: HeaderValue,
}

pub(super) async fn json(State(_): State<Shared>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENTS.json.clone()).into_response()
}

pub(super) async fn page(State(_): State<Shared>) -> Response {
    let Documents { page, policy, .. } = &*DOCUMENTS;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy.clone()),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (headers, page.clone()).into_response()
}

impl Documents {
    fn new() -> Documents {
        let document = openapi::document();
        let style = Base64::encode_string(&Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        Documents {
            json: openapi::json(&document).into(),
            page: render(&openapi::markdown(&document)).into(),
            policy: HeaderValue::try_from(policy)
                .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'")),
        }
    }
}

fn render(markdown: &str) -> String {
    let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES)
        .filter(|event| !matches!(event, Event::Html(_) | Event::InlineHtml(_)))
        .collect();
    for at in 0..events.len() {
        let text = heading(&events[at..]);
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
            *id = Some(CowStr::from(openapi::anchor(&text)));
        }
    }
    let mut body = String::new();
    html::push_html(&mut body, events.into_iter());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>delayline: HTTP API</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// The text up to the end of a heading, if one begins here.
fn heading(events: &[Event<'_>]) -> String {
    let begins = matches!(events.first(), Some(Event::Start(Tag::Heading { .. })));
    let within = events.iter().take_while(|event| begins && !matches!(event, Event::End(TagEnd::Heading(_))));
    let texts = within.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(&**text),
        _ => None,
    });
    texts.collect()
}

/// For light and dark screens, and for narrow ones: what is too wide scrolls by itself.
const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --code: #8882; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 2.5rem; }
pre, code { font: 14px/1.45 ui-monospace, monospace; background: var(--code); border-radius: 4px; }
code { padding: 0.1em 0.25em; }
pre { padding: 0.75rem; overflow-x: auto; }
pre code { padding: 0; background: none; }
table { display: block; overflow-x: auto; border-collapse: collapse; }
th, td { padding: 0.3rem 0.6rem; border: 1px solid var(--line); text-align: left; vertical-align: top; }
";
