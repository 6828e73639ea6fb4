//! Dead letters that are to be moved: these, or all.

use delayline_core::JobId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Object, Problem, Response, Written, items};

/// Which dead letters a body names.
#[derive(Debug, PartialEq, Eq)]
pub enum Dead {
    /// All that there are.
    All,
    /// These, of which there is at least one.
    Ids(Vec<JobId>),
}

/// Which dead letters: `ids`, or `all`.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = WhichDead))]
#[serde(deny_unknown_fields)]
pub(crate) struct Which<'a> {
    /// These, 1 to 1,000.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::openapi::text::Id>>, min_items = 1, max_items = 1000))]
    ids: Option<&'a RawValue>,
    /// All that there are, if `true`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false, default = false))]
    all: bool,
}

/// Dead letters that became due.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Requeued {
    /// How many became due.
    requeued: u64,
    /// How many dead letters are left.
    left: u64,
}

/// Dead letters that were removed.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Purged {
    /// How many were removed.
    purged: u64,
    /// How many dead letters are left.
    left: u64,
}

impl Dead {
    /// Reads the body.
    pub fn read(body: &[u8]) -> Result<Dead, Problem> {
        const WANTED: &str = "write {\"ids\": [\"…\"]} or {\"all\": true}";
        let unread = |error| Problem::bad("bad_json", format!("the body cannot be read: {error}: {WANTED}"));
        match Object::read(body).map_err(unread)? {
            Which { ids: None, all: true } => Ok(Dead::All),
            Which { ids: Some(ids), all: false } if ids.get() != "[]" => {
                let ids = items(ids.get().as_bytes(), unread)?;
                let ids = ids.into_iter().map(|id| serde_json::from_str(id.get()).map(|Written(id)| id));
                Ok(Dead::Ids(ids.collect::<Result<_, _>>().map_err(unread)?))
            }
            _ => Err(Problem::bad("bad_json", format!("the body must name ids or all: {WANTED}"))),
        }
    }
}

/// The answer to a requeue: how many became due, and how many dead letters are left.
pub fn requeued(requeued: u64, left: u64) -> Response {
    Response::json(200, &Requeued { requeued, left })
}

/// The answer to a purge: how many were removed, and how many dead letters are left.
pub fn purged(purged: u64, left: u64) -> Response {
    Response::json(200, &Purged { purged, left })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_names_ids_or_all() {
        let ids = ["a", "b"].map(|id| id.parse().unwrap()).to_vec();
        assert_eq!(Dead::read(br#"{"ids":["a","b"]}"#).unwrap(), Dead::Ids(ids));
        assert_eq!(Dead::read(br#"{"all":true}"#).unwrap(), Dead::All);
        for body in [
            "",
            "{}",
            r#"{"ids":[]}"#,
            r#"{"ids":["a b"]}"#,
            r#"{"ids":["a"],"all":true}"#,
            r#"{"all":false}"#,
        ] {
            assert_eq!(Dead::read(body.as_bytes()).unwrap_err().code, "bad_json", "{body}");
        }
    }
}
