use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use delayline_http::openapi::{self, CODES};
use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::service::{Answer, Service, send, text};

/// Where the documents are kept.
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
const PROBLEM: &str = "application/problem+json";
/// The variable by which they are written anew.
const UPDATE: &str = "UPDATE_DOCS";

#[test]
fn the_documents_are_kept_as_they_are_made() {
    let document = openapi::document();
    for (name, made) in
        [("openapi.json", openapi::json(&document)), ("http.md", openapi::markdown(&document))]
    {
        let path = Path::new(DOCS).join(name);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == made,
            "docs/{name} is not what the routes make of it; write it anew by \
             `{UPDATE}=1 cargo test -p delayline --test all -- openapi`"
        );
    }
}

#[tokio::test]
async fn the_document_and_its_page_are_served() {
    let service = Service::start().await;
    let answer = service.get("/v1/openapi.json").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    assert_eq!(answer.json, openapi::document());
    let page = service.get("/v1/docs").await;
    let html = text(&page.json);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    for loading in ["<script", "<link", "<img", "<iframe", " src=", "@import", "url(", " on", "style="] {
        let tags = html.split('<').filter_map(|tag| tag.split_once('>')).map(|(tag, _)| tag);
        assert!(!tags.clone().any(|tag| format!("<{tag}>").contains(loading)), "{loading} is in the page");
    }
    let ids: Vec<&str> = html.split("id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "two headings have one anchor");
    for link in html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let anchor = link.strip_prefix('#').unwrap_or_else(|| panic!("{link} leads elsewhere"));
        assert!(ids.contains(&anchor), "{link} leads nowhere");
    }
    for route in delayline_http::ROUTES {
        assert!(html.contains(&format!("<code>{} {}</code>", route.method, route.path)), "{route:?}");
    }
}

/// Each route's example, asked of a service: the answer has the form of the documented one, and fits its schema.
#[tokio::test]
async fn every_example_is_answered_as_documented() {
    let schemas = Schemas::new(openapi::document());
    for operation in schemas.operations() {
        for (media_type, body) in operation.bodies() {
            let service = Service::start().await;
            let Prepared { lease, token } = prepare(&service, &operation).await;
            let at_hand = |text: &str| {
                let lease = lease.as_deref().unwrap_or(EXAMPLE_LEASE);
                let token = token.as_ref().map_or(EXAMPLE_TOKEN, |(id, _)| id);
                text.replace(EXAMPLE_LEASE, lease).replace(EXAMPLE_TOKEN, token)
            };
            let method: Method = operation.method.to_uppercase().parse().unwrap();
            let mut request = service.request(method, &at_hand(&operation.example_path()));
            for (name, value) in operation.values("header") {
                request = request.header(name, value);
            }
            if let Some((_, secret)) = &token {
                request = request.bearer_auth(secret);
            }
            if let Some(body) = body {
                operation.check_body(&schemas, &media_type, body);
                let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
                request = request.header("content-type", &media_type).body(at_hand(&body));
            }
            let answer = send(request).await;
            operation.check_answer(&schemas, &answer);
            service.stop().await;
        }
    }
}

#[tokio::test]
async fn other_answers_are_as_documented() {
    let schemas = Schemas::new(openapi::document());
    let service = Service::start().await;
    let publish = async || {
        let request = service.request(Method::POST, "/v1/queues/q/jobs?delay=1h");
        send(request.header("Idempotency-Key", "a").body("1")).await
    };
    publish().await;
    let repeated = publish().await;
    assert_eq!(repeated.status, 200);
    schemas.operation("publish").check_answer(&schemas, &repeated);
    let duplicate = service.post("/v1/queues/q/jobs?id=a", "1").await;
    duplicate.is_problem(409, "duplicate", "");
    schemas.operation("publish").check_answer(&schemas, &duplicate);
    let nothing = service.post("/v1/take?queue=q", "").await;
    assert_eq!(nothing.status, 204);
    schemas.operation("take").check_answer(&schemas, &nothing);
    let request = service.request(Method::GET, "/v1/queues/q/config").header("If-None-Match", "*");
    let known = send(request).await;
    assert_eq!(known.status, 304);
    schemas.operation("showConfig").check_answer(&schemas, &known);
    let dead = service.get("/v1/queues/q/jobs/b").await;
    schemas.operation("inspectJob").check_answer(&schemas, &dead);
}

