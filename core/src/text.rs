//! The ordered alphabet of generated ids and identities.

/// 64 characters in ASCII order, so that texts of equal length sort as the numbers they write.
const ORDERED: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Writes the low `6 * N` bits of `bits`, most significant character first.
pub(crate) fn ordered<const N: usize>(bits: u128) -> [u8; N] {
    let mut text = [b'-'; N];
    for (place, byte) in text.iter_mut().rev().enumerate() {
        let digit = (bits >> (6 * place)) & 63;
        *byte = ORDERED[usize::try_from(digit).unwrap_or(0)];
    }
    text
}

/// The bits that [`ordered`] wrote; `None` if a character is not of the alphabet.
pub(crate) fn unordered(text: &[u8]) -> Option<u128> {
    text.iter().try_fold(0, |bits, byte| {
        let digit = ORDERED.iter().position(|have| have == byte)?;
        Some(bits << 6 | u128::try_from(digit).ok()?)
    })
}
