use std::fmt;

use serde::Serialize;

use crate::cli::help;

/// What a check found.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    status: Status,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
    /// What was changed to mend it, or would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Mended,
    Warning,
    Error,
}

impl Finding {
    pub(super) fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { check, status: Status::Ok, detail: detail.into(), mend: None, changes: Vec::new() }
    }

    pub(super) fn mended(check: &'static str, detail: impl Into<String>, changes: Vec<String>) -> Finding {
        Finding { status: Status::Mended, changes, ..Finding::ok(check, detail) }
    }

    pub(super) fn warning(check: &'static str, detail: impl Into<String>, mend: &str) -> Finding {
        Finding { status: Status::Warning, mend: Some(mend.to_string()), ..Finding::ok(check, detail) }
    }

    pub(super) fn error(check: &'static str, detail: impl Into<String>, mend: &str) -> Finding {
        Finding { status: Status::Error, mend: Some(mend.to_string()), ..Finding::ok(check, detail) }
    }

    pub(super) fn changing(self, changes: Vec<String>) -> Finding {
        Finding { changes, ..self }
    }

    pub(super) fn is_error(&self) -> bool {
        self.status == Status::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, status) = match self.status {
            Status::Ok => (help::GOOD, "ok"),
            Status::Mended => (help::GOOD, "mended"),
            Status::Warning => (help::DOUBTFUL, "warning"),
            Status::Error => (help::BAD, "error"),
        };
        writeln!(f, "{style}{status:<7}{style:#}  {:<11}  {}", self.check, self.detail)?;
        self.mend.iter().chain(&self.changes).try_for_each(|line| writeln!(f, "{:22}{line}", ""))
    }
}
