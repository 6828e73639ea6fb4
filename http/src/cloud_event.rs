use crate::{Headers, Problem};

const PREFIX: &str = "ce-";

/// The attributes of a CloudEvent in binary mode, which are headers, with their names in lower case. They become headers of
/// the job, so that its consumer has the event as it was sent. In structured mode the body holds them.
pub(crate) fn attributes(headers: &Headers<'_>) -> Result<Vec<(String, String)>, Problem> {
    let is_attribute =
        |name: &str| name.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
    let attributes = headers.iter().filter(|(name, _)| is_attribute(name)).map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let value = str::from_utf8(value)
            .map_err(|_| Problem::bad("bad_header", format!("the header {name} is not UTF-8")))?;
        Ok((name, value.to_owned()))
    });
    attributes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_the_headers_of_their_prefix() {
        let headers: Headers =
            [("CE-Id", &b"17"[..]), ("Content-Type", b"a/b"), ("ce-type", b"com.example.paid")]
                .into_iter()
                .collect();
        let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            attributes(&headers).unwrap(),
            [owned("ce-id", "17"), owned("ce-type", "com.example.paid")]
        );
        let broken = [("ce-id", &b"\xff"[..])].into_iter().collect();
        assert_eq!(attributes(&broken).unwrap_err().detail, "the header ce-id is not UTF-8");
    }
}
