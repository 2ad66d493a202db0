//! How fast a `SQLite` ledger accepts, opens, claims and settles, against its bars.
//!
//! `cargo bench -p ota-governor --bench ledger` measures a backlog of a million; `-- 100000` another one.

#![expect(clippy::print_stdout, reason = "a measurement is printed")]
#![expect(clippy::float_arithmetic, clippy::as_conversions, reason = "rates and ratios, for people")]
#![expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::civil::date;
use ota_governor::clock::Clock;
use ota_governor::core::idempotency::Recipe;
use ota_governor::core::lane::LaneKey;
use ota_governor::core::mutation::{Inventory, Mutation, Priority, Value};
use ota_governor::core::name::{
    AccountName, ChannelName, CorrelationId, PropertyId, RatePlanCode, RoomTypeCode,
};
use ota_governor::ledger::sqlite::{OpenOptions, SqliteLedger};
use ota_governor::ledger::{Attempt, Claim, Disposition, Entry, Ledger, Outcome as Settles, Settlement};
use rusqlite::Connection;
use tokio::time::Instant;

type Done<T> = Result<T, Box<dyn std::error::Error>>;

const BATCH: usize = 1_000;
const IN_FLIGHT: usize = 8;
const CYCLES: usize = 1_000;

#[tokio::main]
async fn main() -> Done<()> {
    let backlog = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1_000_000);
    let dir = tempfile::tempdir()?;
    let small = dir.path().join("small.db");
    let large = dir.path().join("large.db");

    let ledger = open(&small)?;
    accept(&ledger, 2 * CYCLES).await?;
    let small_cycle = cycle(&ledger).await?;
    ledger.close().await?;
    drop(ledger);

    let ledger = open(&large)?;
    let accepting = accept(&ledger, backlog).await?;
    let peak = peak_rss_mib();
    ledger.close().await?;
    drop(ledger);

    // What is measured next waits for its own writes, not for those of the flood.
    std::fs::File::open(&large)?.sync_all()?;
    let started = Instant::now();
    let ledger = open(&large)?;
    ledger.recover(Clock::system().now(), Duration::from_secs(15)).await?;
    let counted = ledger.tallies().await?;
    let opening = started.elapsed();
    assert_eq!(counted.accepted, backlog as u64);
    let large_cycle = cycle(&ledger).await?;
    ledger.close().await?;
    drop(ledger);

    let bare = bare(&dir.path().join("bare.db"), &large)?;
    let per_second = |took: Duration| backlog as f64 / took.as_secs_f64();
    let (ours, theirs) = (per_second(accepting), per_second(bare));
    println!("backlog                       {backlog}");
    println!("accepted per second           {ours:.0} (bar 50000)");
    println!("bare inserts per second       {theirs:.0}");
    println!("ratio to bare                 {:.2} (bar 0.40)", ours / theirs);
    println!("opening, recovering, counting {opening:.1?} (bar 1 s)");
    println!("claim + settle of one         {small_cycle:.1?} at {} waiting", 2 * CYCLES);
    println!("claim + settle of one         {large_cycle:.1?} at {backlog} waiting");
    println!("peak RSS while accepting      {peak} MiB (bar 200)");
    Ok(())
}

fn open(path: &Path) -> Done<Arc<SqliteLedger>> {
    Ok(SqliteLedger::open(path, OpenOptions { dispatcher: true, clock: Clock::system() })?)
}

async fn accept(ledger: &Arc<SqliteLedger>, backlog: usize) -> Done<Duration> {
    let now = Clock::system().now();
    let started = Instant::now();
    let mut batches = stream::iter((0..backlog).step_by(BATCH))
        .map(|first| {
            let ledger = Arc::clone(ledger);
            tokio::spawn(async move {
                let entries = (first..backlog.min(first + BATCH)).filter_map(entry).collect();
                ledger.enqueue(entries, now).await.map(|admissions| admissions.len())
            })
        })
        .buffered(IN_FLIGHT);
    let mut accepted = 0;
    while let Some(batch) = batches.next().await {
        accepted += batch??;
    }
    assert_eq!(accepted, backlog);
    Ok(started.elapsed())
}

