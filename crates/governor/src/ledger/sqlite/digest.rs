//! The short digest that stands for a stock group.

use jiff::civil::Date;
use ota_governor_core::mutation::Mutation;
use sha2::{Digest, Sha256};

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

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date as day;

    #[test]
    fn dates_sort_as_their_bytes() {
        let days =
            [day(-9999, 1, 1), day(2026, 1, 31), day(2026, 12, 31), day(2027, 1, 1), day(9999, 12, 31)];
        assert!(days.windows(2).all(|pair| date(pair[0]) < date(pair[1])));
    }
}
