use super::describe::{
    ANY, Answer, Body, CHANGES, CURSOR, Content, Description, Kind, NO_BODY, Parameter, QUEUE, READS, STORE,
    Tag,
};
use crate::queue::{Configured, Destroyed, Paused};
use crate::{Document, Names, Queue};

const NAMED: &[&str] = &["bad_queue_name", "no_such_queue"];
const ETAG: (&str, &str) = ("ETag", "The version of the config, for `If-Match` and `If-None-Match`.");

pub(super) const LIST: Description = Description {
    tag: Tag::Queues,
    summary: "List queues",
    text: "Names, in no order. A page can have more or fewer of them than asked for, or none, and yet a cursor: the last page \
               is the one without. Sizes cost a round trip to Redis for each queue.",
    parameters: &[
        Parameter::query(
            "namespace",
            Kind::Text,
            "Only the queues of this namespace; if empty, those without one.",
        ),
        Parameter::query("sizes", Kind::Flag(false), "Count the jobs of each queue too."),
        Parameter::query(
            "count",
            Kind::Whole { least: 1, most: 1_000, default: Some(100) },
            "How many names, about.",
        ),
        CURSOR,
    ],
    body: None,
    answers: &[Answer::json(200, "A page of queues.", &[Content::json::<Names>(NAMES)])],
    problems: &[ANY, STORE, &["bad_namespace"]],
    example: &[("sizes", "true")],
};

const NAMES: &str =
    r#"{"queues":["welcome"],"sizes":{"welcome":{"ready":1,"delayed":0,"leased":0,"dead":0}},"cursor":null}"#;

pub(super) const SHOW: Description = Description {
    tag: Tag::Queues,
    summary: "Show a queue",
    text: "Its sizes, counters and config, and when its delayed jobs come due. It has no `ETag`: its config has.",
    parameters: &[
        QUEUE,
        Parameter::query(
            "hours",
            Kind::Whole { least: 0, most: 48, default: Some(24) },
            "Of how many hours from now delayed jobs are counted.",
        ),
    ],
    body: None,
    answers: &[Answer::json(200, "The queue.", &[Content::json::<Queue>(SHOWN)])],
    problems: &[ANY, STORE, NAMED],
    example: &[("queue", "welcome"), ("hours", "3")],
};

const SHOWN: &str = r#"{"queue":"welcome","paused":false,"sizes":{"ready":1,"delayed":0,"leased":0,"dead":0},"oldest_due":"2026-11-21T10:00:05.000Z","delayed_by_hour":[0,0,0],"counters":{"published":1},"mean_bytes":64,"cfgver":0,"config":{"bury_expired":false}}"#;

pub(super) const DESTROY: Description = Description {
    tag: Tag::Queues,
    summary: "Destroy a queue",
    text: "With all jobs that it holds, at once and for good.",
    parameters: &[QUEUE],
    body: None,
    answers: &[Answer::json(
        200,
        "The queue is no more.",
        &[Content::json::<Destroyed>(r#"{"queue":"welcome","destroyed":{"waiting":1,"leased":0,"dead":0}}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, NO_BODY, NAMED],
    example: &[("queue", "welcome")],
};

pub(super) const SHOW_CONFIG: Description = Description {
    tag: Tag::Queues,
    summary: "Show the config of a queue",
    text: "What the config leaves out has its default.",
    parameters: &[
        QUEUE,
        Parameter::header("If-None-Match", "The `ETag` of a config that is known: it is not sent again."),
    ],
    body: None,
    answers: &[
        Answer {
            status: 200,
            text: "The config.",
            headers: &[ETAG],
            contents: &[Content::json::<Configured>(CONFIG)],
        },
        Answer { status: 304, text: "The config is the known one.", headers: &[ETAG], contents: &[] },
    ],
    problems: &[ANY, STORE, NAMED, &["bad_header"]],
    example: &[("queue", "welcome")],
};

const CONFIG: &str = r#"{"cfgver":1,"config":{"attempts":5,"backoff":"15s 3m 10m","bury_expired":false}}"#;

const IN_FORCE: Answer = Answer {
    status: 200,
    text: "The config is in force.",
    headers: &[ETAG],
    contents: &[Content::json::<Configured>(CONFIG)],
};

pub(super) const CONFIGURE: Description = Description {
    tag: Tag::Queues,
    summary: "Replace the config of a queue",
    text: "Makes the queue if there is none. What is left out has its default.",
    parameters: &[
        QUEUE,
        Parameter::header(
            "If-Match",
            "The `ETag` of the config that is to be replaced: if it is another, nothing changes.",
        ),
    ],
    body: Some(Body {
        is_required: true,
        text: "The whole config, up to 64 KiB.",
        contents: &[Content::json::<Document>(r#"{"attempts":5,"backoff":"15s 3m 10m"}"#)],
    }),
    answers: &[IN_FORCE],
    problems: &[
        ANY,
        STORE,
        CHANGES,
        READS,
        &["bad_attempts", "bad_backoff", "bad_config", "bad_header", "bad_queue_name", "too_long"],
        &["config_conflict", "forward_needs_redis", "forward_not_allowed"],
    ],
    example: &[("queue", "welcome")],
};

pub(super) const PATCH_CONFIG: Description = Description {
    tag: Tag::Queues,
    summary: "Change some of the config of a queue",
    text: "Changes the fields that the body names, as JSON Merge Patch (RFC 7396) has it: null sets the default.",
    parameters: &[
        QUEUE,
        Parameter::header(
            "If-Match",
            "The `ETag` of the config that is to be changed: if it is another, nothing changes.",
        ),
    ],
    body: Some(Body {
        is_required: true,
        text: "The fields to change, up to 64 KiB.",
        contents: &[Content::json::<Document>(r#"{"attempts":5,"backoff":"15s 3m 10m"}"#)],
    }),
    answers: &[IN_FORCE],
    problems: &[
        ANY,
        STORE,
        CHANGES,
        READS,
        &["bad_attempts", "bad_backoff", "bad_config", "bad_header", "bad_queue_name", "too_long"],
        &["config_conflict", "no_such_queue", "forward_needs_redis", "forward_not_allowed"],
    ],
    example: &[("queue", "welcome")],
};

const PAUSED: &str = r#"{"paused":true,"cfgver":1}"#;
const RESUMED: &str = r#"{"paused":false,"cfgver":1}"#;

pub(super) const PAUSE: Description = Description {
    tag: Tag::Queues,
    summary: "Pause a queue",
    text: "It delivers nothing until it is resumed; what is held goes on, and publishing too.",
    parameters: &[QUEUE, Parameter::query("create", Kind::Flag(false), "Make the queue if there is none.")],
    body: None,
    answers: &[Answer {
        status: 200,
        text: "The queue is paused.",
        headers: &[ETAG],
        contents: &[Content::json::<Paused>(PAUSED)],
    }],
    problems: &[ANY, STORE, CHANGES, NO_BODY, NAMED],
    example: &[("queue", "welcome")],
};

pub(super) const RESUME: Description = Description {
    tag: Tag::Queues,
    summary: "Resume a queue",
    text: "Ends a pause.",
    parameters: &[QUEUE],
    body: None,
    answers: &[Answer {
        status: 200,
        text: "The queue is not paused.",
        headers: &[ETAG],
        contents: &[Content::json::<Paused>(RESUMED)],
    }],
    problems: &[ANY, STORE, CHANGES, NO_BODY, NAMED],
    example: &[("queue", "welcome")],
};
