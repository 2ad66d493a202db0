//! Which token a channel accepts now.

use crate::at::At;
use crate::call::Call;
use crate::config::{Auth, Token};

#[derive(Debug, Default)]
pub(super) struct AuthState {
    /// Which of the configured tokens.
    index: usize,
    /// Calls with it.
    calls: u64,
    /// The last token seen, where any is accepted.
    seen: Option<String>,
    /// Tokens no longer accepted, where any is.
    revoked: Vec<String>,
}

impl AuthState {
    /// Whether a call's token is accepted.
    pub(super) fn admit(&mut self, auth: &Auth, now: At, call: &Call) -> bool {
        let header = call.text_of(&auth.header).unwrap_or_default();
        let token = header.strip_prefix(auth.prefix.as_str()).unwrap_or_default();
        if token.is_empty() {
            return false;
        }
        if auth.tokens.is_empty() {
            self.seen = Some(token.to_owned());
            return !self.revoked.iter().any(|revoked| revoked == token);
        }
        let Some(current) = self.current(auth, now) else { return false };
        let accepted = current.value == token;
        if accepted {
            self.calls += 1;
        }
        accepted
    }

    /// The token accepted at `now`; moves on over expired ones.
    fn current<'a>(&mut self, auth: &'a Auth, now: At) -> Option<&'a Token> {
        loop {
            let token = auth.tokens.get(self.index)?;
            let timed_out = token.expires_at.is_some_and(|at| At::from(at) <= now);
            if !timed_out && token.after_calls.is_none_or(|most| self.calls < most) {
                return Some(token);
            }
            self.index += 1;
            self.calls = 0;
        }
    }

    /// Refuses the present token from now on.
    pub(super) fn rotate(&mut self, auth: &mut Auth, now: At, token: Option<&str>) -> Option<String> {
        match token {
            Some(token) => {
                auth.tokens = vec![Token::new(token)];
                *self = Self::default();
            }
            None if auth.tokens.is_empty() => self.revoked.extend(self.seen.take()),
            None => {
                if self.current(auth, now).is_some() {
                    self.index += 1;
                    self.calls = 0;
                }
            }
        }
        self.current(auth, now).map(|token| token.value.clone())
    }
}
