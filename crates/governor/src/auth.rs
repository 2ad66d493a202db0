//! What a 401 does to an account: one refresh at a time, one alert, and nothing lost.
//!
//! A 401 counts against the token it was sent with. The account pauses, its source is asked once, and
//! the mutations go again. If the source returns the refused token, or its fresh one is refused too,
//! the account is suspended and the source is asked again at growing intervals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ota_governor_core::lane::{LaneKey, Scope};
use ota_governor_core::name::{AccountName, ChannelName};
use ota_governor_core::time::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, TokenSource};
use crate::holds::Holds;
use crate::lane::Shared;
use crate::ledger::{Hold, HoldCause};
use crate::token::{Account, Fingerprint, Token, TokenError};

/// The first and the longest interval at which a suspended account's source is asked again.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// The accounts and their tokens.
#[derive(Debug)]
pub(crate) struct Auth {
    accounts: HashMap<(ChannelName, AccountName), Keeper>,
    cases: mpsc::UnboundedSender<Case>,
}

#[derive(Debug)]
struct Keeper {
    account: Arc<Account>,
    state: Mutex<KeeperState>,
}

#[derive(Debug, Default)]
struct KeeperState {
    /// A case is open: somebody asks the source.
    busy: bool,
    /// The token that came of the last refresh and has not been accepted yet.
    fresh: Option<Fingerprint>,
    /// The last token refused.
    refused: Option<Fingerprint>,
}

/// An account whose source is to be asked.
#[derive(Debug)]
pub(crate) struct Case {
    channel: ChannelName,
    account: AccountName,
    /// The token refused; none, if the source yielded none.
    refused: Option<Fingerprint>,
    /// Why the account is suspended before its source is asked, if it is.
    suspend: Option<String>,
    /// Whether it was suspended before the restart.
    suspended: bool,
}

impl Case {
    fn new(lane: &LaneKey, refused: Option<Fingerprint>, suspend: Option<String>) -> Self {
        Self {
            channel: lane.channel.clone(),
            account: lane.account.clone(),
            refused,
            suspend,
            suspended: false,
        }
    }
}

impl Auth {
    /// The accounts of a configuration, and the queue of cases for [`work`].
    pub(crate) fn new(config: &Config) -> (Self, mpsc::UnboundedReceiver<Case>) {
        // Bounded by the number of accounts: one open case each.
        let (cases, queue) = mpsc::unbounded_channel();
        let keeper = |source: &TokenSource| Keeper {
            account: Arc::new(Account::new(source.clone())),
            state: Mutex::default(),
        };
        let accounts = config
            .channels
            .iter()
            .flat_map(|(channel, settings)| {
                settings
                    .accounts
                    .iter()
                    .map(move |(account, source)| ((channel.clone(), account.clone()), keeper(source)))
            })
            .collect();
        (Self { accounts, cases }, queue)
    }

    fn keeper(&self, lane: &LaneKey) -> Option<&Keeper> {
        self.accounts.get(&(lane.channel.clone(), lane.account.clone()))
    }

    /// The token for a call now.
    pub(crate) async fn token(&self, lane: &LaneKey) -> Result<Token, TokenError> {
        match self.keeper(lane) {
            Some(keeper) => keeper.account.token().await,
            None => Err(TokenError::Unusable),
        }
    }

    /// A call with this token was answered otherwise than by 401.
    pub(crate) fn accepted(&self, lane: &LaneKey, token: Fingerprint) {
        let Some(keeper) = self.keeper(lane) else { return };
        let mut state = keeper.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.fresh == Some(token) {
            state.fresh = None;
        }
    }

    /// A call with this token was answered 401: pauses the account and has its source asked, unless the
    /// token was replaced meanwhile or the source is being asked already.
    pub(crate) fn refused(&self, lane: &LaneKey, token: Fingerprint, at: Timestamp, holds: &Holds) {
        let Some(keeper) = self.keeper(lane) else { return };
        let mut state = keeper.state.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = state.refused == Some(token) && state.fresh.is_some_and(|fresh| fresh != token);
        if replaced || (state.busy && is_held(lane, holds)) {
            return;
        }
        let was_fresh = state.fresh == Some(token);
        state.busy = true;
        state.refused = Some(token);
        let what = if was_fresh { "a fresh token was refused" } else { "the token was refused" };
        let suspend = was_fresh.then(|| format!("{what} with 401 (token {token})"));
        self.open(lane, at, holds, Case::new(lane, Some(token), suspend), format!("{what} with 401"));
    }

    /// The source yields no token at all.
    pub(crate) fn missing(&self, lane: &LaneKey, error: &TokenError, at: Timestamp, holds: &Holds) {
        let Some(keeper) = self.keeper(lane) else { return };
        let mut state = keeper.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.busy && is_held(lane, holds) {
            return;
        }
        state.busy = true;
        self.open(lane, at, holds, Case::new(lane, None, Some(error.to_string())), error.to_string());
    }

    /// A suspension from before the restart: ask its source until it yields another token.
    pub(crate) fn resume_case(&self, hold: &Hold) {
        let Scope::Account { channel, account } = &hold.scope else { return };
        let Some(keeper) = self.accounts.get(&(channel.clone(), account.clone())) else { return };
        keeper.state.lock().unwrap_or_else(PoisonError::into_inner).busy = true;
        let case = Case {
            suspended: true,
            suspend: None,
            refused: None,
            channel: channel.clone(),
            account: account.clone(),
        };
        let _ = self.cases.send(case);
    }

