use super::describe::{
    ANY, Answer, Body, CHANGES, CURSOR, Content, Description, Form, ID, JSON, Kind, NO_BODY, Parameter,
    Place, QUEUE, READS, STORE, Shape, Tag,
};
use super::text::{BackoffText, Id, Moment, StateText};
use crate::batch::{NDJSON, Results};
use crate::changes::{Changes, Ids, Move};
use crate::edit::Named;
use crate::item::{Item, Outcome};
use crate::jobs::{Cancelled, Rescheduled};
use crate::publish::Told;
use crate::release::Released;
use crate::{JobPage, Kept};

const JOB: &[&str] = &["bad_queue_name", "bad_job_id"];
const DUE: &[&str] = &["bad_due", "delay_too_long"];
const NEW: &[&str] = &[
    "bad_attempts",
    "bad_backoff",
    "bad_header",
    "bad_job",
    "duplicate",
    "namespace_full",
    "options_in_body",
    "payload_too_large",
    "queue_full",
    "ttl_too_long",
    "ttl_too_short",
];

const DELAY: Parameter = Parameter::query(
    "delay",
    Kind::Span { least: "0s", most: "3660d", default: None },
    "How long until the job is due, counted from the call and rounded up; not with `at`. Without either it is due at once.",
);

pub(super) const PUBLISH: Description = Description {
    tag: Tag::Jobs,
    summary: "Publish a job",
    text: "The body is the payload, of any content type; options go into the query, or into headers `Delayline-<Option>`. \
               `Delayline-Header-<Name>` sets a header of the job. The attributes of a CloudEvent in binary mode (`ce-*`) \
               become headers of the job, one in structured mode is a payload like any other: both come out as they went in. \
               Without an id or an `Idempotency-Key` the id is drawn, and a publish whose outcome is unknown is answered 504: \
               a repeat could double the job.",
    parameters: &[
        QUEUE,
        DELAY,
        Parameter::query(
            "at",
            Kind::Of(Shape::of::<Moment>()),
            "When the job is due; at once if that is past.",
        ),
        Parameter::query("id", Kind::Of(Shape::of::<Id>()), "The id of the job; drawn unless said."),
        Parameter::query(
            "replace",
            Kind::Flag(false),
            "Take the place of a waiting job of this id, in one step.",
        ),
        Parameter::query(
            "attempts",
            Kind::Whole { least: 1, most: 999, default: None },
            "The most attempts; the queue's unless said.",
        ),
        Parameter::query(
            "backoff",
            Kind::Of(Shape::of::<BackoffText>()),
            "The delay before another attempt; the queue's unless said.",
        ),
        Parameter::query(
            "ttl",
            Kind::Span { least: "1ms", most: "3660d", default: None },
            "When the job expires, counted from the call; not shorter than the delay.",
        ),
        Parameter {
            name: "Idempotency-Key",
            place: Place::Header,
            text: "The id of the job, by which the publish may be repeated: a repeat is answered 200, not 409.",
            kind: Kind::Of(Shape::of::<Id>()),
        },
        Parameter::header(
            "traceparent",
            "The trace of the publish (W3C Trace Context); it goes with the job.",
        ),
        Parameter::header("tracestate", "What tracers add to `traceparent`, up to 512 bytes."),
    ],
    body: Some(Body {
        is_required: false,
        text: "The payload, up to `--max-payload` (1 MiB unless set). The content type is kept.",
        contents: &[
            Content { media_type: JSON, form: Form::Any, example: r#"{"to":"ann"}"# },
            Content { media_type: "*/*", form: Form::Bytes, example: "" },
        ],
    }),
    answers: &[
        Answer {
            status: 201,
            text: "The job is accepted.",
            headers: &[("Location", "Where the job can be looked at.")],
            contents: &[Content::json::<Told>(r#"{"id":"order:17","due":"2026-11-21T10:00:05.000Z"}"#)],
        },
        Answer::json(
            200,
            "A repeat by the same `Idempotency-Key`: the job was accepted before.",
            &[Content::json::<Told>(
                r#"{"id":"order:17","due":"2026-11-21T10:00:05.000Z","duplicate":true}"#,
            )],
        ),
    ],
    problems: &[ANY, STORE, CHANGES, READS, JOB, DUE, NEW, &["504 unknown"]],
    example: &[("queue", "welcome"), ("delay", "5s"), ("id", "order:17")],
};

pub(super) const PUBLISH_BATCH: Description = Description {
    tag: Tag::Jobs,
    summary: "Publish many jobs",
    text: "Each job succeeds or fails for itself, and has its outcome in its place. An array has at most 1,000 items and \
               16 MiB. Lines may go on for ever: each is answered by a line, meanwhile, so read while writing. \
               Repeat only items with an id: others could be there twice.",
    parameters: &[
        QUEUE,
        Parameter::header(
            "traceparent",
            "The trace of the publish (W3C Trace Context); it goes with each job.",
        ),
        Parameter::header("tracestate", "What tracers add to `traceparent`, up to 512 bytes."),
    ],
    body: Some(Body {
        is_required: true,
        text: "The jobs.",
        contents: &[
            Content {
                media_type: JSON,
                form: Form::Many(Shape::of::<Item>()),
                example: r#"[{"payload":{"to":"ann"},"id":"ann:1","delay":"5s"},{"payload":"hi","encoding":"text"}]"#,
            },
            Content {
                media_type: NDJSON,
                form: Form::Lines(Shape::of::<Item>()),
                example: "{\"payload\":{\"to\":\"bob\"},\"id\":\"bob:1\"}\n{\"payload\":{\"to\":\"eve\"}}\n",
            },
        ],
    }),
    answers: &[Answer {
        status: 200,
        text: "What became of each job: an array for an array, lines for lines.",
        headers: &[],
        contents: &[
            Content::json::<Results>(
                r#"{"results":[{"status":"created","id":"ann:1","due":"2026-11-21T10:00:05.000Z"},{"status":"created","id":"01JD3X7QG2M8ZK","due":"2026-11-21T10:00:00.000Z"}]}"#,
            ),
            Content {
                media_type: NDJSON,
                form: Form::Lines(Shape::of::<Outcome>()),
                example: "{\"status\":\"created\",\"id\":\"bob:1\",\"due\":\"2026-11-21T10:00:00.000Z\"}\n{\"status\":\"created\",\"id\":\"01JD3X7QG2M8ZM\",\"due\":\"2026-11-21T10:00:00.000Z\"}\n",
            },
        ],
    }],
    problems: &[
        ANY,
        STORE,
        CHANGES,
        READS,
        &["bad_content_type", "bad_json", "bad_queue_name", "too_many_items"],
        &["bad_item", "bad_payload", "outcomes_unread"],
        DUE,
        NEW,
        JOB,
    ],
    example: &[("queue", "welcome")],
};

pub(super) const INSPECT: Description = Description {
    tag: Tag::Jobs,
    summary: "Show a job",
    text: "Whatever its state; a job that was acked, cancelled or expired is gone.",
    parameters: &[QUEUE, ID],
    body: None,
    answers: &[Answer::json(200, "The job.", &[Content::json::<Kept>(KEPT)])],
    problems: &[ANY, STORE, JOB, &["no_such_job"]],
    example: &[("queue", "welcome"), ("id", "order:17")],
};

const KEPT: &str = r#"{"id":"order:17","queue":"welcome","state":"delayed","due":"2026-11-21T11:00:00.000Z","attempt":0,"max_attempts":null,"deliveries":0,"reason":null,"published":"2026-11-21T10:00:00.000Z","headers":{},"content_type":"application/json","encoding":"json","payload":{"to":"ann"}}"#;

pub(super) const CANCEL: Description = Description {
    tag: Tag::Jobs,
    summary: "Cancel a job",
    text: "Takes a waiting job away. One that a consumer holds, or that is dead, stays.",
    parameters: &[QUEUE, ID],
    body: None,
    answers: &[Answer::json(
        200,
        "The job is no more.",
        &[Content::json::<Cancelled>(r#"{"id":"order:17","status":"cancelled"}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, NO_BODY, JOB, &["no_such_job", "leased", "dead"]],
    example: &[("queue", "welcome"), ("id", "order:17")],
};

pub(super) const RELEASE: Description = Description {
    tag: Tag::Jobs,
    summary: "Take a job from its consumer",
    text: "Ends the lease of a job as if its consumer had given it back: the attempt is not spent. A consumer that is still at \
           work learns so by its verdict, which is `stale`.",
    parameters: &[
        QUEUE,
        ID,
        Parameter::query(
            "force",
            Kind::Flag(false),
            "Must be true: the consumer may still be at work, and the job may then run twice at once.",
        ),
    ],
    body: None,
    answers: &[Answer::json(
        200,
        "The job waits again.",
        &[Content::json::<Released>(r#"{"id":"order:17","status":"released"}"#)],
    )],
    problems: &[
        ANY,
        STORE,
        CHANGES,
        NO_BODY,
        JOB,
        &["no_such_job", "not_forced", "waiting", "dead", "stale", "unreadable"],
    ],
    example: &[("queue", "welcome"), ("id", "order:17"), ("force", "true")],
};

pub(super) const RESCHEDULE: Description = Description {
    tag: Tag::Jobs,
    summary: "Change a waiting job",
    text: "What is not named stays as it is, also the attempts that the job has had; null gives the default back (JSON Merge \
           Patch). A new due time alone is a rescheduling, all else an edit: it begins anew if the job changes meanwhile, \
           and brings back none that has ended. A job that a consumer holds, or that is dead, stays as it is.",
    parameters: &[QUEUE, ID],
    body: Some(Body {
        is_required: true,
        text: "What is to change; up to 16 MiB, of which headers take 64 KiB at most.",
        contents: &[
            Content::json::<Named<'static>>(r#"{"delay":"5m"}"#),
            Content::json::<Named<'static>>(
                r#"{"payload":{"to":"ann"},"attempts":20,"headers":{"tenant":"acme"}}"#,
            ),
        ],
    }),
    answers: &[Answer::json(
        200,
        "The job has moved.",
        &[Content::json::<Rescheduled>(r#"{"id":"order:17","due":"2026-11-21T10:05:00.000Z"}"#)],
    )],
    problems: &[
        ANY,
        STORE,
        CHANGES,
        READS,
        JOB,
        DUE,
        &["bad_attempts", "bad_backoff", "bad_job", "bad_payload", "ttl_too_long", "ttl_too_short"],
        &["payload_too_large", "queue_full"],
        &[
            "bad_json",
            "nothing_to_change",
            "no_such_job",
            "leased",
            "dead",
            "expires",
            "changed",
            "unreadable",
        ],
    ],
    example: &[("queue", "welcome"), ("id", "order:17")],
};

pub(super) const LIST: Description = Description {
    tag: Tag::Jobs,
    summary: "List the jobs in one state",
    text: "Ready and delayed jobs come by due time, leased ones by the end of their lease, dead ones by the time of death; \
               `after` and `before` are times of that kind. Large jobs make pages shorter. A cursor stays good while the \
               list changes.",
    parameters: &[
        QUEUE,
        Parameter {
            name: "state",
            place: Place::RequiredQuery,
            text: "Where the jobs are.",
            kind: Kind::Of(Shape::of::<StateText>()),
        },
        Parameter::query("after", Kind::Of(Shape::of::<Moment>()), "Leave out jobs before this time."),
        Parameter::query(
            "before",
            Kind::Of(Shape::of::<Moment>()),
            "Leave out jobs at this time and after it.",
        ),
        Parameter::query(
            "count",
            Kind::Whole { least: 1, most: 256, default: Some(100) },
            "How many jobs a page has at most.",
        ),
        CURSOR,
    ],
    body: None,
    answers: &[Answer::json(200, "A page of jobs.", &[Content::json::<JobPage>(PAGE)])],
    problems: &[ANY, STORE, &["bad_queue_name"]],
    example: &[("queue", "welcome"), ("state", "delayed"), ("count", "10")],
};

const PAGE: &str = r#"{"jobs":[{"id":"order:17","queue":"welcome","state":"delayed","due":"2026-11-21T11:00:00.000Z","attempt":0,"max_attempts":null,"deliveries":0,"reason":null,"published":"2026-11-21T10:00:00.000Z","headers":{},"content_type":"application/json","encoding":"json","payload":{"to":"ann"}}],"cursor":null}"#;

pub(super) const CANCEL_MANY: Description = Description {
    tag: Tag::Jobs,
    summary: "Cancel many jobs",
    text: "Each job is cancelled, or stays, for itself.",
    parameters: &[QUEUE],
    body: Some(Body {
        is_required: true,
        text: "The jobs, at most 1,000.",
        contents: &[Content::json::<Ids>(r#"{"ids":["order:17","order:18"]}"#)],
    }),
    answers: &[Answer::json(
        200,
        "What became of each job, in its place.",
        &[Content::json::<Changes>(
            r#"{"results":[{"status":"cancelled","id":"order:17"},{"status":"gone","id":"order:18"}]}"#,
        )],
    )],
    problems: &[ANY, STORE, CHANGES, READS, JOB, &["bad_item", "bad_json", "too_many_items"]],
    example: &[("queue", "welcome")],
};

pub(super) const RESCHEDULE_MANY: Description = Description {
    tag: Tag::Jobs,
    summary: "Reschedule many jobs",
    text: "Each job moves, or stays, for itself.",
    parameters: &[QUEUE],
    body: Some(Body {
        is_required: true,
        text: "The jobs, at most 1,000, and when each is to be due.",
        contents: &[Content {
            media_type: JSON,
            form: Form::Many(Shape::of::<Move>()),
            example: r#"[{"id":"order:17","delay":"5m"},{"id":"order:18","at":"2026-11-21T10:05:00Z"}]"#,
        }],
    }),
    answers: &[Answer::json(
        200,
        "What became of each job, in its place.",
        &[Content::json::<Changes>(
            r#"{"results":[{"status":"moved","id":"order:17","due":"2026-11-21T10:05:00.000Z"},{"status":"gone","id":"order:18"}]}"#,
        )],
    )],
    problems: &[ANY, STORE, CHANGES, READS, JOB, DUE, &["bad_item", "bad_json", "too_many_items"]],
    example: &[("queue", "welcome")],
};