/// The `n`th of a flood: a year of dates per room and plan, ids at random as the governor makes them.
fn entry(n: usize) -> Option<Entry> {
    let (day, plan) = (n % 365, n / 365);
    let mutation = Mutation {
        correlation_id: CorrelationId::try_new(&uuid::Uuid::new_v4().simple().to_string()).ok()?,
        ota: ChannelName::try_new("booking_com").ok()?,
        account: AccountName::default(),
        property_id: PropertyId::try_new(&format!("prop_{:08x}", plan / 12)).ok()?,
        room_type_code: RoomTypeCode::try_new(&format!("ROOM-{}", plan / 3 % 4)).ok()?,
        rate_plan_code: Some(RatePlanCode::try_new(&format!("PLAN-{}", plan % 3)).ok()?),
        stay_date: date(2026, 12, 24).checked_add(jiff::Span::new().days(i64::try_from(day).ok()?)).ok()?,
        value: Value::Rate {
            amount: "119.50".parse().ok()?,
            currency: "EUR".parse().ok()?,
            inventory: Inventory::try_new(u16::try_from(n % 20).ok()?)?,
        },
        priority: Priority::default(),
        time_zone: None,
        expires_at: None,
        sequence: None,
        batch: None,
    };
    Some(Entry { mutation, recipe: Recipe::Revision, expires: None })
}

async fn cycle(ledger: &Arc<SqliteLedger>) -> Done<Duration> {
    let clock = Clock::system();
    let lane: LaneKey = entry(0).ok_or("the first entry is valid")?.mutation.lane();
    let started = Instant::now();
    for _ in 0..CYCLES {
        let now = clock.now();
        let claimed = ledger.claim(Claim { lane: lane.clone(), now, picks: vec![None] }).await?;
        let job = claimed.jobs.first().ok_or("a backlog brings a job")?;
        let attempt = Attempt {
            sent_at: now,
            answered_at: now,
            status: Some(200),
            answer: None,
            retry_after: None,
            counted: true,
        };
        let outcome = Settles {
            id: job.id,
            attempt: Some(attempt),
            disposition: Disposition::Committed { confirmation_id: "accepted".to_owned() },
            rest_until: None,
        };
        let settlement = Settlement {
            lane: lane.clone(),
            now,
            outcomes: vec![outcome],
            health: None,
            holds: Vec::new(),
            lifted: Vec::new(),
        };
        ledger.settle(settlement).await?;
    }
    Ok(started.elapsed() / u32::try_from(CYCLES)?)
}

/// The same rows into the same tables with nothing around them: bound parameters, no rule looked at.
fn bare(path: &Path, rows: &Path) -> Done<Duration> {
    let source = Connection::open(rows)?;
    let mut conn = Connection::open(path)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 16000;
         PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;",
    )?;
    conn.execute_batch(include_str!("../src/ledger/migrations/0001_ledger.sql"))?;
    conn.execute_batch(include_str!("../src/ledger/migrations/0002_frame.sql"))?;
    let mut mutations = source.prepare("SELECT * FROM mutation ORDER BY id")?;
    let mut mutations = mutations.query([])?;
    let mut cells = source.prepare(
        "SELECT c.* FROM mutation m CROSS JOIN cell c ON c.stock = m.stock AND c.kind = m.kind AND c.plan = ifnull(m.plan, '') ORDER BY m.id",
    )?;
    let mut cells = cells.query([])?;
    let mut took = Duration::ZERO;
    loop {
        let (mutation, cell) = (take(&mut mutations)?, take(&mut cells)?);
        if mutation.is_empty() {
            return Ok(took);
        }
        let started = Instant::now();
        let tx = conn.transaction()?;
        insert(&tx, "mutation", &mutation)?;
        insert(&tx, "cell", &cell)?;
        tx.commit()?;
        took += started.elapsed();
    }
}

type Cells = Vec<rusqlite::types::Value>;

fn take(rows: &mut rusqlite::Rows<'_>) -> Done<Vec<Cells>> {
    let mut taken = Vec::new();
    while taken.len() < IN_FLIGHT * BATCH {
        let Some(row) = rows.next()? else { break };
        let width = row.as_ref().column_count();
        taken.push((0..width).map(|at| row.get(at)).collect::<rusqlite::Result<_>>()?);
    }
    Ok(taken)
}

fn insert(conn: &Connection, table: &str, rows: &[Cells]) -> Done<()> {
    let width = rows.first().map_or(0, Vec::len);
    let marks = vec!["?"; width].join(", ");
    let mut statement = conn.prepare_cached(&format!("INSERT INTO {table} VALUES ({marks})"))?;
    for row in rows {
        statement.execute(rusqlite::params_from_iter(row))?;
    }
    Ok(())
}

fn peak_rss_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) / 1024
}
