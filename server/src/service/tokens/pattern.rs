use std::fmt;
use std::str::FromStr;

use delayline_tokio::QueueName;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

const PART_MAX: usize = 255;
const ALLOWED: &str =
    "write a queue, alone or as namespace~queue, in which * stands for any characters and ? for one";

/// Which queues a token is for: `orders`, `orders-*`, `shop~*` (a namespace), `*` (the default namespace), `*~*` (all
/// other namespaces). A `*` reaches over no `~`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct QueuePattern(String);

impl QueuePattern {
    pub(crate) fn matches(&self, queue: &QueueName) -> bool {
        let (namespace, own) = parts(&self.0);
        let is_in = match (namespace, queue.as_str().split_once('~')) {
            (None, None) => true,
            (Some(pattern), Some((namespace, _))) => WildMatch::new(pattern).matches(namespace),
            _ => false,
        };
        is_in && WildMatch::new(own).matches(queue.own())
    }
}

fn parts(pattern: &str) -> (Option<&str>, &str) {
    pattern.split_once('~').map_or((None, pattern), |(namespace, own)| (Some(namespace), own))
}

impl FromStr for QueuePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<QueuePattern, String> {
        let is_part = |part: &str| {
            (1..=PART_MAX).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-*?".contains(&byte))
        };
        let (namespace, own) = parts(text);
        if namespace.is_none_or(is_part) && is_part(own) {
            return Ok(QueuePattern(text.to_owned()));
        }
        let shown: String = text.chars().take(80).collect();
        Err(format!("{shown:?} is no pattern of queues: {ALLOWED}"))
    }
}

impl TryFrom<String> for QueuePattern {
    type Error = String;

    fn try_from(text: String) -> Result<QueuePattern, String> {
        text.parse()
    }
}

impl From<QueuePattern> for String {
    fn from(pattern: QueuePattern) -> String {
        pattern.0
    }
}

impl fmt::Display for QueuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_reaches_over_no_namespace() {
        for (pattern, queue, matches) in [
            ("orders", "orders", true),
            ("orders", "orders-eu", false),
            ("orders-*", "orders-eu", true),
            ("orders-??", "orders-eu", true),
            ("orders-??", "orders-eus", false),
            ("*", "orders", true),
            ("*", "shop~orders", false),
            ("orders*", "orders~secret", false),
            ("shop~*", "shop~orders", true),
            ("shop~*", "shopping~orders", false),
            ("shop~*", "orders", false),
            ("shop~orders", "orders", false),
            ("*~*", "shop~orders", true),
            ("*~*", "orders", false),
            ("*~orders", "shop~orders", true),
        ] {
            let (read, queue): (QueuePattern, QueueName) = (pattern.parse().unwrap(), queue.parse().unwrap());
            assert_eq!(read.matches(&queue), matches, "{pattern} {queue}");
        }
        for wrong in ["", "a b", "~a", "a~", "a~b~c", "é"] {
            assert!(wrong.parse::<QueuePattern>().unwrap_err().contains("namespace~queue"), "{wrong}");
        }
    }
}
