//! What is text in JSON and in queries, and yet not any text.

use std::borrow::Cow;

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::CODES;
use crate::Scope;

/// Declares a type of text: its name in the document, what it is, and an example.
macro_rules! text {
    ($type:ident, $name:literal, $text:literal, $example:literal, $with:expr) => {
        pub(crate) struct $type;

        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                let with: fn(ObjectBuilder) -> ObjectBuilder = $with;
                let text = ObjectBuilder::new().schema_type(Type::String).description(Some($text));
                with(text).examples([Value::from($example)]).into()
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    };
}

text!(
    Id,
    "JobId",
    "The name of a job in its queue: 1 to 128 of letters, digits and `. _ - ~ : @ + = , ! * ( )`.",
    "order:17",
    |text| text.pattern(Some("^[A-Za-z0-9._~:@+=,!*()-]{1,128}$"))
);

text!(
    Name,
    "QueueName",
    "The name of a queue, alone or as `namespace~queue`: each part is 1 to 255 of letters, digits, `.`, `_` and `-`.",
    "welcome",
    |text| text.pattern(Some("^([A-Za-z0-9._-]{1,255}~)?[A-Za-z0-9._-]{1,255}$"))
);

text!(
    Duration,
    "Duration",
    "Whole numbers, each with one of the units `w d h m s ms`, the larger unit first; at most 10 years.",
    "1h30m",
    |text| text
        .pattern(Some("^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"))
        .min_length(Some(2))
);

text!(
    Moment,
    "Time",
    "A time as RFC 3339 has it; answered in UTC with milliseconds. In a query, a `+` is written `%2B`.",
    "2026-11-21T10:00:05.000Z",
    |text| text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
);

text!(
    BackoffText,
    "Backoff",
    "The delay before another attempt: `none`, `fixed 5s`, `exponential 1s..1h jitter 10%`, or a ladder of durations.",
    "15s 3m 10m 30m",
    |text| text
);

text!(
    LeaseText,
    "Lease",
    "The right to end one delivery, from whichever process: opaque.",
    "MSB3ZWxjb21lIDE3NjM3MDAwMDAwMDAxMjMgMTUwMDAgb3JkZXI6MTc",
    |text| text.pattern(Some("^[A-Za-z0-9_-]+$"))
);

text!(
    CursorText,
    "Cursor",
    "Where a page of a list ends: opaque. It stays good while the list changes.",
    "aiAxNzYzNzAwMDAwNTAwIG9yZGVyOjE3",
    |text| text.pattern(Some("^[A-Za-z0-9_-]+$"))
);

text!(
    ForwardText,
    "Forward",
    "A list or stream of the same Redis into which due jobs are moved.",
    "list:work",
    |text| text.pattern(Some("^(list|stream):."))
);

text!(
    Code,
    "ProblemCode",
    "What kind of problem it is, for programs: a code never changes its meaning.",
    "no_such_job",
    |text| { text.enum_values(Some(CODES.iter().map(|known| known.code))) }
);

text!(StateText, "JobState", "Where a job is.", "delayed", |text| {
    text.enum_values(Some(["ready", "delayed", "leased", "dead"]))
});

text!(PublishStatus, "PublishStatus", "What became of a job of a batch.", "created", |text| {
    text.enum_values(Some(["created", "duplicate", "error"]))
});

text!(
    ChangeStatus,
    "ChangeStatus",
    "What became of a job that was to be cancelled or rescheduled.",
    "moved",
    |text| { text.enum_values(Some(["cancelled", "moved", "leased", "dead", "gone", "expires", "error"])) }
);

text!(SettleStatus, "SettleStatus", "How a delivery has ended.", "ok", |text| {
    text.enum_values(Some(["ok", "repeat", "dead", "expired"]))
});

text!(SettleManyStatus, "SettleManyStatus", "What became of one of many verdicts.", "ok", |text| {
    text.enum_values(Some(["ok", "repeat", "dead", "expired", "stale", "gone", "error"]))
});

text!(ScopeText, "Scope", "What a token is for.", "publish", |text| {
    text.enum_values(Some(Scope::ALL.map(Scope::as_str)))
});
