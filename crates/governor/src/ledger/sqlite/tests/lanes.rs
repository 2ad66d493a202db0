//! Heads of lanes keyed by property, and lists, at sizes where an index matters.

use ota_governor_core::name::PropertyId;

use super::crash::{NOW, claim, entries, entry, lane};
use super::*;

#[tokio::test]
async fn a_property_behind_a_long_queue_of_another_is_in_the_head() {
    let dir = dir();
    let ledger = open_as(&dir.path().join("governor.db"), true).unwrap();
    ledger.key_by_property(vec![lane()]).await.unwrap();
    let first = entry(0).mutation.property_id;
    let mut flood = entries(0..1_500);
    for entry in &mut flood {
        entry.mutation.room_type_code =
            ota_governor_core::name::RoomTypeCode::try_new(&entry.mutation.correlation_id.to_string())
                .unwrap();
        entry.mutation.property_id = first.clone();
    }
    ledger.enqueue(flood, NOW).await.unwrap();
    ledger.enqueue(entries(2_000..2_003), NOW).await.unwrap();
    let head = ledger.head(&lane(), NOW).await.unwrap();
    let expected: Vec<PropertyId> =
        [entry(0), entry(2_000), entry(2_001), entry(2_002)].map(|entry| entry.mutation.property_id).to_vec();
    assert_eq!(head.properties, expected);
    assert_eq!(head.ready, 1_000, "counted up to a bound");

    let picks = expected.into_iter().map(Some).collect();
    let jobs = ledger.claim(Claim { picks, ..claim(0) }).await.unwrap().jobs;
    let ids: Vec<_> = jobs.iter().map(|job| job.mutation.correlation_id.to_string()).collect();
    assert_eq!(ids, ["m-0", "m-2000", "m-2001", "m-2002"]);
}

#[tokio::test]
async fn a_lane_keyed_while_work_waits_lists_that_work() {
    let dir = dir();
    let ledger = open_as(&dir.path().join("governor.db"), true).unwrap();
    ledger.enqueue(entries(0..3), NOW).await.unwrap();
    assert_eq!(ledger.head(&lane(), NOW).await.unwrap().properties, vec![]);
    ledger.key_by_property(vec![lane()]).await.unwrap();
    assert_eq!(ledger.head(&lane(), NOW).await.unwrap().properties.len(), 3);
    let pick = Some(entry(1).mutation.property_id);
    let jobs = ledger.claim(Claim { picks: vec![pick], ..claim(0) }).await.unwrap().jobs;
    assert_eq!(jobs[0].mutation.correlation_id, entry(1).mutation.correlation_id);
    ledger.key_by_property(vec![]).await.unwrap();
    assert_eq!(ledger.head(&lane(), NOW).await.unwrap().properties, vec![]);
}

#[tokio::test]
async fn a_process_that_only_looks_cannot_send() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let dispatcher = open_as(&path, true).unwrap();
    dispatcher.enqueue(entries(0..3), NOW).await.unwrap();
    let looker = open_as(&path, false).unwrap();
    assert!(rule(looker.claim(claim(1)).await.unwrap_err()).contains("only the dispatcher"));
    assert_eq!(looker.list(&Filter::default(), None, 2).await.unwrap().len(), 2);
    assert_eq!(dispatcher.claim(claim(5)).await.unwrap().jobs.len(), 3);
}
