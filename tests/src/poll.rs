use std::thread;
use std::time::{Duration, Instant};

/// Asks again and again until there is an answer.
///
/// # Panics
/// If there is none within `limit`.
pub fn until<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(1));
    }
}
