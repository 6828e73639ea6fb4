//! The vocabulary in which routes are described.

use std::borrow::Cow;

use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::text::{CursorText, Id, LeaseText, Name};

/// What a route is for, takes and answers.
pub(super) struct Description {
    pub(super) tag: Tag,
    pub(super) summary: &'static str,
    pub(super) text: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) body: Option<Body>,
    /// The first is that of the example.
    pub(super) answers: &'static [Answer],
    /// Codes in sets, as several routes share them.
    pub(super) problems: &'static [&'static [&'static str]],
    /// The parameters that the example has, with their values.
    pub(super) example: &'static [(&'static str, &'static str)],
}

/// Of what a route is one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Jobs,
    Deliveries,
    Queues,
    DeadLetters,
    Namespaces,
    Tokens,
    Process,
}

/// A part of the path, an option of the query, or a header.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) text: &'static str,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    /// In the query, and the request makes no sense without it.
    RequiredQuery,
    /// In the query, as often as wanted, and at least once.
    ManyInQuery,
    Header,
}

/// What a parameter can be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag(bool),
    Whole {
        least: u16,
        most: u16,
        default: Option<u16>,
    },
    /// A duration within limits.
    Span {
        least: &'static str,
        most: &'static str,
        default: Option<&'static str>,
    },
    Of(Shape),
}

/// A body that is read.
pub(super) struct Body {
    pub(super) is_required: bool,
    pub(super) text: &'static str,
    pub(super) contents: &'static [Content],
}

/// A body as one media type.
pub(super) struct Content {
    pub(super) media_type: &'static str,
    pub(super) form: Form,
    /// As it is sent; none if empty.
    pub(super) example: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Bytes, which nobody looks into.
    Bytes,
    /// Any JSON.
    Any,
    Text,
    /// One of these.
    One(Shape),
    /// An array of these, of at most a thousand.
    Many(Shape),
    /// A line of JSON for each of these.
    Lines(Shape),
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) contents: &'static [Content],
}

/// A type as JSON.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) name: fn() -> Cow<'static, str>,
    pub(super) schema: fn() -> RefOr<Schema>,
    /// Those that it is made of.
    pub(super) parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shape {
    pub(super) const fn of<T: ToSchema>() -> Shape {
        Shape { name: T::name, schema: T::schema, parts: T::schemas }
    }
}

impl Tag {
    pub(super) const ALL: [Tag; 7] = [
        Tag::Jobs,
        Tag::Deliveries,
        Tag::Queues,
        Tag::DeadLetters,
        Tag::Namespaces,
        Tag::Tokens,
        Tag::Process,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tag::Jobs => "Jobs",
            Tag::Deliveries => "Deliveries",
            Tag::Queues => "Queues",
            Tag::DeadLetters => "Dead letters",
            Tag::Namespaces => "Namespaces",
            Tag::Tokens => "Tokens",
            Tag::Process => "The process",
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Tag::Jobs => "Publishing, and what may be done to jobs that wait.",
            Tag::Deliveries => "Taking due jobs, and ending or extending their leases.",
            Tag::Queues => "Queues, which their first job makes, and how they treat jobs.",
            Tag::DeadLetters => "Jobs that were buried or whose attempts are used up.",
            Tag::Namespaces => "Sets of queues, which a token can be for and which can be limited together.",
            Tag::Tokens => "Who may do what. The scope `admin` is needed, for all queues.",
            Tag::Process => "Whether the service works, what it measures, and this document.",
        }
    }
}

impl Parameter {
    #[cfg(test)]
    pub(super) fn is_in_path(&self) -> bool {
        self.place == Place::Path
    }

    pub(super) const fn query(name: &'static str, kind: Kind, text: &'static str) -> Parameter {
        Parameter { name, place: Place::Query, text, kind }
    }

    pub(super) const fn header(name: &'static str, text: &'static str) -> Parameter {
        Parameter { name, place: Place::Header, text, kind: Kind::Text }
    }
}

impl Answer {
    /// An answer in JSON.
    pub(super) const fn json(status: u16, text: &'static str, contents: &'static [Content]) -> Answer {
        Answer { status, text, headers: &[], contents }
    }

    pub(super) const fn empty(status: u16, text: &'static str) -> Answer {
        Answer { status, text, headers: &[], contents: &[] }
    }
}

impl Content {
    pub(super) const fn json<T: ToSchema>(example: &'static str) -> Content {
        Content { media_type: JSON, form: Form::One(Shape::of::<T>()), example }
    }
}

pub(super) const JSON: &str = "application/json";

pub(super) const QUEUE: Parameter = Parameter {
    name: "queue",
    place: Place::Path,
    text: "The name of the queue, alone or as `namespace~queue`.",
    kind: Kind::Of(Shape::of::<Name>()),
};

pub(super) const ID: Parameter = Parameter {
    name: "id",
    place: Place::Path,
    text: "The id of the job.",
    kind: Kind::Of(Shape::of::<Id>()),
};

pub(super) const LEASE: Parameter = Parameter {
    name: "lease",
    place: Place::Path,
    text: "The lease, as the job was delivered with it.",
    kind: Kind::Of(Shape::of::<LeaseText>()),
};

pub(super) const CURSOR: Parameter = Parameter::query(
    "cursor",
    Kind::Of(Shape::of::<CursorText>()),
    "Where to go on; none for the first page.",
);

/// What any route below `/v1` may answer.
pub(super) const ANY: &[&str] = &[
    "bad_host",
    "bad_option",
    "bad_path",
    "too_many_connections",
    "too_many_connections_of_client",
    "unknown_option",
    "wrong_host",
];
/// What a route that asks the store may answer.
pub(super) const STORE: &[&str] =
    &["broken", "busy", "denied", "gated", "not_sent", "refused", "shutting_down", "unknown", "wrong_shards"];
/// What a route that changes something may answer.
pub(super) const CHANGES: &[&str] = &["cross_site"];
/// What a route that reads a body may answer.
pub(super) const READS: &[&str] = &["bad_body", "body_timeout", "body_too_large", "busy"];
/// What a route that reads no body may answer.
pub(super) const NO_BODY: &[&str] = &["unexpected_body"];