    /// Pauses the account, and only then has its source asked: whoever solves the case finds the pause to
    /// lift. It is not written to the ledger: a process that starts anew finds out with its first call.
    fn open(&self, lane: &LaneKey, at: Timestamp, holds: &Holds, case: Case, detail: String) {
        let scope = scope(&lane.channel, &lane.account);
        let hold = Hold { scope, cause: HoldCause::TokenRefresh, since: at, until: None, detail };
        crate::event::held(lane, &hold, None);
        holds.put(std::slice::from_ref(&hold));
        // The queue is gone only when the governor is.
        let _ = self.cases.send(case);
    }
}

fn is_held(lane: &LaneKey, holds: &Holds) -> bool {
    let scope = scope(&lane.channel, &lane.account);
    holds.has(&scope, HoldCause::TokenRefresh) || holds.has(&scope, HoldCause::AccountSuspended)
}

fn scope(channel: &ChannelName, account: &AccountName) -> Scope {
    Scope::Account { channel: channel.clone(), account: account.clone() }
}

/// Works off cases, each in a task of its own, until `stop`.
pub(crate) async fn work(
    shared: Weak<Shared>,
    mut cases: mpsc::UnboundedReceiver<Case>,
    stop: CancellationToken,
) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            case = cases.recv() => match case {
                Some(case) => { open.spawn(solve(Weak::clone(&shared), case)); }
                None => return,
            },
            () = stop.cancelled() => return,
            Some(_) = open.join_next() => {}
        }
    }
}

/// Asks the source until it yields a token other than the refused one, or somebody lifts the hold.
async fn solve(shared: Weak<Shared>, case: Case) {
    let scope = scope(&case.channel, &case.account);
    let key = (case.channel.clone(), case.account.clone());
    let mut suspended = case.suspended;
    if let Some(detail) = case.suspend.clone() {
        let Some(shared) = shared.upgrade() else { return };
        suspend(&shared, &case, &scope, detail).await;
        suspended = true;
    }
    let mut pause = ASK_AGAIN.0;
    let mut first = !suspended;
    loop {
        if !first {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(ASK_AGAIN.1);
        }
        let Some(shared) = shared.upgrade() else { return };
        let Some(keeper) = shared.auth.accounts.get(&key) else { return };
        let by_hand = !first
            && !shared.holds.has(&scope, HoldCause::AccountSuspended)
            && !shared.holds.has(&scope, HoldCause::TokenRefresh);
        let asked = match case.refused {
            _ if by_hand => None,
            Some(refused) => Some(keeper.account.refresh(refused).await),
            None => Some(keeper.account.token().await),
        };
        first = false;
        let same = |token: &Token| {
            case.refused == Some(token.fingerprint)
                || shared.holds.detail(&scope, HoldCause::AccountSuspended).is_some_and(|detail| {
                    case.refused.is_none() && detail.contains(&token.fingerprint.to_string())
                })
        };
        match asked {
            None => return done(keeper, None),
            Some(Ok(token)) if !same(&token) => {
                done(keeper, Some(token.fingerprint));
                for cause in [HoldCause::TokenRefresh, HoldCause::AccountSuspended] {
                    lift(&shared, &scope, cause).await;
                }
                return;
            }
            Some(Ok(_)) if !suspended => {
                suspended = true;
                let detail = match case.refused {
                    Some(token) => format!("the source yields the refused token again (token {token})"),
                    None => "the source yields the refused token again".to_owned(),
                };
                suspend(&shared, &case, &scope, detail).await;
            }
            Some(Ok(_)) => {}
            // A token endpoint that is busy or away is no verdict on the credential: it stays paused.
            Some(Err(error)) => {
                tracing::warn!(
                    event = "token_refresh_failed",
                    ota = case.channel.as_str(),
                    account = case.account.as_str(),
                    reason = %error
                );
            }
        }
    }
}

fn done(keeper: &Keeper, fresh: Option<Fingerprint>) {
    let mut state = keeper.state.lock().unwrap_or_else(PoisonError::into_inner);
    state.busy = false;
    state.fresh = fresh;
}

async fn suspend(shared: &Shared, case: &Case, scope: &Scope, detail: String) {
    let hold = Hold {
        scope: scope.clone(),
        cause: HoldCause::AccountSuspended,
        since: shared.clock.now(),
        until: None,
        detail,
    };
    tracing::error!(
        event = "account_suspended",
        ota = case.channel.as_str(),
        account = case.account.as_str(),
        reason = hold.detail
    );
    shared.holds.put(std::slice::from_ref(&hold));
    match shared.ledger.hold(vec![hold.clone()]).await {
        Ok(()) => shared.holds.stored(&[hold], &[]),
        Err(error) => tracing::error!(event = "store_failed", doing = "hold", error = %error),
    }
    lift(shared, scope, HoldCause::TokenRefresh).await;
}

async fn lift(shared: &Shared, scope: &Scope, cause: HoldCause) {
    if !shared.holds.has(scope, cause) {
        return;
    }
    let lifted = [(scope.clone(), cause)];
    // The ledger first: a lifted hold that comes back with the next re-read would stand for ever.
    match shared.ledger.lift(scope, Some(cause)).await {
        Ok(_) => {
            shared.holds.lift(&lifted);
            shared.holds.stored(&[], &lifted);
        }
        Err(error) => tracing::error!(event = "store_failed", doing = "lift", error = %error),
    }
}
