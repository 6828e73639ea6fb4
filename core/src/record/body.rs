use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{RecordError, unreadable};

/// To how many bytes a reader lets a body decompress unless told otherwise: 16 MiB. Longer bodies are never compressed.
pub const BODY_LIMIT: usize = 16 << 20;

const LARGEST_RATIO: usize = 255;
const SIZE_LEN: usize = 4;

/// Which bodies are compressed, as an LZ4 block after its decompressed length (4 bytes, little-endian). One that does
/// not become smaller is stored plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// None.
    Off,
    /// Those with more than `bytes` bytes, up to [`BODY_LIMIT`].
    Over {
        /// The longest body that is left alone.
        bytes: usize,
    },
}

impl Default for Compression {
    /// Bodies over 1 KiB.
    fn default() -> Compression {
        Compression::Over { bytes: 1024 }
    }
}

pub(super) fn compress(body: &[u8], compression: Compression) -> Option<Vec<u8>> {
    let Compression::Over { bytes } = compression else {
        return None;
    };
    if body.len() <= bytes || body.len() > BODY_LIMIT {
        return None;
    }
    let mut stored = vec![0; SIZE_LEN + lz4_flex::block::get_maximum_output_size(body.len())];
    let (size, block) = stored.split_first_chunk_mut::<SIZE_LEN>()?;
    *size = u32::try_from(body.len()).ok()?.to_le_bytes();
    let len = SIZE_LEN + lz4_flex::block::compress_into(body, block).ok()?;
    stored.truncate(len);
    (len < body.len()).then_some(stored)
}

/// Checks the declared size before any memory is asked for: an LZ4 block grows to less than 255 times its length.
pub(super) fn decompress(stored: &[u8], limit: usize) -> Result<Bytes, RecordError> {
    let (size, block) =
        stored.split_first_chunk::<SIZE_LEN>().ok_or(unreadable("size of compressed body"))?;
    let bytes = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX);
    if bytes > block.len().saturating_mul(LARGEST_RATIO) {
        return Err(unreadable("size of compressed body"));
    }
    if bytes > limit {
        return Err(RecordError::BodyTooLarge { bytes, limit });
    }
    let mut body = vec![0; bytes];
    match lz4_flex::block::decompress_into(block, &mut body) {
        Ok(written) if written == bytes => Ok(body.into()),
        _ => Err(unreadable("compressed body")),
    }
}
