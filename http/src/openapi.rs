//! The API as an OpenAPI document, and that document as a page. Both are made of [`ROUTES`]: a route that is not described
//! does not compile.

mod build;
mod codes;
mod dead;
mod describe;
mod jobs;
mod leases;
mod namespaces;
mod page;
mod process;
mod queues;
pub(crate) mod text;
mod tokens;

use std::fmt::Write as _;

use serde_json::Value;

use self::describe::Description;
use crate::{Operation, ROUTES};

pub use self::codes::{CODES, Code};

/// The document: OpenAPI 3.1.
pub fn document() -> Value {
    serde_json::to_value(build::document(ROUTES)).unwrap_or_default()
}

/// The document as it is served, and kept beside the code.
pub fn json(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The document for people, as Markdown.
pub fn markdown(document: &Value) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", page::Page(document));
    text
}

/// The anchor of a heading of [`markdown`], to which its links lead.
pub fn anchor(heading: &str) -> String {
    page::slug(heading)
}

fn description(operation: Operation) -> Description {
    match operation {
        Operation::Publish => jobs::PUBLISH,
        Operation::PublishBatch => jobs::PUBLISH_BATCH,
        Operation::InspectJob => jobs::INSPECT,
        Operation::CancelJob => jobs::CANCEL,
        Operation::RescheduleJob => jobs::RESCHEDULE,
        Operation::ListJobs => jobs::LIST,
        Operation::ReleaseJob => jobs::RELEASE,
        Operation::CancelMany => jobs::CANCEL_MANY,
        Operation::RescheduleMany => jobs::RESCHEDULE_MANY,
        Operation::Take => leases::TAKE,
        Operation::SettleMany => leases::SETTLE_MANY,
        Operation::Ack => leases::ACK,
        Operation::Nack => leases::NACK,
        Operation::Snooze => leases::SNOOZE,
        Operation::Release => leases::RELEASE,
        Operation::Bury => leases::BURY,
        Operation::Extend => leases::EXTEND,
        Operation::ListQueues => queues::LIST,
        Operation::ShowQueue => queues::SHOW,
        Operation::DestroyQueue => queues::DESTROY,
        Operation::ShowConfig => queues::SHOW_CONFIG,
        Operation::ConfigureQueue => queues::CONFIGURE,
        Operation::PatchConfig => queues::PATCH_CONFIG,
        Operation::PauseQueue => queues::PAUSE,
        Operation::ResumeQueue => queues::RESUME,
        Operation::ListDead => dead::LIST,
        Operation::RequeueDead => dead::REQUEUE,
        Operation::PurgeDead => dead::PURGE,
        Operation::ListNamespaces => namespaces::LIST,
        Operation::ShowNamespace => namespaces::SHOW,
        Operation::LimitNamespace => namespaces::LIMIT,
        Operation::UnlimitNamespace => namespaces::UNLIMIT,
        Operation::ListTokens => tokens::LIST,
        Operation::CreateToken => tokens::CREATE,
        Operation::RotateToken => tokens::ROTATE,
        Operation::RevokeToken => tokens::REVOKE,
        Operation::Health => process::HEALTH,
        Operation::Ready => process::READY,
        Operation::Metrics => process::METRICS,
        Operation::OpenApi => process::OPENAPI,
        Operation::Docs => process::DOCS,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A description names parameters that the path has, codes that there are, and values of parameters that it has.
    #[test]
    fn descriptions_name_what_there_is() {
        for route in ROUTES {
            let Description { parameters, problems, example, answers, .. } = description(route.operation);
            let in_path: BTreeSet<&str> =
                route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            let described = parameters.iter().filter(|parameter| parameter.is_in_path());
            assert_eq!(
                described.map(|parameter| parameter.name).collect::<BTreeSet<_>>(),
                in_path,
                "{route:?}"
            );
            for (name, _) in example {
                assert!(parameters.iter().any(|parameter| parameter.name == *name), "{route:?}: {name}");
            }
            for code in problems.iter().copied().flatten() {
                assert!(CODES.iter().any(|known| code.ends_with(known.code)), "{route:?}: {code}");
            }
            assert!(answers.first().is_some_and(|answer| answer.status < 300), "{route:?}");
        }
    }

    #[test]
    fn codes_are_told_once_and_in_order() {
        assert!(CODES.is_sorted_by(|one, next| one.code < next.code), "{CODES:?}");
    }

    #[test]
    fn what_others_must_know_is_in_the_document() {
        let document = document();
        assert_eq!(document["openapi"], "3.1.0");
        for route in ROUTES {
            let operation = &document["paths"][route.path][route.method.to_lowercase()];
            assert!(operation["summary"].is_string(), "{route:?}");
            assert_eq!(operation["security"].is_array(), route.scope.is_some(), "{route:?}");
        }
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is not there");
        }
        for name in schemas.keys() {
            assert!(text.contains(&format!("#/components/schemas/{name}\"")), "{name} is of no use");
        }
    }
}