/// What every route refuses, with a code that it is documented to have.
#[tokio::test]
async fn refusals_are_documented() {
    let schemas = Schemas::new(openapi::document());
    let service = Service::start().await;
    for operation in schemas.operations().filter(|operation| operation.said["security"].is_array()) {
        if operation.path == "/metrics" {
            continue;
        }
        let method = || operation.method.to_uppercase().parse::<Method>().unwrap();
        let path = operation.example_path();
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut wrong = vec![format!("{path}{separator}nonsense=1")];
        for part in
            ["{queue}", "{id}", "{lease}", "{namespace}"].iter().filter(|part| operation.path.contains(*part))
        {
            wrong.push(
                operation
                    .path
                    .replace(part, "%20")
                    .replace("{queue}", "q")
                    .replace("{id}", "a")
                    .replace("{token}", "a"),
            );
            wrong.push(
                operation
                    .path
                    .replace(part, "%FF")
                    .replace("{queue}", "q")
                    .replace("{id}", "a")
                    .replace("{token}", "a"),
            );
        }
        for path in wrong {
            let answer = send(service.request(method(), &path)).await;
            assert_eq!(answer.status, 400, "{} {path}: {answer:?}", operation.method);
            operation.check_answer(&schemas, &answer);
        }
        let elsewhere = send(service.request(method(), &path).header("host", "evil.example")).await;
        elsewhere.is_problem(421, "wrong_host", "");
        operation.check_answer(&schemas, &elsewhere);
        if operation.method != "get" {
            let foreign =
                send(service.request(method(), &path).header("origin", "https://evil.example")).await;
            foreign.is_problem(403, "cross_site", "");
            operation.check_answer(&schemas, &foreign);
            let huge = send(service.request(method(), &path).body("x".repeat(17 << 20))).await;
            operation.check_answer(&schemas, &huge);
            let broken = send(service.request(method(), &path).body("{")).await;
            operation.check_answer(&schemas, &broken);
        }
    }
}

