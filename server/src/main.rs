//! Service.
fn main() {}
