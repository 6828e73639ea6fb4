use base64ct::{Base64UrlUnpadded, Encoding};
use delayline_core::{Fence, Lease};

use super::input::Input;

/// A lease's text reads back as the lease, whether it came from outside, was written here, or is armour about anything.
///
/// # Panics
/// If it does not.
pub fn lease(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        read(text);
    }
    read(&Base64UrlUnpadded::encode_string(bytes));
    let mut input = Input::new(bytes);
    let (fence, retry_ms) = (Fence(input.number()), input.number());
    let (queue, id) = (input.text(140).parse(), input.text(140).parse());
    if let (Ok(queue), Ok(id)) = (queue, id) {
        let lease = Lease { queue, id, fence, retry_ms };
        assert_eq!(lease.to_string().parse(), Ok(lease));
    }
}

fn read(text: &str) {
    match text.parse::<Lease>() {
        Ok(lease) => assert_eq!(lease.to_string().parse(), Ok(lease)),
        Err(error) => assert!(error.to_string().chars().count() < 1_000, "a short complaint"),
    }
}