/// The codes in the source are those of the document.
#[test]
fn every_code_of_a_problem_is_documented() {
    let mut found = BTreeSet::new();
    for folder in ["../http/src", "src/service"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for path in sources(&folder) {
            let source = std::fs::read_to_string(&path).unwrap();
            let shipped = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            found.extend(codes(shipped));
        }
    }
    let documented: BTreeSet<String> = CODES.iter().map(|known| known.code.to_owned()).collect();
    let missing: Vec<_> = found.difference(&documented).collect();
    assert!(missing.is_empty(), "say what these codes mean, in http/src/openapi/codes.rs: {missing:?}");
    let idle: Vec<_> = documented.difference(&found).collect();
    assert!(idle.is_empty(), "nobody answers these codes of http/src/openapi/codes.rs: {idle:?}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let found = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    found.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// What the constructors of problems that take a code are given, and the codes of segments of a path and of choices.
fn codes(source: &str) -> BTreeSet<String> {
    const TAKING: [&str; 6] = ["bad", "conflict", "not_found", "too_large", "later", "behind"];
    let mut found = BTreeSet::new();
    for call in source.split("Problem::").skip(1) {
        let Some((name, arguments)) = call.split_once('(') else { continue };
        let arguments = match name {
            "new" => arguments.split_once(',').map_or("", |(_, rest)| rest),
            name if TAKING.contains(&name) => arguments,
            _ => continue,
        };
        found.extend(literal(arguments));
    }
    for segment in source.split("const CODE: &'static str =").skip(1) {
        found.extend(literal(segment));
    }
    for choice in source.split("fn code(self) -> &'static str {").skip(1) {
        let arms = choice.split_once("\n    }\n").map_or("", |(arms, _)| arms);
        found.extend(arms.split("=>").filter_map(literal));
    }
    found
}

/// The string that the text begins with, if it is a code.
fn literal(text: &str) -> Option<String> {
    let code = text.trim_start().strip_prefix('"')?.split('"').next()?;
    let is_code = code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_code.then(|| code.to_owned())
}

const EXAMPLE_LEASE: &str = "MSB3ZWxjb21lIDE3NjM3MDAwMDAwMDAxMjMgMTUwMDAgb3JkZXI6MTc";

const EXAMPLE_TOKEN: &str = "0123456789abcdef";

/// What the request of an example is about.
struct Prepared {
    /// Of a job that is held.
    lease: Option<String>,
    /// The id and the secret of a token, which requests must then carry.
    token: Option<(String, String)>,
}

/// Makes what the example of an operation needs.
async fn prepare(service: &Service, operation: &Operation<'_>) -> Prepared {
    let publish = async |queue: &str, options: &str| {
        let path = format!("/v1/queues/{queue}/jobs?id=order:17{options}");
        let request = service.request(Method::POST, &path).header("content-type", "application/json");
        assert_eq!(send(request.body(r#"{"to":"ann"}"#)).await.status, 201);
    };
    let (mut lease, mut token) = (None, None);
    match (text(&operation.said["tags"][0]).as_str(), operation.id().as_str()) {
        (_, "publish" | "publishBatch" | "configureQueue" | "createToken" | "limitNamespace")
        | ("The process", _) => {}
        ("Queues", "showConfig") => {
            service.put("/v1/queues/welcome/config", r#"{"attempts":5,"backoff":"15s 3m 10m"}"#).await;
        }
        ("Jobs", _) => publish("welcome", "&delay=1h").await,
        ("Queues", _) | (_, "take") => publish("welcome", "").await,
        ("Deliveries", _) => {
            publish("welcome", "").await;
            lease = Some(service.lease("welcome").await);
        }
        ("Dead letters", _) => {
            publish("welcome", "").await;
            let lease = service.lease("welcome").await;
            service.post(&format!("/v1/leases/{lease}/bury?reason=no+such+address"), "").await;
        }
        ("Namespaces", "unlimitNamespace") => {
            service.put("/v1/namespaces/shop", r#"{"max_jobs":1}"#).await;
        }
        ("Namespaces", _) => publish("shop~orders", "").await,
        ("Tokens", _) => {
            let wanted = json!({ "scopes": ["admin"], "description": "deployment", "expires_in": "90d" });
            let made = service.post("/v1/tokens", wanted.to_string()).await;
            token = Some((text(&made.json["id"]), text(&made.json["token"])));
        }
        (tag, id) => panic!("{tag} is a new tag, of {id}: say what its examples need"),
    }
    Prepared { lease, token }
}

/// The document, with its schemas made strict: what they do not name may not be there.
struct Schemas {
    document: Value,
}

struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    said: &'a Value,
}

impl Schemas {
    fn new(mut document: Value) -> Schemas {
        let schemas = document["components"]["schemas"].as_object_mut().unwrap();
        let parts: BTreeSet<String> = schemas.values().flat_map(parts_of).collect();
        for (_, schema) in schemas.iter_mut().filter(|(name, _)| !parts.contains(*name)) {
            let is_object = schema["properties"].is_object() || schema["allOf"].is_array();
            if let Some(schema) = schema.as_object_mut().filter(|_| is_object) {
                schema.insert("unevaluatedProperties".into(), false.into());
            }
        }
        Schemas { document }
    }

    fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let paths = self.document["paths"].as_object().unwrap().iter();
        paths.flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter();
            methods.map(move |(method, said)| Operation { method, path, said })
        })
    }

    fn operation(&self, id: &str) -> Operation<'_> {
        self.operations().find(|operation| operation.said["operationId"] == id).unwrap()
    }

    fn validator(&self, schema: &Value) -> Validator {
        let schema = json!({ "allOf": [schema], "components": self.document["components"] });
        jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
    }

    #[track_caller]
    fn check(&self, schema: &Value, value: &Value) {
        let errors: Vec<String> =
            self.validator(schema).iter_errors(value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?} in {value:#}, of {schema:#}");
    }
}

/// The schemas of which another is put together.
fn parts_of(schema: &Value) -> Vec<String> {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let parts = parts.filter_map(|part| part["$ref"].as_str()?.rsplit('/').next());
    parts.map(str::to_owned).collect()
}

impl Operation<'_> {
    fn id(&self) -> String {
        text(&self.said["operationId"])
    }

    /// The examples of the parameters in one place.
    fn values(&self, place: &str) -> Vec<(String, String)> {
        let parameters = self.said["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.filter(|parameter| parameter["in"] == place);
        let values = parameters.flat_map(|parameter| {
            let example = &parameter["example"];
            let values = example.as_array().cloned().unwrap_or_else(|| vec![example.clone()]);
            let values = values.into_iter().filter(|value| !value.is_null());
            values.map(|value| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (text(&parameter["name"]), value)
            })
        });
        values.collect()
    }

    fn example_path(&self) -> String {
        let mut path = self.path.to_owned();
        for (name, value) in self.values("path") {
            path = path.replace(&format!("{{{name}}}"), &value);
        }
        for (n, (name, value)) in self.values("query").into_iter().enumerate() {
            path = format!("{path}{}{name}={value}", if n == 0 { '?' } else { '&' });
        }
        path
    }

    /// The example bodies by their media types; one without a body if there are none.
    fn bodies(&self) -> Vec<(String, Option<&Value>)> {
        let contents = self.said["requestBody"]["content"].as_object();
        let contents = contents.into_iter().flatten().filter(|(_, form)| !form["example"].is_null());
        let mut bodies: Vec<_> =
            contents.map(|(media_type, form)| (media_type.clone(), Some(&form["example"]))).collect();
        if bodies.is_empty() {
            bodies.push((String::new(), None));
        }
        bodies
    }

    #[track_caller]
    fn check_body(&self, schemas: &Schemas, media_type: &str, body: &Value) {
        for parameter in self.said["parameters"].as_array().into_iter().flatten() {
            if !parameter["example"].is_null() {
                schemas.check(&parameter["schema"], &parameter["example"]);
            }
        }
        let schema = &self.said["requestBody"]["content"][media_type]["schema"];
        match media_type {
            "application/x-ndjson" => check_lines(schemas, "BatchItem", body),
            _ if schema.is_null() => {}
            _ => schemas.check(schema, body),
        }
    }

    #[track_caller]
    fn check_answer(&self, schemas: &Schemas, answer: &Answer) {
        let what = || format!("{} {}: {answer:?}", self.method, self.path);
        let documented = &self.said["responses"][answer.status.as_str()];
        assert!(documented.is_object(), "{} is not documented: {}", answer.status, what());
        for (name, _) in documented["headers"].as_object().into_iter().flatten() {
            assert!(answer.headers.contains_key(name), "{name} is missing: {}", what());
        }
        let Some(contents) = documented["content"].as_object() else {
            return assert_eq!(answer.json, "", "{}", what());
        };
        let media_type = answer.headers["content-type"].to_str().unwrap();
        let form = contents.get(media_type).unwrap_or_else(|| panic!("{media_type}: {}", what()));
        let example = &form["example"];
        if let Some(code) = answer.json["code"].as_str().filter(|_| media_type == PROBLEM) {
            let codes = text(&documented["description"]);
            assert!(codes.contains(&format!("`{code}`")), "{code} is not documented: {}", what());
        }
        match media_type {
            "application/x-ndjson" => {
                check_lines(schemas, "BatchOutcome", example);
                check_lines(schemas, "BatchOutcome", &answer.json);
            }
            _ if form["schema"].is_null() => {}
            _ => {
                schemas.check(&form["schema"], &answer.json);
                if !example.is_null() {
                    schemas.check(&form["schema"], example);
                    let is_main = answer.status != 200 || self.id() != "publish";
                    assert!(
                        !is_main || is_like(example, &answer.json),
                        "{example:#} is documented: {}",
                        what()
                    );
                }
            }
        }
    }
}

#[track_caller]
fn check_lines(schemas: &Schemas, name: &str, lines: &Value) {
    let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
    for line in text(lines).lines() {
        schemas.check(&schema, &serde_json::from_str(line).unwrap());
    }
}

/// Whether two values have the same fields, of the same types. Counters may be more than the example shows.
fn is_like(example: &Value, found: &Value) -> bool {
    match (example, found) {
        (Value::Object(example), Value::Object(found)) => {
            let names = |fields: &Map<String, Value>| fields.keys().cloned().collect::<BTreeSet<_>>();
            names(example) == names(found)
                && example.iter().all(|(name, value)| name == "counters" || is_like(value, &found[name]))
        }
        (Value::Array(example), Value::Array(found)) => {
            example.len() == found.len() && example.iter().zip(found).all(|(one, other)| is_like(one, other))
        }
        _ => std::mem::discriminant(example) == std::mem::discriminant(found),
    }
}
