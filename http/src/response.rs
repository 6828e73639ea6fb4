use bytes::Bytes;
use serde::Serialize;

/// What a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, with their names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

impl Response {
    /// An answer in JSON.
    pub fn json(status: u16, document: &impl Serialize) -> Response {
        let body = serde_json::to_vec(document).unwrap_or_default();
        let response = Response { status, headers: Vec::new(), body: body.into() };
        response.header("content-type", "application/json")
    }

    /// Adds a header, whose name must be in lower case.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }
}
