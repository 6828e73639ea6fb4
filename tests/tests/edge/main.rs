//! Workers in workerd, Cloudflare's runtime: what they do when it starts them, and when all around them fails.
#![allow(missing_docs)]

mod fixture;
mod harness;
