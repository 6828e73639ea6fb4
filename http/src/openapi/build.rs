//! The descriptions of all routes, put together as OpenAPI has them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathsBuilder};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{
    ArrayBuilder, ComponentsBuilder, ObjectBuilder, Ref, RefBuilder, Schema, Type,
};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Content, HttpMethod, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr, Required, Response,
    ServerBuilder,
};

use super::describe::{self, Answer, Body, Description, Form, Kind, Parameter, Place, Shape, Tag};
use super::{CODES, description, text};
use crate::{Operation, Route};

const ABOUT: &str = "Delayed jobs over HTTP. A producer publishes a job with a delay; from its due time on, consumers take \
    it under a lease, and end the delivery by a verdict.\n\n\
    Options of the query may be headers too: `Delayline-Ttl: 1h` is `?ttl=1h`. An unknown option is an error, so that a \
    misspelt one does not go unnoticed. Durations are written `250ms`, `5s`, `1h30m`, `30d`; times are RFC 3339.\n\n\
    Errors are problem details (RFC 9457) with a stable `code`. Whatever Redis does not answer in time is `unknown`: 503 \
    with `Retry-After` where a repeat does no harm, 504 where it could do twice what was asked. `not_sent` and `busy` were \
    certainly not done.\n\n\
    Where the service has tokens, each request carries `Authorization: Bearer TOKEN`, and the token must have the scope \
    that the route names.";
const PROBLEM: &str = "application/problem+json";
const SCHEME: &str = "token";

/// Schemas by their names, as they are met.
type Schemas = BTreeMap<String, RefOr<Schema>>;

pub(super) fn document(routes: &[Route]) -> OpenApi {
    let mut schemas = Schemas::new();
    let paths = routes.iter().fold(PathsBuilder::new(), |paths, route| {
        let operation = operation(route, description(route.operation), &mut schemas);
        paths.path(route.path, PathItem::new(method(route.method), operation))
    });
    schemas.insert("Problem".to_owned(), problem());
    with(&mut schemas, Shape::of::<text::Code>());
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "A token of the service, `dl_<id>_<secret>`. Routes name the scope that it must have.",
    ));
    let components = schemas
        .into_iter()
        .fold(ComponentsBuilder::new(), |components, (name, schema)| components.schema(name, schema));
    let tags = Tag::ALL.map(|tag| TagBuilder::new().name(tag.name()).description(Some(tag.text())).build());
    let licence = LicenseBuilder::new().name(env!("CARGO_PKG_LICENSE")).build();
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("delayline")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(ABOUT))
                .license(Some(licence)),
        )
        .servers(Some([ServerBuilder::new().url("/").description(Some("Where this document is.")).build()]))
        .tags(Some(tags))
        .paths(paths)
        .components(Some(components.security_scheme(SCHEME, SecurityScheme::Http(scheme.build())).build()))
        .build()
}

fn operation(route: &Route, described: Description, schemas: &mut Schemas) -> OperationBuilder {
    let Description { tag, summary, text, parameters, body, answers, problems, example } = described;
    let operation = OperationBuilder::new()
        .tag(tag.name())
        .summary(Some(summary))
        .description(Some(text))
        .operation_id(Some(id(route.operation)));
    let operation = match route.scope {
        Some(scope) => operation.security(SecurityRequirement::new(SCHEME, [scope.as_str()])),
        None => operation,
    };
    let operation = parameters.iter().enumerate().fold(operation, |operation, (at, parameter)| {
        let is_first = |name| parameters.iter().position(|parameter| parameter.name == name) == Some(at);
        let value = example.iter().find(|(name, _)| is_first(*name)).map(|(_, value)| *value);
        operation.parameter(self::parameter(parameter, value, schemas))
    });
    let operation = operation.request_body(body.map(|body| request_body(&body, schemas)));
    let operation = answers.iter().fold(operation, |operation, answer| {
        operation.response(answer.status.to_string(), self::answer(answer, schemas))
    });
    refusals(problems, of_token(route)).into_iter().fold(operation, |operation, (status, codes)| {
        operation.response(status.to_string(), refusal(status, &codes))
    })
}

