use super::describe::{Answer, Content, Description, Form, JSON, Tag};

const HEAD: &[&str] = &["bad_host", "too_many_connections", "too_many_connections_of_client", "wrong_host"];
const PLAIN: &str = "text/plain; charset=utf-8";

pub(super) const HEALTH: Description = Description {
    tag: Tag::Process,
    summary: "Whether the process can do its work",
    text: "A supervisor restarts it if not.",
    parameters: &[],
    body: None,
    answers: &[Answer::json(
        200,
        "It can.",
        &[Content { media_type: PLAIN, form: Form::Text, example: "ok\n" }],
    )],
    problems: &[HEAD, &["shutting_down"]],
    example: &[],
};

pub(super) const READY: Description = Description {
    tag: Tag::Process,
    summary: "Whether requests should come here",
    text: "Redis answers, and the service is not shutting down.",
    parameters: &[],
    body: None,
    answers: &[Answer::json(
        200,
        "They should.",
        &[Content { media_type: PLAIN, form: Form::Text, example: "ok\n" }],
    )],
    problems: &[HEAD, super::describe::STORE],
    example: &[],
};

pub(super) const METRICS: Description = Description {
    tag: Tag::Process,
    summary: "Metrics for Prometheus",
    text: "What they mean is in docs/metrics.md.",
    parameters: &[],
    body: None,
    answers: &[Answer::json(
        200,
        "All metrics.",
        &[Content { media_type: "text/plain; version=0.0.4; charset=utf-8", form: Form::Text, example: "" }],
    )],
    problems: &[HEAD],
    example: &[],
};

pub(super) const OPENAPI: Description = Description {
    tag: Tag::Process,
    summary: "This document",
    text: "OpenAPI 3.1.",
    parameters: &[],
    body: None,
    answers: &[Answer::json(
        200,
        "The document.",
        &[Content { media_type: JSON, form: Form::Any, example: "" }],
    )],
    problems: &[HEAD],
    example: &[],
};

pub(super) const DOCS: Description = Description {
    tag: Tag::Process,
    summary: "This document, to be read",
    text: "One page without scripts, which loads nothing.",
    parameters: &[],
    body: None,
    answers: &[Answer::json(
        200,
        "The page.",
        &[Content { media_type: "text/html; charset=utf-8", form: Form::Text, example: "" }],
    )],
    problems: &[HEAD],
    example: &[],
};
