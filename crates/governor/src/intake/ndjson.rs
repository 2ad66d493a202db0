//! One JSON object per line.

use ota_governor_core::mutation::Mutation;
use ota_governor_core::mutation::draft::Context;
use ota_governor_core::mutation::fault::Faults;
use ota_governor_core::time::Timestamp;

/// Reads one line; `None` if it is blank.
pub(super) fn read(bytes: &[u8], context: &Context, now: Timestamp) -> Option<Result<Mutation, Faults>> {
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    Some(Mutation::from_json(bytes, context, now, &mut rand::rng()))
}
