//! How large the examples are, as Cloudflare is sent them.

use delayline_tests::edge::built;

use crate::site::Which;

const EXAMPLE_BYTES: u64 = 150 * 1024;

#[test]
fn the_example_is_small() {
    for which in [Which::Example, Which::DurableObject] {
        let Some(bundle) = built(&which.folder()) else { return };
        let gzipped = bundle.size().gzip;
        println!("{which:?}: {} KiB with gzip -9", gzipped / 1024);
        assert!(which != Which::Example || gzipped <= EXAMPLE_BYTES, "{gzipped} bytes");
    }
}
