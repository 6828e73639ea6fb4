use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use base64ct::{Base64UrlUnpadded, Encoding};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Fence, JobId, QueueName};

const VERSION: &str = "1";

/// The right to end one delivery of a job, as one opaque text: any process may settle with it.
///
/// It carries the delay that a failed attempt is to wait, computed when the lease was granted, so that a nack from
/// elsewhere needs no read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The job's queue.
    pub queue: QueueName,
    /// The job.
    pub id: JobId,
    /// Which grant.
    pub fence: Fence,
    /// How long a nack waits that says nothing else.
    pub retry_ms: u64,
}

/// A text that is no [`Lease`]'s.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no lease: pass it as the job was delivered with it")]
pub struct LeaseError(String);

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = format!("{VERSION} {} {} {} {}", self.queue, self.fence, self.retry_ms, self.id);
        f.write_str(&Base64UrlUnpadded::encode_string(plain.as_bytes()))
    }
}

impl FromStr for Lease {
    type Err = LeaseError;

    fn from_str(text: &str) -> Result<Lease, LeaseError> {
        read(text).ok_or_else(|| LeaseError(text.chars().take(80).collect()))
    }
}

fn read(text: &str) -> Option<Lease> {
    let plain = String::from_utf8(Base64UrlUnpadded::decode_vec(text).ok()?).ok()?;
    let mut parts = plain.split(' ');
    if parts.next()? != VERSION {
        return None;
    }
    let lease = Lease {
        queue: parts.next()?.parse().ok()?,
        fence: Fence(parts.next()?.parse().ok()?),
        retry_ms: parts.next()?.parse().ok()?,
        id: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(lease)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let lease = Lease {
            queue: "orders".parse().unwrap(),
            id: "order:17".parse().unwrap(),
            fence: Fence(1_763_700_000_000_123),
            retry_ms: 15_000,
        };
        let text = lease.to_string();
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{text}");
        assert_eq!(text.parse(), Ok(lease));
        for bad in ["", "x", "!!", &text[1..], &"A".repeat(10_000)] {
            assert!(bad.parse::<Lease>().is_err());
        }
    }
}
