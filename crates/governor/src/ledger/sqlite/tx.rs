//! One write transaction: the connection, and the counts that are kept beside the rows.
//!
//! Counts are gathered in memory and written once per commit, so that a thousand entries of one lane
//! cost one update, and opening a ledger of a million rows reads a handful.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::name::{AccountName, ChannelName, EndpointName};
use ota_governor_core::state::State;
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::code;
use super::fault::{Outcome, damaged};
use crate::ledger::MutationId;

/// A lane's row.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) id: i64,
    pub(super) key: Arc<LaneKey>,
    pub(super) keyed: bool,
}

/// Lanes already looked up. Forgotten after a rollback, which may have undone their rows.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_key: HashMap<Arc<LaneKey>, Lane>,
    by_id: HashMap<i64, Lane>,
}

impl Lanes {
    pub(super) fn forget(&mut self) {
        self.by_key.clear();
        self.by_id.clear();
    }

    fn keep(&mut self, lane: &Lane) {
        self.by_key.insert(Arc::clone(&lane.key), lane.clone());
        self.by_id.insert(lane.id, lane.clone());
    }
}

/// Which marks move once the transaction is durable.
#[derive(Debug, Default)]
pub(super) struct Moved {
    pub(super) lanes: BTreeSet<Arc<LaneKey>>,
    pub(super) set: bool,
    /// Where a hold has changed.
    pub(super) scopes: Vec<Scope>,
}

/// A transaction under way.
pub(super) struct Tx<'a> {
    conn: &'a Connection,
    lanes: &'a mut Lanes,
    ledger_id: &'a str,
    tally: BTreeMap<(i64, u16, i64), i64>,
    /// The count of accepted mutations before this transaction, once it is known.
    base: Option<i64>,
    accepted: i64,
    pruned: i64,
    discarded: i64,
    moved: Moved,
}

impl<'a> Tx<'a> {
    pub(super) fn new(conn: &'a Connection, lanes: &'a mut Lanes, ledger_id: &'a str) -> Self {
        Self {
            conn,
            lanes,
            ledger_id,
            tally: BTreeMap::new(),
            base: None,
            accepted: 0,
            pruned: 0,
            discarded: 0,
            moved: Moved::default(),
        }
    }

