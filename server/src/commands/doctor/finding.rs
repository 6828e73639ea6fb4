use std::fmt;

use serde::Serialize;

use crate::help;

/// What a check found.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    status: Status,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warning,
    Error,
}

impl Finding {
    pub(super) fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { check, status: Status::Ok, detail: detail.into(), mend: None }
    }

    pub(super) fn warning(check: &'static str, detail: impl Into<String>, mend: &str) -> Finding {
        Finding { check, status: Status::Warning, detail: detail.into(), mend: Some(mend.to_string()) }
    }

    pub(super) fn error(check: &'static str, detail: impl Into<String>, mend: &str) -> Finding {
        Finding { check, status: Status::Error, detail: detail.into(), mend: Some(mend.to_string()) }
    }

    pub(super) fn is_error(&self) -> bool {
        self.status == Status::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, status) = match self.status {
            Status::Ok => (help::GOOD, "ok"),
            Status::Warning => (help::DOUBTFUL, "warning"),
            Status::Error => (help::BAD, "error"),
        };
        writeln!(f, "{style}{status:<7}{style:#}  {:<11}  {}", self.check, self.detail)?;
        match &self.mend {
            Some(mend) => writeln!(f, "{:22}{mend}", ""),
            None => Ok(()),
        }
    }
}
