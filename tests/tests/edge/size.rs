//! How large the examples are, as Cloudflare is sent them.

use delayline_tests::edge::built;

use crate::quiet::Quiet;
use crate::site::Which;

const EXAMPLE_BYTES: u64 = 165_000;

#[test]
fn the_example_is_small() {
    let _quiet = Quiet::beside_others();
    for which in [Which::Example, Which::DurableObject] {
        let Some(bundle) = built(&which.folder()) else { return };
        let gzipped = bundle.size().gzip;
        println!("{which:?}: {gzipped} bytes with gzip -9");
        assert!(which != Which::Example || gzipped <= EXAMPLE_BYTES, "{gzipped} bytes");
    }
}
