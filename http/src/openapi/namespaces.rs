// The types here are for the document only: what they describe is written and read by the service.
#![allow(dead_code)]

use utoipa::ToSchema;

use super::describe::{
    ANY, Answer, Body, CHANGES, Content, Description, Kind, NO_BODY, Parameter, Place, READS, STORE, Tag,
};
use crate::Sizes;

const NAMESPACE: Parameter =
    Parameter { name: "namespace", place: Place::Path, text: "The name of the namespace.", kind: Kind::Text };
const NAMED: &[&str] = &["bad_namespace", "no_such_namespace"];
const REGISTRY: &[&str] = &["entry_too_large", "registry_full"];

/// The namespaces that there are.
#[derive(ToSchema)]
struct NamespaceList {
    /// Those with a queue that the token is for.
    namespaces: Vec<NamespaceEntry>,
    /// Whether there are more queues than could be looked through.
    is_cut: bool,
}

/// A namespace, and how many queues it has.
#[derive(ToSchema)]
struct NamespaceEntry {
    /// Its name; empty for the default one.
    namespace: String,
    /// How many queues it has.
    queues: u64,
}

/// What a namespace holds, and may hold.
#[derive(ToSchema)]
#[expect(clippy::struct_field_names, reason = "they are the words of the answer")]
struct Namespace {
    /// Its name.
    namespace: String,
    /// How many queues it has.
    queues: u64,
    /// How many jobs they hold together.
    sizes: Sizes,
    /// How many bytes their records take, estimated by their mean length.
    bytes: u64,
    /// How much it may hold.
    ceilings: Ceilings,
}

/// How much a namespace may hold; what is not set is not limited.
#[derive(ToSchema)]
#[expect(clippy::struct_field_names, reason = "they are the words of the answer")]
struct Ceilings {
    /// The most queues.
    max_queues: Option<u64>,
    /// The most jobs, dead letters included.
    max_jobs: Option<u64>,
    /// The most bytes of records.
    max_bytes: Option<u64>,
}

/// The ceilings of a namespace.
#[derive(ToSchema)]
struct NamespaceCeilings {
    /// The name of the namespace.
    namespace: String,
    /// How much it may hold now.
    ceilings: Ceilings,
}

pub(super) const LIST: Description = Description {
    tag: Tag::Namespaces,
    summary: "List namespaces",
    text: "The namespaces with a queue that the token is for; the default one has no name.",
    parameters: &[],
    body: None,
    answers: &[Answer::json(
        200,
        "All namespaces.",
        &[Content::json::<NamespaceList>(
            r#"{"namespaces":[{"namespace":"shop","queues":1}],"is_cut":false}"#,
        )],
    )],
    problems: &[ANY, STORE],
    example: &[],
};

pub(super) const SHOW: Description = Description {
    tag: Tag::Namespaces,
    summary: "Show a namespace",
    text: "What its queues hold together, and how much they may. Every queue of it is counted, a round trip each.",
    parameters: &[NAMESPACE],
    body: None,
    answers: &[Answer::json(200, "The namespace.", &[Content::json::<Namespace>(SHOWN)])],
    problems: &[ANY, STORE, NAMED],
    example: &[("namespace", "shop")],
};

const SHOWN: &str = r#"{"namespace":"shop","queues":1,"sizes":{"ready":1,"delayed":0,"leased":0,"dead":0},"bytes":64,"ceilings":{}}"#;

pub(super) const LIMIT: Description = Description {
    tag: Tag::Namespaces,
    summary: "Limit a namespace",
    text: "Replaces its ceilings. Publishes that would go beyond are answered 429.",
    parameters: &[NAMESPACE],
    body: Some(Body {
        is_required: true,
        text: "At least one ceiling.",
        contents: &[Content::json::<Ceilings>(r#"{"max_queues":100,"max_jobs":1000000}"#)],
    }),
    answers: &[Answer::json(
        200,
        "The ceilings are in force.",
        &[Content::json::<NamespaceCeilings>(
            r#"{"namespace":"shop","ceilings":{"max_queues":100,"max_jobs":1000000}}"#,
        )],
    )],
    problems: &[ANY, STORE, CHANGES, READS, NAMED, REGISTRY, &["bad_json"]],
    example: &[("namespace", "shop")],
};

pub(super) const UNLIMIT: Description = Description {
    tag: Tag::Namespaces,
    summary: "Remove the ceilings of a namespace",
    text: "It may then hold what each of its queues may.",
    parameters: &[NAMESPACE],
    body: None,
    answers: &[Answer::json(
        200,
        "There are no ceilings.",
        &[Content::json::<NamespaceCeilings>(r#"{"namespace":"shop","ceilings":{}}"#)],
    )],
    problems: &[ANY, STORE, CHANGES, NO_BODY, NAMED],
    example: &[("namespace", "shop")],
};
