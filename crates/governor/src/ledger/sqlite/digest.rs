//! Short digests that stand for longer keys in the indexes, and keys as bytes.

use jiff::civil::Date;
use ota_governor_core::mutation::Mutation;
use ota_governor_core::name::CorrelationId;
use sha2::{Digest, Sha256};

use super::fault::{Outcome, damaged};

/// How many bytes of SHA-256 are kept where they must not collide by chance.
const ROOM: usize = 12;

/// Channel, account, property, room and date: 12 bytes of digest, then the date.
///
/// Dates of one room lie side by side in the indexes, and producers send them so: a batch touches few
/// pages. The date stands apart so that old ones can be told without reading a row.
pub(super) fn stock(mutation: &Mutation) -> [u8; 16] {
    let mut digest = Sha256::new();
    for part in [
        mutation.ota.as_str(),
        mutation.account.as_str(),
        mutation.property_id.as_str(),
        mutation.room_type_code.as_str(),
    ] {
        part_of(&mut digest, part);
    }
    let mut stock = [0; 16];
    let parts = digest.finalize().into_iter().take(ROOM).chain(date(mutation.stay_date));
    for (place, byte) in stock.iter_mut().zip(parts) {
        *place = byte;
    }
    stock
}

/// A correlation id as a number that is all but unique.
pub(super) fn name(id: &CorrelationId) -> i64 {
    let mut name = [0; 8];
    for (place, byte) in name.iter_mut().zip(Sha256::digest(id.as_str())) {
        *place = byte;
    }
    i64::from_be_bytes(name)
}

/// A date as bytes that sort as dates do.
pub(super) fn date(date: Date) -> [u8; 4] {
    // Years reach from -9999, days of a year to 366.
    let years = u32::try_from(i32::from(date.year()) + 10_000).unwrap_or(0);
    let days = u32::try_from(date.day_of_year()).unwrap_or(0);
    (years * 512 + days).to_be_bytes()
}

/// A text with its length before it, so that no two lists of texts read alike.
fn part_of(digest: &mut Sha256, part: &str) {
    digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
    digest.update(part.as_bytes());
}

/// The first half of a hash: enough where only equality counts.
pub(super) fn short(hash: [u8; 32]) -> [u8; 16] {
    let mut short = [0; 16];
    for (place, byte) in short.iter_mut().zip(hash) {
        *place = byte;
    }
    short
}

/// A key of hex digits as bytes.
pub(super) fn unhex(text: &str) -> Outcome<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|_| damaged("idempotency key"))?;
        u8::from_str_radix(pair, 16).map_err(|_| damaged("idempotency key"))
    });
    digits.collect()
}

/// A key's bytes as hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date as day;

    #[test]
    fn a_key_reads_back() {
        let key = hex(&[0, 1, 0x9a, 0xff]);
        assert_eq!(key, "00019aff");
        assert_eq!(unhex(&key).unwrap(), [0, 1, 0x9a, 0xff]);
        assert!(unhex("0g").is_err());
    }

    #[test]
    fn dates_sort_as_their_bytes() {
        let days =
            [day(-9999, 1, 1), day(2026, 1, 31), day(2026, 12, 31), day(2027, 1, 1), day(9999, 12, 31)];
        assert!(days.windows(2).all(|pair| date(pair[0]) < date(pair[1])));
    }
}
