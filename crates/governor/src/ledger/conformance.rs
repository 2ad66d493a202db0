//! The suite that every ledger must pass: one async function per promise, each named after it.
//!
//! A store gives a [`Factory`] and calls [`ledger_conformance!`](crate::ledger_conformance), which makes
//! one test of every promise; [`differential`] then plays random operations on two stores and compares
//! every answer. The time is handed in, never read: nothing here sleeps.

#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each of these functions is a test: it says what broke by panicking"
)]

pub mod accept;
pub mod claim;
pub mod dead;
pub mod desk;
pub mod differential;
pub mod keep;
pub mod lanes;
pub mod order;
pub mod settle;

use std::sync::Arc;

use async_trait::async_trait;

use super::Ledger;
pub use differential::differential;

/// Makes ledgers to test.
#[async_trait]
pub trait Factory: Send + Sync {
    /// A new and empty ledger.
    async fn open(&self) -> Arc<dyn Ledger>;

    /// The same ledger as a new process finds it after the one before was killed. A store that lives in
    /// its process alone gives back what it got.
    async fn reopen(&self, ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger>;
}

/// Makes one `#[tokio::test]` of every promise, for the factory that the expression gives.
#[macro_export]
macro_rules! ledger_conformance {
    ($factory:expr) => {
        $crate::ledger_conformance! { @ $factory;
            accept::a_first_one_is_accepted_with_its_revision,
            accept::the_same_id_with_the_same_content_is_known,
            accept::the_same_id_with_other_content_is_a_conflict,
            accept::a_known_one_is_told_by_what_was_said_not_by_what_became_of_it,
            accept::a_lower_sequence_is_stale_even_when_the_higher_is_done,
            accept::revisions_count_per_cell_and_outlive_their_mutations,
            accept::what_was_accepted_is_there_after_a_crash,
            order::the_newest_takes_the_place_and_the_urgency_of_the_older,
            order::a_cell_set_again_and_again_still_goes_out,
            order::cells_that_differ_in_one_name_do_not_meet,
            order::one_of_a_cell_is_in_flight_and_the_newer_waits,
            order::an_older_one_that_fails_is_superseded_and_never_retried,
            order::an_older_one_that_nothing_was_sent_of_is_superseded_too,
            order::a_parked_older_one_does_not_put_its_value_back,
            order::what_is_in_flight_is_a_frozen_copy,
            order::a_restriction_is_superseded_only_by_one_that_sets_every_field,
            order::an_urgent_restriction_is_not_stuck_behind_a_patient_one,
            order::a_failed_restriction_that_is_not_covered_goes_again_first,
            order::an_availability_rewrites_every_waiting_rate_it_covers,
            order::a_rate_and_an_availability_of_one_stock_are_never_in_flight_together,
            order::a_newer_rate_waits_behind_an_older_availability,
            order::overlapping_availabilities_go_oldest_first,
            order::a_rate_that_comes_back_takes_the_inventory_accepted_meanwhile,
            order::a_cell_rests_after_an_unknown_outcome,
            order::a_rest_outlives_the_commit_of_the_value_that_was_sent_again,
            order::an_inventory_rests_whoever_carried_it,
            order::a_rewritten_rate_waits_for_its_own_earlier_request,
            claim::the_most_urgent_goes_first_and_equals_in_the_order_accepted,
            claim::each_pick_gets_one_of_its_property,
            claim::an_urgent_one_overtakes_a_backlog_of_other_cells,
            claim::a_parked_one_goes_when_it_is_due_and_keeps_its_place,
            claim::an_expired_one_costs_no_pick_and_names_what_it_replaced,
            claim::expiry_is_reached_exactly_at_its_time,
            claim::a_claimed_one_is_not_claimed_again,
            claim::a_head_tells_what_may_go_and_when_the_next_is_due,
            claim::a_keyed_lane_lists_properties_by_urgency,
            settle::a_commit_keeps_the_confirmation,
            settle::a_deferral_keeps_its_reason_and_due_time,
            settle::a_dead_letter_keeps_its_whole_history,
            settle::what_was_not_sent_goes_back_to_where_it_stood,
            settle::only_counted_attempts_count_and_every_request_is_kept,
            settle::an_answer_that_comes_late_changes_nothing,
            settle::lane_state_is_written_with_the_outcomes,
            dead::dead_letters_are_listed_by_reason_and_shown_with_their_history,
            dead::a_replayed_one_starts_anew_with_the_same_key,
            dead::a_replay_never_overwrites_a_newer_value,
            dead::a_cancelled_newer_one_does_not_forbid_a_replay,
            dead::a_replayed_restriction_is_refused_only_for_the_fields_it_shares,
            dead::a_replayed_rate_takes_the_newest_inventory,
            dead::a_replayed_availability_is_refused_for_a_newer_rate,
            dead::discarded_ones_are_gone_and_still_counted,
            dead::a_newer_value_that_left_the_record_still_forbids_a_replay,
            keep::a_cancel_takes_back_what_waits_and_leaves_what_is_in_flight,
            keep::a_cancel_frees_what_stood_behind,
            keep::a_crash_loses_nothing_and_parks_what_was_in_flight,
            keep::after_a_crash_an_older_value_does_not_go_again,
            keep::a_lost_dispatcher_sends_nothing_twice,
            keep::past_calls_survive_a_crash_and_a_discard,
            keep::pruning_keeps_what_is_open_and_what_is_recent,
            keep::pages_of_a_list_neither_skip_nor_repeat,
            keep::filters_narrow_a_list,
            keep::counts_are_of_these_mutations_only,
            lanes::holds_survive_a_restart_one_per_scope_and_cause,
            lanes::a_lift_takes_one_cause_or_all,
            lanes::health_survives_a_restart,
            lanes::lanes_are_those_with_open_mutations,
            lanes::work_moves_the_mark_of_its_lane_and_of_no_other,
            lanes::a_settlement_moves_the_mark_of_the_lane_it_frees,
            lanes::a_hold_moves_the_marks_it_covers,
        }
    };
    (@ $factory:expr; $($module:ident :: $promise:ident,)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let factory = $factory;
                $crate::ledger::conformance::$module::$promise(&factory).await;
            }
        )*
    };
}
