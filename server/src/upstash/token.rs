use std::str::FromStr;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use delayline_http::BearerToken;
use thiserror::Error;

use super::refusal::Refusal;

const PARAMETER: &str = "_token";

/// What a client must show, in the header or in the query.
#[derive(Clone, Debug)]
pub(crate) struct Token(BearerToken);

/// A token that no header can carry.
#[derive(Debug, Error)]
#[error("a token is one or more letters, digits or signs of ASCII, without spaces")]
pub(crate) struct TokenError;

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Token(BearerToken::new(text))) } else { Err(TokenError) }
    }
}

impl Token {
    /// Checks the header of a request, or its query if it has no such header.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let shown = match parts.headers.get(AUTHORIZATION) {
            Some(header) => BearerToken::shown(header.as_bytes()).map(<[u8]>::to_vec),
            None => in_query(parts.uri.query().unwrap_or_default()).map(String::into_bytes),
        };
        if shown.is_some_and(|shown| self.0.is(&shown)) { Ok(()) } else { Err(Refusal::Token) }
    }

    /// Whether a query's parameter of this name is a token, and so no word of a command.
    pub(crate) fn is_parameter(name: &str) -> bool {
        name == PARAMETER
    }
}

fn in_query(query: &str) -> Option<String> {
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    parameters.find(|(name, _)| Token::is_parameter(name)).map(|(_, token)| token.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn admits(uri: &str, header: Option<&str>) -> bool {
        let token: Token = "s3cret".parse().unwrap();
        let request = Request::get(uri);
        let request = match header {
            Some(header) => request.header(AUTHORIZATION, header),
            None => request,
        };
        token.check(&request.body(()).unwrap().into_parts().0).is_ok()
    }

    #[test]
    fn it_is_in_the_header_or_else_in_the_query() {
        assert!(admits("/", Some("Bearer s3cret")));
        assert!(admits("/", Some("bearer s3cret")));
        assert!(admits("/get/a?EX=1&_token=s3cret", None));
        assert!(admits("/?_token=wrong", Some("Bearer s3cret")));
        for (uri, header) in [
            ("/", None),
            ("/", Some("")),
            ("/", Some("Bearer ")),
            ("/", Some("s3cret")),
            ("/", Some("Basic s3cret")),
            ("/", Some("Bearer s3cre")),
            ("/", Some("Bearer s3cretX")),
            ("/?_token=s3cret", Some("Bearer wrong")),
            ("/?token=s3cret", None),
            ("/?_token=", None),
        ] {
            assert!(!admits(uri, header), "{uri} {header:?}");
        }
    }

    #[test]
    fn it_can_be_sent_in_a_header_and_is_not_shown() {
        for unfit in ["", " ", "a b", "ä", "a\n"] {
            assert!(unfit.parse::<Token>().is_err(), "{unfit:?}");
        }
        assert!(!format!("{:?}", "s3cret".parse::<Token>().unwrap()).contains("s3cret"));
    }
}
