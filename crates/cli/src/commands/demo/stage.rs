//! The stage: the channels, once as the simulated OTA enforces them and once as the governor is told.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use ota_sim::{Channel, Config, Fault, Limit};

/// How long a minute takes here.
pub(super) const MINUTE: Duration = Duration::from_secs(6);
/// The property that a channel does not know.
pub(super) const UNKNOWN_PROPERTY: &str = "prop_0000dead";
/// What the simulated OTA calls the limit that the governor is told of.
pub(super) const CEILING: &str = "ceiling";

/// A call may have left before the answer that asks for a pause was read; on a busy machine somewhat
/// longer than the books allow for by default. The shortest pause here is a second.
const ON_ITS_WAY: Duration = Duration::from_millis(250);

/// One channel of the play.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) slug: &'static str,
    /// Calls a minute, known to both sides.
    pub(super) ceiling: u64,
    /// Calls at once: two seconds' worth of a real minute.
    pub(super) burst: u64,
    /// Calls a minute that it really takes, which it tells nobody.
    pub(super) hidden: Option<u64>,
    /// Whether it is asked for a property that it does not know.
    pub(super) has_unknown: bool,
    /// Mutations of the backlog.
    pub(super) bulk: u32,
}

/// The channels.
pub(super) const ACTS: [Act; 3] = [
    Act { slug: "agoda", ceiling: 120, burst: 4, hidden: Some(100), has_unknown: false, bulk: 360 },
    Act { slug: "booking_com", ceiling: 90, burst: 3, hidden: None, has_unknown: false, bulk: 330 },
    Act { slug: "expedia", ceiling: 60, burst: 2, hidden: None, has_unknown: true, bulk: 220 },
];

/// The receiving side: every window enforced to the call, without grace.
pub(super) fn receiver() -> Config {
    ACTS.iter().fold(Config::default().seed(1), |config, act| {
        let mut channel = Channel::default().limit(Limit::sliding_window(act.ceiling, MINUTE).named(CEILING));
        channel.pause_grace = ON_ITS_WAY;
        if let Some(hidden) = act.hidden {
            channel = channel.limit(Limit::sliding_window(hidden, MINUTE).named("hidden").hidden());
        }
        if act.has_unknown {
            channel = channel.fault(Fault::status(422).property(UNKNOWN_PROPERTY));
        }
        config.channel(act.slug, channel)
    })
}

/// The sending side: a configuration as it would stand in `governor.toml`, but for the length of a minute.
pub(super) fn sender(base_url: &str, directory: &Path) -> String {
    let ledger = format!("sqlite:{}", directory.join("governor.db").display());
    let token = directory.join("token").display().to_string();
    let mut text = format!("[ledger]\nurl = {ledger:?}\n");
    for act in &ACTS {
        // A text is written to a `String`, which cannot fail.
        let _ = write!(
            text,
            r#"
[channels.{slug}]
base_url = "{base_url}"
token = {{ file = {token:?} }}

[[channels.{slug}.endpoints.rates.limits]]
kind = "sliding_window"
max = {max}
per = "{per}s"
burst = {burst}
"#,
            slug = act.slug,
            max = act.ceiling,
            per = MINUTE.as_secs(),
            burst = act.burst,
        );
    }
    text
}
