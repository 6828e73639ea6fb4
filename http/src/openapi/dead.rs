use super::describe::{
    ANY, Answer, Body, CHANGES, CURSOR, Content, Description, Kind, Parameter, QUEUE, READS, STORE, Tag,
};
use crate::JobPage;
use crate::dead::{Purged, Requeued, Which};

pub(super) const LIST: Description = Description {
    tag: Tag::DeadLetters,
    summary: "List dead letters",
    text: "By the time of death, with their reasons: the jobs of a queue in the state `dead`.",
    parameters: &[
        QUEUE,
        Parameter::query(
            "count",
            Kind::Whole { least: 1, most: 256, default: Some(100) },
            "How many jobs a page has at most.",
        ),
        CURSOR,
    ],
    body: None,
    answers: &[Answer::json(200, "A page of dead letters.", &[Content::json::<JobPage>(PAGE)])],
    problems: &[ANY, STORE, &["bad_queue_name"]],
    example: &[("queue", "welcome"), ("count", "10")],
};

const PAGE: &str = r#"{"jobs":[{"id":"order:17","queue":"welcome","state":"dead","due":"2026-11-21T10:00:05.000Z","died":"2026-11-21T10:00:06.000Z","attempt":1,"max_attempts":10,"deliveries":1,"reason":"no such address","published":"2026-11-21T10:00:00.000Z","headers":{},"content_type":"application/json","encoding":"json","payload":{"to":"ann"}}],"cursor":null}"#;

const WHICH: Option<Body> = Some(Body {
    is_required: true,
    text: "These, at most 1,000, or all.",
    contents: &[Content::json::<Which>(r#"{"ids":["order:17"]}"#)],
});

pub(super) const REQUEUE: Description = Description {
    tag: Tag::DeadLetters,
    summary: "Requeue dead letters",
    text: "They are due at once, with all their attempts.",
    parameters: &[QUEUE],
    body: WHICH,
    answers: &[Answer::json(
        200,
        "They are due.",
        &[Content::json::<Requeued>(r#"{"requeued":1,"left":0}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, READS, &["bad_json", "bad_queue_name", "too_many_items"]],
    example: &[("queue", "welcome")],
};

pub(super) const PURGE: Description = Description {
    tag: Tag::DeadLetters,
    summary: "Purge dead letters",
    text: "They are removed for good.",
    parameters: &[QUEUE],
    body: WHICH,
    answers: &[Answer::json(
        200,
        "They are no more.",
        &[Content::json::<Purged>(r#"{"purged":1,"left":0}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, READS, &["bad_json", "bad_queue_name", "too_many_items"]],
    example: &[("queue", "welcome")],
};
