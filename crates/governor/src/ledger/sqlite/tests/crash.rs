//! Crashes, full disks, and others beside the dispatcher.

use std::path::PathBuf;

use jiff::civil::date;
use ota_governor_core::idempotency::Recipe;
use ota_governor_core::mutation::{Inventory, Mutation, Priority, Value};
use ota_governor_core::name::{AccountName, PropertyId, RatePlanCode, RoomTypeCode};
use ota_governor_core::state::State;

use super::*;

pub(super) const NOW: Timestamp = Timestamp::from_micros(1_789_898_400_000_000);

pub(super) fn entry(n: u16) -> Entry {
    let mutation = Mutation {
        correlation_id: CorrelationId::try_new(&format!("m-{n}")).unwrap(),
        ota: ChannelName::try_new("booking_com").unwrap(),
        account: AccountName::default(),
        property_id: PropertyId::try_new(&format!("prop_{n:08x}")).unwrap(),
        room_type_code: RoomTypeCode::try_new("DBL").unwrap(),
        rate_plan_code: Some(RatePlanCode::try_new("BAR").unwrap()),
        stay_date: date(2026, 12, 24),
        value: Value::Availability { inventory: Inventory::try_new(n % 10).unwrap() },
        priority: Priority::default(),
        time_zone: None,
        expires_at: None,
        sequence: None,
        batch: None,
    };
    Entry { mutation, recipe: Recipe::Revision, expires: None }
}

pub(super) fn entries(numbers: std::ops::Range<u16>) -> Vec<Entry> {
    numbers.map(entry).collect()
}

pub(super) fn lane() -> LaneKey {
    entry(0).mutation.lane()
}

pub(super) fn claim(picks: usize) -> Claim {
    Claim { lane: lane(), now: NOW, picks: vec![None; picks] }
}

async fn counted(ledger: &SqliteLedger, state: State) -> u64 {
    let tallies = ledger.tallies().await.unwrap();
    let all: u64 = tallies.rows.iter().map(|row| row.count).sum();
    assert_eq!(all + tallies.pruned + tallies.discarded, tallies.accepted);
    tallies.rows.iter().filter(|row| row.state == state).map(|row| row.count).sum()
}

/// The files as a power cut would leave them, beside the living ones.
fn as_after_a_crash(path: &Path) -> PathBuf {
    let copy = path.with_file_name("crashed.db");
    std::fs::copy(path, &copy).unwrap();
    std::fs::copy(path.with_file_name("governor.db-wal"), path.with_file_name("crashed.db-wal")).unwrap();
    copy
}

#[tokio::test]
async fn a_crashed_dispatcher_loses_no_mutation_and_its_calls_are_due_again() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let ledger = open_as(&path, true).unwrap();
    ledger.enqueue(entries(0..10), NOW).await.unwrap();
    let sent = ledger.claim(claim(3)).await.unwrap().jobs;
    assert_eq!(sent.len(), 3);

    let crashed = open_as(&as_after_a_crash(&path), true).unwrap();
    assert_eq!(counted(&crashed, State::InFlight).await, 3);
    let later = NOW + Duration::from_secs(5);
    assert_eq!(crashed.recover(later, Duration::ZERO).await.unwrap(), 3);
    assert_eq!(counted(&crashed, State::Deferred).await, 3);
    assert_eq!(counted(&crashed, State::Queued).await, 7);
    let calls = crashed.past_calls(NOW).await.unwrap();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.answered_at.is_none() && call.sent_at == NOW), "{calls:?}");

    assert_eq!(crashed.recover(later, Duration::ZERO).await.unwrap(), 0);

    let again = crashed.claim(Claim { now: later, ..claim(3) }).await.unwrap().jobs;
    let keys = |jobs: &[super::super::super::Job]| {
        let mut keys: Vec<_> = jobs.iter().map(|job| job.idempotency_key.clone()).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&again), keys(&sent), "the same mutations under the same keys");
    assert!(again.iter().all(|job| job.attempts == 0), "a call of unknown outcome is no counted attempt");
}

#[tokio::test]
async fn what_was_answered_as_accepted_is_in_the_files_already() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let ledger = open_as(&path, true).unwrap();
    let groups = (0..20).map(|n| ledger.enqueue(entries(n * 10..n * 10 + 10), NOW));
    for admissions in futures::future::join_all(groups).await {
        assert!(admissions.unwrap().iter().all(|a| matches!(a, Admission::Accepted { .. })));
    }
    let crashed = open_as(&as_after_a_crash(&path), true).unwrap();
    assert_eq!(counted(&crashed, State::Queued).await, 200);
    assert_eq!(crashed.id(), ledger.id());
}

#[tokio::test]
async fn a_full_disk_fails_the_call_and_nothing_else() {
    let dir = dir();
    let ledger = open_as(&dir.path().join("governor.db"), true).unwrap();
    ledger.enqueue(entries(0..10), NOW).await.unwrap();
    limit_pages(&ledger, "(SELECT page_count + 3 FROM pragma_page_count)").await;

    // Gathered into one group: the flood has no room, the claim has.
    let flood = ledger.enqueue(entries(10..5_000), NOW);
    let small = ledger.claim(claim(2));
    let (flood, small) = futures::join!(flood, small);
    let Err(LedgerError::Failed { source, .. }) = flood else { panic!("accepted on a full disk") };
    assert!(source.to_string().contains("full"), "{source}");
    assert_eq!(small.unwrap().jobs.len(), 2);
    assert_eq!(counted(&ledger, State::Queued).await, 8);
    assert_eq!(ledger.get(&entry(10).mutation.correlation_id).await.unwrap(), None);

    limit_pages(&ledger, "1000000").await;
    ledger.enqueue(entries(10..5_000), NOW).await.unwrap();
    assert_eq!(counted(&ledger, State::Queued).await, 4_998);
}

async fn limit_pages(ledger: &SqliteLedger, pages: &'static str) {
    let set = move |tx: &mut tx::Tx<'_>| {
        let pages: i64 = tx.conn().query_row(&format!("SELECT {pages}"), [], |row| row.get(0))?;
        tx.conn().pragma_update(None, "max_page_count", pages)?;
        Ok(())
    };
    ledger.writer.run("limit its size", 1, set).await.unwrap();
}

#[tokio::test]
async fn a_cancel_beside_the_dispatcher_takes_back_all_but_what_is_in_flight() {
    let dir = dir();
    let path = dir.path().join("governor.db");
    let dispatcher = open_as(&path, true).unwrap();
    dispatcher.enqueue(entries(0..5), NOW).await.unwrap();
    let sent = dispatcher.claim(claim(1)).await.unwrap().jobs;
    let mut mark = dispatcher.changes(&lane());
    mark.borrow_and_update();

    let other = open_as(&path, false).unwrap();
    let taken = other.cancel(&Filter::default(), NOW).await.unwrap();
    assert_eq!(taken.len(), 4);
    assert!(!taken.contains(&sent[0].mutation.correlation_id));
    tokio::time::timeout(Duration::from_secs(1), mark.changed()).await.unwrap().unwrap();
    assert_eq!(dispatcher.head(&lane(), NOW).await.unwrap(), Head::default());
    assert_eq!(dispatcher.claim(claim(4)).await.unwrap().jobs, vec![]);
    assert_eq!(counted(&dispatcher, State::Cancelled).await, 4);
    assert_eq!(counted(&dispatcher, State::InFlight).await, 1);
}