/// What whoever lacks the right token is answered.
fn of_token(route: &Route) -> &'static [&'static str] {
    const TOKEN: [&str; 6] =
        ["bad_header", "forbidden", "too_many_requests", "tokens_unknown", "unauthorized", "no_such_queue"];
    let names_queue = route.path.contains("{queue}") || route.path.contains("{lease}");
    match (route.scope, names_queue) {
        (None, _) => &[],
        (Some(_), false) => &TOKEN[..5],
        (Some(_), true) => &TOKEN,
    }
}

/// The name of an operation as programs have it.
fn id(operation: Operation) -> String {
    let name = format!("{operation:?}");
    let (first, rest) = name.split_at(1);
    first.to_lowercase() + rest
}

fn method(name: &str) -> HttpMethod {
    match name {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn parameter(described: &Parameter, example: Option<&str>, schemas: &mut Schemas) -> ParameterBuilder {
    let Parameter { name, place, text, kind } = described;
    let (place, is_required) = match place {
        Place::Path => (ParameterIn::Path, true),
        Place::Query => (ParameterIn::Query, false),
        Place::RequiredQuery | Place::ManyInQuery => (ParameterIn::Query, true),
        Place::Header => (ParameterIn::Header, false),
    };
    let schema = value(*kind, schemas);
    let (schema, example) = match described.place {
        Place::ManyInQuery => {
            let list = ArrayBuilder::new().items(schema).min_items(Some(1)).max_items(Some(64));
            (RefOr::T(Schema::from(list)), example.map(|example| json!([example])))
        }
        _ => (schema, example.map(|example| typed(*kind, example))),
    };
    ParameterBuilder::new()
        .name(*name)
        .parameter_in(place)
        .required(if is_required { Required::True } else { Required::False })
        .description(Some(limited(*kind, text)))
        .schema(Some(schema))
        .example(example)
}

/// The text of a parameter with its limits.
fn limited(kind: Kind, text: &str) -> String {
    let unless =
        |default: Option<String>| default.map_or(String::new(), |default| format!("; {default} unless said"));
    match kind {
        Kind::Span { least, most, default } => {
            format!("{text} From {least} to {most}{}.", unless(default.map(str::to_owned)))
        }
        Kind::Whole { least, most, default } => {
            format!("{text} From {least} to {most}{}.", unless(default.map(|default| default.to_string())))
        }
        Kind::Text | Kind::Flag(_) | Kind::Of(_) => text.to_owned(),
    }
}

fn value(kind: Kind, schemas: &mut Schemas) -> RefOr<Schema> {
    match kind {
        Kind::Text => ObjectBuilder::new().schema_type(Type::String).into(),
        Kind::Flag(default) => {
            ObjectBuilder::new().schema_type(Type::Boolean).default(Some(default.into())).into()
        }
        Kind::Whole { least, most, default } => ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(least))
            .maximum(Some(most))
            .default(default.map(Value::from))
            .into(),
        Kind::Span { default, .. } => {
            let duration = Shape::of::<text::Duration>();
            let _ = with(schemas, duration);
            let reference = RefBuilder::new().ref_location_from_schema_name((duration.name)());
            RefOr::Ref(reference.default(default.map(Value::from)).build())
        }
        Kind::Of(shape) => with(schemas, shape),
    }
}

fn typed(kind: Kind, example: &str) -> Value {
    match kind {
        Kind::Flag(_) | Kind::Whole { .. } => serde_json::from_str(example).unwrap_or_default(),
        Kind::Text | Kind::Span { .. } | Kind::Of(_) => example.into(),
    }
}

fn request_body(body: &Body, schemas: &mut Schemas) -> RequestBody {
    let required = if body.is_required { Required::True } else { Required::False };
    let built = RequestBodyBuilder::new().description(Some(body.text)).required(Some(required));
    let built =
        body.contents.iter().fold(built, |built, of| built.content(of.media_type, content(of, schemas)));
    built.build()
}

fn answer(answer: &Answer, schemas: &mut Schemas) -> Response {
    let built = ResponseBuilder::new().description(answer.text);
    let built = answer.headers.iter().fold(built, |built, (name, text)| {
        let text_of_header = ObjectBuilder::new().schema_type(Type::String);
        built
            .header(*name, HeaderBuilder::new().schema(Some(text_of_header)).description(Some(*text)).build())
    });
    let contents = answer.contents.iter();
    contents.fold(built, |built, of| built.content(of.media_type, content(of, schemas))).build()
}

fn content(described: &describe::Content, schemas: &mut Schemas) -> Content {
    let describe::Content { media_type: _, form, example } = described;
    let schema: Option<RefOr<Schema>> = match form {
        // What has no schema can be anything.
        Form::Any | Form::Bytes => None,
        Form::Text => Some(ObjectBuilder::new().schema_type(Type::String).into()),
        Form::One(shape) | Form::Lines(shape) => Some(with(schemas, *shape)),
        Form::Many(shape) => {
            let items = with(schemas, *shape);
            Some(ArrayBuilder::new().items(items).max_items(Some(crate::body::JSON_ITEMS)).into())
        }
    };
    let value = match form {
        _ if example.is_empty() => None,
        Form::Text | Form::Bytes | Form::Lines(_) => Some(Value::from(*example)),
        Form::Any | Form::One(_) | Form::Many(_) => serde_json::from_str(example).ok(),
    };
    // A line is described, and the example has several.
    let schema = match form {
        Form::Lines(shape) => {
            let name = (shape.name)();
            let text = format!("Lines of JSON, each a `{name}`.");
            Some(ObjectBuilder::new().schema_type(Type::String).description(Some(text)).into())
        }
        _ => schema,
    };
    ContentBuilder::new().schema(schema).example(value).build()
}

/// A reference to a type, which is put among the schemas with all that it is made of.
fn with(schemas: &mut Schemas, shape: Shape) -> RefOr<Schema> {
    let name = (shape.name)();
    let mut parts = vec![(name.to_string(), (shape.schema)())];
    (shape.parts)(&mut parts);
    schemas.extend(parts);
    RefOr::Ref(Ref::from_schema_name(name))
}

/// The codes that are answered with each status: the usual one of the code, unless one is told before it.
fn refusals(
    problems: &[&[&'static str]],
    of_token: &'static [&'static str],
) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let mut refusals: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
    for told in problems.iter().chain([&of_token]).copied().flatten() {
        let (status, code) =
            told.split_once(' ').map_or((None, *told), |(status, code)| (status.parse().ok(), code));
        let usual =
            CODES.iter().find(|known| known.code == code).and_then(|known| known.statuses.first().copied());
        if let Some(status) = status.or(usual) {
            refusals.entry(status).or_default().insert(code);
        }
    }
    refusals
}

fn refusal(status: u16, codes: &BTreeSet<&'static str>) -> Response {
    let listed: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
    let problem = Ref::from_schema_name("Problem");
    let mut built = ResponseBuilder::new().description(listed.join(", "));
    if matches!(status, 429 | 503) {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        let after =
            HeaderBuilder::new().schema(Some(seconds)).description(Some("When to try again, in seconds."));
        built = built.header("Retry-After", after.build());
    }
    built.content(PROBLEM, ContentBuilder::new().schema(Some(problem)).build()).build()
}

/// Problem details, which are written by hand.
fn problem() -> RefOr<Schema> {
    let string = |text: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(text));
    let status = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(400))
        .maximum(Some(599))
        .description(Some("The status code."));
    let job = RefBuilder::new()
        .ref_location_from_schema_name("Job")
        .description(Some("The job that the problem is about, of a `duplicate`."));
    ObjectBuilder::new()
        .description(Some("Why a request was not carried out (RFC 9457)."))
        .property("title", string("What the status is called."))
        .property("status", status)
        .property("code", Ref::from_schema_name(text::Code::name()))
        .property("detail", string("What happened, to what, and what to do, for people."))
        .property("job", job)
        .required("title")
        .required("status")
        .required("code")
        .required("detail")
        .into()
}
