use std::fmt::{self, Display};
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// How large a module is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// As it is.
    pub raw: u64,
    /// As `gzip -9` makes it, which is what Cloudflare's limits count.
    pub gzip: u64,
}

impl Size {
    /// Measures a module.
    pub fn of(module: &[u8]) -> Size {
        let mut encoder = GzEncoder::new(Counter(0), Compression::best());
        let written = encoder.write_all(module).and_then(|()| encoder.finish());
        Size { raw: module.len() as u64, gzip: written.map_or(0, |counter| counter.0) }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), |sum, size| Size { raw: sum.raw + size.raw, gzip: sum.gzip + size.gzip })
    }
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9} bytes, {:>8} with gzip", self.raw, self.gzip)
    }
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_becomes_small() {
        let size = Size::of(&[7; 10_000]);
        assert_eq!(size.raw, 10_000);
        assert!((20..100).contains(&size.gzip), "{}", size.gzip);
    }
}
