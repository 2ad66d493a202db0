//! Dead letters: listed, shown, replayed, discarded.

use ota_governor::core::state::{DeadReason, State};

use super::*;

fn dead() -> Disposition {
    Disposition::DeadLettered { reason: DeadReason::ClientRejection }
}

async fn desk_with_two() -> Desk {
    let desk = Desk::new();
    desk.enqueue("m1", 1, 5).await;
    desk.settle(400, dead()).await;
    desk.enqueue("m2", 2, 6).await;
    desk.settle(404, dead()).await;
    desk
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_listed_by_filter_and_shown_with_their_history() {
    let desk = desk_with_two().await;
    let (_, said) = desk.run("dead-letters list --property prop_00000002").await;
    insta::assert_snapshot!(said, @r"
    id  lane                              cell                                       reason            status  attempts  since
    m2  booking_com:default/availability  prop_00000002 DLX (every plan) 2026-10-01  client_rejection     404         1  2026-09-20T10:00:00.000Z (0s ago)
    ");
    let (_, said) = desk.run("dead-letters list --reason expired").await;
    assert_eq!(said, "no dead letters\n");
    let (_, said) = desk.run("dead-letters list --limit 1").await;
    assert!(said.ends_with("and more: --limit shows them\n"), "{said}");
    let (_, said) = desk.run("dead-letters list --json").await;
    let first: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!((&first["correlation_id"], &first["last_status"]), (&"m1".into(), &400.into()));
    let (_, said) = desk.run("dead-letters show m1").await;
    assert!(said.contains("400 after 40ms  no room"), "{said}");
    assert_eq!(desk.run("dead-letters show m9").await.0, Exit::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_refused_where_a_newer_value_of_the_cell_exists() {
    let desk = desk_with_two().await;
    desk.enqueue("newer", 1, 9).await;
    let (exit, said) = desk.run("dead-letters replay --all").await;
    assert_eq!(exit, Exit::Refused);
    assert_eq!(said, "m1 is refused: a newer value of its cell exists, newer\n1 queued again, 1 refused\n");
    let state = desk.ledger.get(&CorrelationId::try_new("m2").unwrap()).await.unwrap().unwrap().state;
    assert_eq!(state, State::Queued);
}

#[tokio::test(start_paused = true)]
async fn discarding_takes_those_named_and_says_which_are_no_dead_letters() {
    let desk = desk_with_two().await;
    desk.enqueue("m3", 3, 5).await;
    let (exit, said) = desk.run("dead-letters discard m1 m3 m9").await;
    assert_eq!(exit, Exit::Refused);
    assert_eq!(said, "m3 is no dead letter: it is queued\nm9 is not in the ledger\n1 discarded, 2 refused\n");
    assert_eq!(desk.ledger.tallies().await.unwrap().discarded, 1);
    let (exit, said) = desk.run("dead-letters discard --all --ota booking_com").await;
    assert_eq!((exit, said.as_str()), (Exit::Done, "1 discarded, 0 refused\n"));
}

#[test]
fn all_and_ids_exclude_each_other_and_one_is_needed() {
    for line in [vec!["replay"], vec!["replay", "m1", "--all"], vec!["discard", "--ota", "x"]] {
        let words = ["ota-governor", "dead-letters"].into_iter().chain(line.clone());
        assert!(Arguments::try_parse_from(words).is_err(), "{line:?}");
    }
}
