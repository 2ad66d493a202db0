//! Tokens: where each account's comes from, and what a 401 does.
//!
//! `env` and `file` are read for every call; a `command`'s token is held in memory until a 401. One
//! refresh at a time per account, however many calls were refused.

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::config::TokenSource;

/// How long a token command may run.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Tells two tokens apart without keeping either: the first 32 bits of a token's SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 4]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A token in hand.
#[derive(Debug, Clone)]
pub struct Token {
    /// The secret.
    pub secret: SecretString,
    /// What a 401 is counted against.
    pub fingerprint: Fingerprint,
}

impl Token {
    fn new(secret: String) -> Self {
        let mut first = [0; 4];
        first.iter_mut().zip(Sha256::digest(&secret)).for_each(|(to, from)| *to = from);
        Self { fingerprint: Fingerprint(first), secret: SecretString::from(secret) }
    }
}

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set")]
    Env(String),
    /// The file cannot be read.
    #[error("the token file {0} cannot be read")]
    File(String),
    /// The command failed, took too long or printed nothing.
    #[error("the token command {command} {what}")]
    Command {
        /// The program, without its arguments: they may hold secrets.
        command: String,
        /// What went wrong.
        what: String,
    },
    /// The source yields an empty or unsendable text.
    #[error("the token source yields a text that no header can carry")]
    Unusable,
}

/// One account's source, with the token of a command held.
#[derive(Debug)]
pub struct Account {
    source: TokenSource,
    held: Mutex<Option<Token>>,
}

impl Account {
    /// An account whose token comes from `source`.
    pub fn new(source: TokenSource) -> Self {
        Self { source, held: Mutex::new(None) }
    }

    /// The token for a call now.
    ///
    /// # Errors
    /// If the source yields none.
    pub async fn token(&self) -> Result<Token, TokenError> {
        let TokenSource::Command(words) = &self.source else { return read(&self.source) };
        let mut held = self.held.lock().await;
        if let Some(token) = held.as_ref() {
            return Ok(token.clone());
        }
        let token = run(words).await?;
        *held = Some(token.clone());
        Ok(token)
    }

    /// Asks the source for a token again, after `refused` was answered 401.
    ///
    /// If another one is in hand already, that is the answer and nothing is asked.
    ///
    /// # Errors
    /// If the source yields none.
    pub async fn refresh(&self, refused: Fingerprint) -> Result<Token, TokenError> {
        let TokenSource::Command(words) = &self.source else { return read(&self.source) };
        let mut held = self.held.lock().await;
        if let Some(token) = held.as_ref().filter(|token| token.fingerprint != refused) {
            return Ok(token.clone());
        }
        let token = run(words).await?;
        *held = Some(token.clone());
        Ok(token)
    }
}

fn read(source: &TokenSource) -> Result<Token, TokenError> {
    let text = match source {
        TokenSource::Env(name) => std::env::var(name).map_err(|_| TokenError::Env(name.clone()))?,
        TokenSource::File(path) => {
            std::fs::read_to_string(path).map_err(|_| TokenError::File(path.display().to_string()))?
        }
        TokenSource::Fixed(secret) => secret.expose_secret().to_owned(),
        TokenSource::Command(_) => return Err(TokenError::Unusable),
    };
    usable(&text)
}

fn usable(text: &str) -> Result<Token, TokenError> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(|c| !('!'..='~').contains(&c) && c != ' ') {
        return Err(TokenError::Unusable);
    }
    Ok(Token::new(text.to_owned()))
}

async fn run(words: &[String]) -> Result<Token, TokenError> {
    let program = words.first().cloned().unwrap_or_default();
    let failed = |what: String| TokenError::Command { command: program.clone(), what };
    let output = Command::new(&program)
        .args(words.get(1..).unwrap_or_default())
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(COMMAND_TIMEOUT, output)
        .await
        .map_err(|_| failed(format!("gave no token within {} s", COMMAND_TIMEOUT.as_secs())))?
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("ended with {}", output.status)));
    }
    usable(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_commands_token_is_held_until_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count");
        let script = format!("echo x >> {0}; echo token-$(wc -l < {0})", count.display());
        let account = Account::new(TokenSource::Command(vec!["sh".into(), "-c".into(), script]));
        let first = account.token().await.unwrap();
        assert_eq!(account.token().await.unwrap().fingerprint, first.fingerprint);
        let (one, two) = tokio::join!(account.refresh(first.fingerprint), account.refresh(first.fingerprint));
        assert_eq!(one.unwrap().fingerprint, two.unwrap().fingerprint, "one refresh for both");
        assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 2);
    }

    #[tokio::test]
    async fn a_source_without_a_token_says_so_without_secrets() {
        let words = vec!["sh".into(), "-c".into(), "exit 3 # s3cret".into()];
        let error = Account::new(TokenSource::Command(words)).token().await.unwrap_err();
        assert_eq!(error.to_string(), "the token command sh ended with exit status: 3");
        let error = Account::new(TokenSource::Env("NO_SUCH_TOKEN_HERE".into())).token().await.unwrap_err();
        assert_eq!(error.to_string(), "the environment variable NO_SUCH_TOKEN_HERE is not set");
        let secret = Account::new(TokenSource::Fixed(SecretString::from("abc\ndef")));
        assert_eq!(secret.token().await.unwrap_err(), TokenError::Unusable);
    }
}
