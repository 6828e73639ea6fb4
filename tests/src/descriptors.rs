use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the number of descriptors that this process may open as far as the system allows, and answers it.
///
/// # Panics
/// If the system does not say.
pub fn raise_descriptors() -> u64 {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("a soft limit up to the hard one");
    hard
}
