//! The numbers that stand for words in the file; never renumbered.

use ota_governor_core::idempotency::Recipe;
use ota_governor_core::mutation::Kind;
use ota_governor_core::state::State;

use super::fault::{Outcome, damaged};

/// The first final state.
pub(super) const FINAL: i64 = 3;

/// The number of a state.
pub(super) const fn state(state: State) -> i64 {
    match state {
        State::Queued => 0,
        State::InFlight => 1,
        State::Deferred => 2,
        State::Committed => 3,
        State::DeadLettered => 4,
        State::Superseded => 5,
        State::Cancelled => 6,
    }
}

/// The state of a number.
pub(super) const fn read_state(number: i64) -> Outcome<State> {
    Ok(match number {
        0 => State::Queued,
        1 => State::InFlight,
        2 => State::Deferred,
        3 => State::Committed,
        4 => State::DeadLettered,
        5 => State::Superseded,
        6 => State::Cancelled,
        _ => return Err(damaged("state")),
    })
}

/// The number of a kind.
pub(super) const fn kind(kind: Kind) -> i64 {
    match kind {
        Kind::Rate => 0,
        Kind::Availability => 1,
        Kind::Restriction => 2,
    }
}

/// The kind of a number.
pub(super) const fn read_kind(number: i64) -> Outcome<Kind> {
    Ok(match number {
        0 => Kind::Rate,
        1 => Kind::Availability,
        2 => Kind::Restriction,
        _ => return Err(damaged("kind")),
    })
}

/// The number of a recipe.
pub(super) const fn recipe(recipe: Recipe) -> i64 {
    match recipe {
        Recipe::Revision => 0,
        Recipe::Content => 1,
    }
}

/// The recipe of a number.
pub(super) const fn read_recipe(number: i64) -> Outcome<Recipe> {
    Ok(match number {
        0 => Recipe::Revision,
        1 => Recipe::Content,
        _ => return Err(damaged("recipe")),
    })
}

/// What keeps an open mutation from going.
pub(super) mod gate {
    /// Final or in flight: nothing to keep.
    pub(in super::super) const NONE: i64 = 0;
    /// Nothing: it may go.
    pub(in super::super) const READY: i64 = 1;
    /// The time in `at_us`.
    pub(in super::super) const TIME: i64 = 2;
    /// Another mutation of its stock.
    pub(in super::super) const BEHIND: i64 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_reads_back() {
        for word in State::ALL {
            assert_eq!(read_state(state(*word)).unwrap(), *word);
            assert_eq!(word.is_open(), state(*word) < FINAL);
        }
        for word in Kind::ALL {
            assert_eq!(read_kind(kind(*word)).unwrap(), *word);
        }
        assert!(read_state(7).is_err());
    }
}