    pub(super) const fn conn(&self) -> &'a Connection {
        self.conn
    }

    pub(super) const fn ledger_id(&self) -> &'a str {
        self.ledger_id
    }

    pub(super) fn sql(&self, sql: &str) -> Outcome<CachedStatement<'a>> {
        Ok(self.conn.prepare_cached(sql)?)
    }

    /// The lane of this key, made if it is new.
    pub(super) fn lane(&mut self, key: &LaneKey) -> Outcome<Lane> {
        if let Some(lane) = self.lanes.by_key.get(key) {
            return Ok(lane.clone());
        }
        let names = (key.channel.as_str(), key.account.as_str(), key.endpoint.as_str());
        self.sql("INSERT INTO lane (channel, account, endpoint) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
            .execute(names)?;
        let (id, keyed) = self
            .sql("SELECT id, keyed FROM lane WHERE channel = ?1 AND account = ?2 AND endpoint = ?3")?
            .query_row(names, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let lane = Lane { id, key: Arc::new(key.clone()), keyed };
        self.lanes.keep(&lane);
        Ok(lane)
    }

    /// The lane of this row id.
    pub(super) fn lane_of(&mut self, id: i64) -> Outcome<Lane> {
        if let Some(lane) = self.lanes.by_id.get(&id) {
            return Ok(lane.clone());
        }
        let (channel, account, endpoint, keyed): (String, String, String, bool) = self
            .sql("SELECT channel, account, endpoint, keyed FROM lane WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .optional()?
            .ok_or(damaged("lane"))?;
        let lane = Lane { id, key: Arc::new(lane_key(&channel, &account, &endpoint)?), keyed };
        self.lanes.keep(&lane);
        Ok(lane)
    }

    /// Forgets what is known of lanes whose rows were changed past this cache.
    pub(super) fn forget_lanes(&mut self) {
        self.lanes.forget();
    }

    /// Counts a new mutation and gives it its id.
    pub(super) fn count_accepted(&mut self, lane: i64, priority: u16) -> Outcome<MutationId> {
        let base = match self.base {
            Some(base) => base,
            None => self.sql("SELECT accepted FROM counter")?.query_row([], |row| row.get(0))?,
        };
        self.base = Some(base);
        self.accepted += 1;
        self.add(lane, priority, State::Queued, 1);
        Ok(MutationId(base + self.accepted))
    }

    /// Counts a mutation that moved from one state and priority to another.
    pub(super) fn count_moved(&mut self, lane: i64, from: (u16, State), to: (u16, State)) {
        if from != to {
            self.add(lane, from.0, from.1, -1);
            self.add(lane, to.0, to.1, 1);
        }
    }

    /// Counts a finished row that was removed after retention.
    pub(super) fn count_pruned(&mut self, lane: i64, priority: u16, state: State) {
        self.pruned += 1;
        self.add(lane, priority, state, -1);
    }

    /// Counts a dead letter that was discarded.
    pub(super) fn count_discarded(&mut self, lane: i64, priority: u16) {
        self.discarded += 1;
        self.add(lane, priority, State::DeadLettered, -1);
    }

    fn add(&mut self, lane: i64, priority: u16, state: State, n: i64) {
        *self.tally.entry((lane, priority, code::state(state))).or_insert(0) += n;
    }

    /// The lane's mark moves: something in it may go, or is due at another time.
    pub(super) fn touch(&mut self, lane: &Lane) {
        if !self.moved.lanes.contains(&lane.key) {
            self.moved.lanes.insert(Arc::clone(&lane.key));
        }
    }

    /// The marks of the lanes of a scope move: a hold on it has changed.
    pub(super) fn touch_scope(&mut self, scope: &Scope) {
        self.moved.scopes.push(scope.clone());
    }

    /// Writes the counts; the last thing before the commit.
    pub(super) fn flush(mut self) -> Outcome<Moved> {
        let mut opened: BTreeMap<i64, i64> = BTreeMap::new();
        for ((lane, priority, state), n) in std::mem::take(&mut self.tally) {
            if n == 0 {
                continue;
            }
            if state < code::FINAL {
                *opened.entry(lane).or_insert(0) += n;
            }
            let left: i64 = self
                .sql(
                    "INSERT INTO tally (lane_id, priority, state, n) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING n",
                )?
                .query_row((lane, priority, state, n), |row| row.get(0))?;
            if left == 0 {
                self.sql("DELETE FROM tally WHERE lane_id = ?1 AND priority = ?2 AND state = ?3")?
                    .execute((lane, priority, state))?;
            }
        }
        for (lane, n) in opened {
            if n == 0 {
                continue;
            }
            let open: i64 = self
                .sql("UPDATE lane SET open = open + ?2 WHERE id = ?1 RETURNING open")?
                .query_row((lane, n), |row| row.get(0))?;
            self.moved.set |= n > 0 && open == n;
        }
        if self.accepted != 0 || self.pruned != 0 || self.discarded != 0 {
            self.sql(
                "UPDATE counter SET accepted = accepted + ?1, pruned = pruned + ?2, discarded = discarded + ?3",
            )?
            .execute((self.accepted, self.pruned, self.discarded))?;
        }
        Ok(self.moved)
    }
}

/// A lane's key from its row.
pub(super) fn lane_key(channel: &str, account: &str, endpoint: &str) -> Outcome<LaneKey> {
    Ok(LaneKey {
        channel: ChannelName::try_new(channel).map_err(|_| damaged("channel"))?,
        account: AccountName::try_new(account).map_err(|_| damaged("account"))?,
        endpoint: EndpointName::try_new(endpoint).map_err(|_| damaged("endpoint"))?,
    })
}
