// The types here are for the document only: what they describe is written and read by the service.
#![allow(dead_code)]

use utoipa::ToSchema;

use super::describe::{
    ANY, Answer, Body, CHANGES, Content, Description, Kind, NO_BODY, Parameter, Place, READS, STORE, Tag,
};
use super::text::{Duration, Moment, ScopeText};

const TOKEN: Parameter =
    Parameter { name: "token", place: Place::Path, text: "The id of the token.", kind: Kind::Text };
const REGISTRY: &[&str] = &["entry_too_large", "registry_full"];

/// The tokens that there are.
#[derive(ToSchema)]
struct TokenList {
    /// All of them, without their secrets.
    tokens: Vec<Token>,
}

/// A token, without its secret.
#[derive(ToSchema)]
struct Token {
    /// By which it is shown in logs.
    id: String,
    /// What it is for.
    scopes: Vec<ScopeText>,
    /// Patterns of the queues that it is for, in which `*` stands for any characters; none for all queues.
    queues: Vec<String>,
    /// What it was described as.
    description: String,
    /// When it was made.
    created: Moment,
    /// When it expires; `null` if it does not.
    #[schema(required)]
    expires: Option<Moment>,
    /// When it was last used, to about a minute; `null` if it was not.
    #[schema(required)]
    last_used: Option<Moment>,
    /// How much it may ask for.
    limits: TokenLimits,
}

/// How much a token may ask for of each process of the service; what is not set is not limited.
#[derive(ToSchema)]
struct TokenLimits {
    /// Requests, as in `100/s burst 200`.
    requests: Option<String>,
    /// Bytes of bodies, as in `1000000/s`.
    bytes: Option<String>,
    /// Requests at once.
    at_once: Option<u64>,
    /// Takes that wait at once.
    takes: Option<u64>,
}

/// A token that is wanted.
#[derive(ToSchema)]
struct NewToken {
    /// What it is for; at least one.
    #[schema(min_items = 1)]
    scopes: Vec<ScopeText>,
    /// Patterns of the queues that it is for, in which `*` stands for any characters, at most 64; none for all queues.
    #[schema(required = false, max_items = 64)]
    queues: Vec<String>,
    /// What it is for, in words; at most 256 characters.
    #[schema(max_length = 256)]
    description: Option<String>,
    /// How long it lives; not with `expires`.
    expires_in: Option<Duration>,
    /// When it expires; not with `expires_in`.
    expires: Option<Moment>,
    /// How much it may ask for.
    limits: Option<TokenLimits>,
}

/// A token with its secret, which is shown this once.
#[derive(ToSchema)]
struct MadeToken {
    /// By which it is shown in logs.
    id: String,
    /// What requests carry: `dl_<id>_<secret>`.
    token: String,
}

/// A token that is no more.
#[derive(ToSchema)]
struct RevokedToken {
    /// Its id.
    id: String,
    /// Always `revoked`.
    status: String,
}

const MADE: &str = r#"{"id":"0123456789abcdef","token":"dl_0123456789abcdef_0000000000000000000000000000000000000000000000000000000000000000"}"#;

pub(super) const LIST: Description = Description {
    tag: Tag::Tokens,
    summary: "List tokens",
    text: "All of them, without their secrets.",
    parameters: &[],
    body: None,
    answers: &[Answer::json(200, "All tokens.", &[Content::json::<TokenList>(TOKENS)])],
    problems: &[ANY, STORE],
    example: &[],
};

const TOKENS: &str = r#"{"tokens":[{"id":"0123456789abcdef","scopes":["admin"],"queues":[],"description":"deployment","created":"2026-11-21T10:00:00.000Z","expires":"2027-02-19T10:00:00.000Z","last_used":null,"limits":{}}]}"#;

pub(super) const CREATE: Description = Description {
    tag: Tag::Tokens,
    summary: "Make a token",
    text: "Its secret is shown this once: only a hash is kept. From the first token on, every route needs one.",
    parameters: &[],
    body: Some(Body {
        is_required: true,
        text: "What the token is to be for.",
        contents: &[Content::json::<NewToken>(
            r#"{"scopes":["publish"],"queues":["shop~*"],"expires_in":"90d","description":"the shop"}"#,
        )],
    }),
    answers: &[Answer::json(201, "The token.", &[Content::json::<MadeToken>(MADE)])],
    problems: &[ANY, STORE, CHANGES, READS, REGISTRY, &["bad_json", "bad_token"]],
    example: &[],
};

pub(super) const ROTATE: Description = Description {
    tag: Tag::Tokens,
    summary: "Rotate a token",
    text: "Makes one that is for the same; the old one lives on for a while, so that whoever has it can be given the new one.",
    parameters: &[
        TOKEN,
        Parameter::query(
            "overlap",
            Kind::Span { least: "0s", most: "30d", default: Some("1d") },
            "How long the old token lives on.",
        ),
    ],
    body: None,
    answers: &[Answer::json(201, "The new token.", &[Content::json::<MadeToken>(MADE)])],
    problems: &[ANY, STORE, CHANGES, NO_BODY, REGISTRY, &["no_such_token"]],
    example: &[("token", "0123456789abcdef"), ("overlap", "1h")],
};

pub(super) const REVOKE: Description = Description {
    tag: Tag::Tokens,
    summary: "Revoke a token",
    text: "No instance takes it 5 seconds later.",
    parameters: &[TOKEN],
    body: None,
    answers: &[Answer::json(
        200,
        "The token is no more.",
        &[Content::json::<RevokedToken>(r#"{"id":"0123456789abcdef","status":"revoked"}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, NO_BODY, &["no_such_token"]],
    example: &[("token", "0123456789abcdef")],
};
