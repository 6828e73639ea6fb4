use super::describe::{
    ANY, Answer, Body, CHANGES, Content, Description, Form, JSON, Kind, LEASE, NO_BODY, Parameter, Place,
    READS, STORE, Shape, Tag,
};
use super::text::Name;
use crate::Delivered;
use crate::settlement::{Extended, Item, Results, Settled, Terms};

const LEASES: &[&str] = &["bad_lease", "gone", "settled", "stale"];
const OK: &[Answer] =
    &[Answer::json(200, "The delivery has ended.", &[Content::json::<Settled>(r#"{"status":"ok"}"#)])];
const BURIED: &[Answer] =
    &[Answer::json(200, "The job is a dead letter.", &[Content::json::<Settled>(r#"{"status":"dead"}"#)])];
const LENGTH: Kind = Kind::Span { least: "1s", most: "1d", default: Some("30s") };
const DELAY: Kind = Kind::Span { least: "0s", most: "3660d", default: None };
const REASON: &str = "Why, cut to 1 KiB; better in the body, since URLs are logged.";

pub(super) const TAKE: Description = Description {
    tag: Tag::Deliveries,
    summary: "Take due jobs",
    text: "The queues are asked in their order; the first that has due jobs answers, alone. With `wait`, the request lasts \
               until there are some, or the time is over. A delivery ends by a verdict on its lease; without one the job is \
               due again when the lease ends. Jobs of an answer that cannot be written are given back at once.",
    parameters: &[
        Parameter {
            name: "queue",
            place: Place::ManyInQuery,
            text: "Where from: at least one queue, and at most 64.",
            kind: Kind::Of(Shape::of::<Name>()),
        },
        Parameter::query(
            "count",
            Kind::Whole { least: 1, most: 256, default: Some(1) },
            "How many jobs at most.",
        ),
        Parameter::query(
            "wait",
            Kind::Span { least: "0s", most: "5m", default: Some("0s") },
            "How long to wait for a job.",
        ),
        Parameter::query("lease", LENGTH, "How long the leases last."),
    ],
    body: None,
    answers: &[
        Answer::json(200, "At least one job.", &[Content::json::<Delivered>(TAKEN)]),
        Answer::empty(204, "There are no due jobs."),
    ],
    problems: &[ANY, STORE, CHANGES, NO_BODY, &["bad_queue_name", "no_such_queue", "too_many_takes"]],
    example: &[("queue", "welcome"), ("count", "10"), ("wait", "30s")],
};

const TAKEN: &str = r#"{"jobs":[{"id":"order:17","queue":"welcome","lease":"MSB3ZWxjb21lIDE3NjM3MDAwMDAwMDAxMjMgMTUwMDAgb3JkZXI6MTc","lease_ends":"2026-11-21T10:00:35.000Z","attempt":1,"max_attempts":10,"due":"2026-11-21T10:00:05.000Z","published":"2026-11-21T10:00:00.000Z","headers":{},"content_type":"application/json","encoding":"json","payload":{"to":"ann"}}]}"#;

pub(super) const SETTLE_MANY: Description = Description {
    tag: Tag::Deliveries,
    summary: "Settle many deliveries",
    text: "Each verdict is carried out, or not, for itself.",
    parameters: &[],
    body: Some(Body {
        is_required: true,
        text: "The verdicts, at most 1,000.",
        contents: &[Content {
            media_type: JSON,
            form: Form::Many(Shape::of::<Item>()),
            example: r#"[{"lease":"MSB3ZWxjb21lIDE3NjM3MDAwMDAwMDAxMjMgMTUwMDAgb3JkZXI6MTc","verdict":"ack"}]"#,
        }],
    }),
    answers: &[Answer::json(
        200,
        "What became of each verdict, in its place.",
        &[Content::json::<Results>(r#"{"results":[{"status":"ok"}]}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, READS, LEASES, &["bad_item", "bad_json", "too_long", "too_many_items"]],
    example: &[],
};

pub(super) const ACK: Description = Description {
    tag: Tag::Deliveries,
    summary: "Ack: the job is done",
    text: "Repeating it is harmless.",
    parameters: &[LEASE],
    body: None,
    answers: OK,
    problems: &[ANY, STORE, CHANGES, NO_BODY, LEASES],
    example: &[("lease", EXAMPLE)],
};

const EXAMPLE: &str = "MSB3ZWxjb21lIDE3NjM3MDAwMDAwMDAxMjMgMTUwMDAgb3JkZXI6MTc";

pub(super) const NACK: Description = Description {
    tag: Tag::Deliveries,
    summary: "Nack: the attempt failed",
    text: "The job is due again after its backoff, or after `delay`; after its last attempt it is a dead letter.",
    parameters: &[
        LEASE,
        Parameter::query("delay", DELAY, "How long until the next attempt; its backoff decides unless said."),
        Parameter::query("reason", Kind::Text, REASON),
    ],
    body: Some(Body {
        is_required: false,
        text: "The delay and the reason, instead of those in the query; up to 64 KiB.",
        contents: &[Content::json::<Terms>(r#"{"reason":"connection refused","delay":"1m"}"#)],
    }),
    answers: OK,
    problems: &[ANY, STORE, CHANGES, READS, LEASES, &["bad_item", "bad_json", "too_long"]],
    example: &[("lease", EXAMPLE)],
};

pub(super) const SNOOZE: Description = Description {
    tag: Tag::Deliveries,
    summary: "Snooze: later, without spending the attempt",
    text: "The delay is needed, in the query or in the body.",
    parameters: &[LEASE, Parameter::query("delay", DELAY, "How long until the job is due again.")],
    body: Some(Body {
        is_required: false,
        text: "The delay, instead of that in the query.",
        contents: &[Content::json::<Terms>(r#"{"delay":"10m"}"#)],
    }),
    answers: OK,
    problems: &[ANY, STORE, CHANGES, READS, LEASES, &["bad_item", "bad_json", "too_long"]],
    example: &[("lease", EXAMPLE)],
};

pub(super) const RELEASE: Description = Description {
    tag: Tag::Deliveries,
    summary: "Release: as if never delivered",
    text: "The job is due at once, and the attempt is not spent.",
    parameters: &[LEASE],
    body: None,
    answers: OK,
    problems: &[ANY, STORE, CHANGES, NO_BODY, LEASES],
    example: &[("lease", EXAMPLE)],
};

pub(super) const BURY: Description = Description {
    tag: Tag::Deliveries,
    summary: "Bury: dead at once",
    text: "The job is a dead letter, whatever its attempts.",
    parameters: &[LEASE, Parameter::query("reason", Kind::Text, REASON)],
    body: Some(Body {
        is_required: false,
        text: "The reason, instead of that in the query; up to 64 KiB.",
        contents: &[Content::json::<Terms>(r#"{"reason":"no such address"}"#)],
    }),
    answers: BURIED,
    problems: &[ANY, STORE, CHANGES, READS, LEASES, &["bad_item", "bad_json"]],
    example: &[("lease", EXAMPLE)],
};

pub(super) const EXTEND: Description = Description {
    tag: Tag::Deliveries,
    summary: "Extend a lease",
    text: "The lease lasts so long from now, even if that is shorter than before.",
    parameters: &[LEASE, Parameter::query("lease", LENGTH, "How long the lease lasts from now.")],
    body: None,
    answers: &[Answer::json(
        200,
        "The lease lasts longer.",
        &[Content::json::<Extended>(r#"{"status":"ok","lease_ends":"2026-11-21T10:01:35.000Z"}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, NO_BODY, LEASES],
    example: &[("lease", EXAMPLE)],
};
