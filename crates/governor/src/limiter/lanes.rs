//! Which limits apply to which lane, and which lanes draw from one budget.

use std::collections::BTreeMap;
use std::fmt;

use ota_governor_core::lane::LaneKey;
use ota_governor_core::limit::{Each, Limit};
use ota_governor_core::name::{AccountName, ChannelName, LimitName};

use crate::config::Config;

/// Names one budget: lanes whose limits have equal keys draw from the same one.
///
/// A limit per property has one budget for every property under its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetKey {
    /// The channel; `None` for a named limit, which all channels that list it share.
    pub channel: Option<ChannelName>,
    /// Whose budget it is.
    pub holder: Holder,
    /// The limit.
    pub limit: LimitName,
}

/// Whose budget it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// An account's.
    Account(AccountName),
    /// That of all calls that leave from one place.
    Egress(String),
}

impl BudgetKey {
    /// The key of a limit's budget for a lane; `named` tells whether other channels may list it too.
    pub fn new(limit: &Limit, lane: &LaneKey, egress: &str, named: bool) -> Self {
        let holder = match limit.each {
            Each::Account | Each::Property => Holder::Account(lane.account.clone()),
            Each::Egress => Holder::Egress(egress.to_owned()),
        };
        Self { channel: (!named).then(|| lane.channel.clone()), holder, limit: limit.name.clone() }
    }
}

/// `CHANNEL:ACCOUNT LIMIT`, `*` for any channel, `@EGRESS` for an egress: one text per key.
impl fmt::Display for BudgetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.channel {
            Some(channel) => write!(f, "{channel}")?,
            None => f.write_str("*")?,
        }
        match &self.holder {
            Holder::Account(account) => write!(f, ":{account} {}", self.limit),
            Holder::Egress(egress) => write!(f, "@{egress} {}", self.limit),
        }
    }
}

/// The limits of one lane, each with the budget it draws from.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneLimits {
    /// The lane.
    pub lane: LaneKey,
    /// Every limit that applies to it: its channel's, then its own.
    pub limits: Vec<(Limit, BudgetKey)>,
}

impl LaneLimits {
    /// A lane with limits of its own channel and account only.
    pub fn new(lane: LaneKey, limits: Vec<Limit>) -> Self {
        let keyed = |limit: Limit| {
            let key = BudgetKey::new(&limit, &lane, "", false);
            (limit, key)
        };
        let limits = limits.into_iter().map(keyed).collect();
        Self { lane, limits }
    }

    /// Every lane of a configuration that has a limit: one per channel, account and endpoint.
    pub fn from_config(config: &Config) -> Vec<Self> {
        let mut lanes = Vec::new();
        for (slug, channel) in &config.channels {
            for account in channel.accounts.keys() {
                for (endpoint, own) in &channel.endpoints {
                    let lane = LaneKey {
                        channel: slug.clone(),
                        account: account.clone(),
                        endpoint: endpoint.clone(),
                    };
                    // A named limit that the channel and the endpoint both list counts once.
                    let mut limits = BTreeMap::new();
                    for limit in channel.limits.iter().chain(&own.limits) {
                        let named = config.limits.contains_key(&limit.name);
                        let key = BudgetKey::new(limit, &lane, &config.egress, named);
                        limits.entry(key).or_insert_with(|| limit.clone());
                    }
                    if !limits.is_empty() {
                        let limits = limits.into_iter().map(|(key, limit)| (limit, key)).collect();
                        lanes.push(Self { lane, limits });
                    }
                }
            }
        }
        lanes
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::time::Duration;

    use ota_governor_core::idempotency::Recipe;
    use ota_governor_core::limit::Rule;
    use ota_governor_core::name::EndpointName;
    use ota_governor_core::retry::RetryPolicy;
    use regex::Regex;

    use super::*;
    use crate::config::{Channel, Endpoint, Pauses, TokenSource};

    fn limit(name: &str, each: Each) -> Limit {
        let rule = Rule::Concurrency { max: NonZeroU64::MIN };
        Limit { name: LimitName::try_new(name).unwrap(), rule, each }
    }

    fn channel(limits: Vec<Limit>, endpoints: &[(&str, Vec<Limit>)]) -> Channel {
        let endpoint = |limits: &Vec<Limit>| Endpoint {
            path: "/".to_owned(),
            pauses: Pauses::Lane,
            timeout: None,
            retry: RetryPolicy::default(),
            limits: limits.clone(),
        };
        let account = |name| (AccountName::try_new(name).unwrap(), TokenSource::Env("T".to_owned()));
        Channel {
            base_url: "http://x".to_owned(),
            accounts: ["default", "hotel-7"].map(account).into(),
            auth_header: "Authorization".to_owned(),
            auth_prefix: String::new(),
            headers: Vec::new(),
            timeout: Duration::from_secs(15),
            max_in_flight: 1,
            time_zone: None,
            property_id_pattern: Regex::new("").unwrap(),
            idempotency: Recipe::Revision,
            max_answer_bytes: 1,
            limits,
            endpoints: endpoints
                .iter()
                .map(|(name, limits)| (EndpointName::try_new(name).unwrap(), endpoint(limits)))
                .collect(),
        }
    }

    #[test]
    fn every_account_and_endpoint_with_a_limit_is_a_lane_and_draws_from_the_right_budgets() {
        let named = limit("partner", Each::Account);
        let x = channel(
            vec![limit("ota_x.limits[0]", Each::Account), named.clone()],
            &[("rates", vec![limit("ota_x/rates.limits[0]", Each::Egress), named.clone()])],
        );
        let y = channel(Vec::new(), &[("rates", vec![named.clone()]), ("bare", Vec::new())]);
        let slug = |name| ChannelName::try_new(name).unwrap();
        let config = Config {
            ledger_url: "memory:".to_owned(),
            retention: Duration::ZERO,
            egress: "host-1".to_owned(),
            limits: [(named.name.clone(), named)].into(),
            channels: [(slug("ota_x"), x), (slug("ota_y"), y)].into(),
            ..Config::default()
        };
        let lanes = LaneLimits::from_config(&config);
        let keys: Vec<(String, Vec<String>)> = lanes
            .iter()
            .map(|lane| {
                let keys = lane.limits.iter().map(|(_, key)| key.to_string()).collect();
                (lane.lane.to_string(), keys)
            })
            .collect();
        let of_x = |account: &str| {
            let own = format!("ota_x:{account} ota_x.limits[0]");
            let keys =
                vec![format!("*:{account} partner"), own, "ota_x@host-1 ota_x/rates.limits[0]".to_owned()];
            (format!("ota_x:{account}/rates"), keys)
        };
        let of_y = |account: &str| (format!("ota_y:{account}/rates"), vec![format!("*:{account} partner")]);
        assert_eq!(keys, [of_x("default"), of_x("hotel-7"), of_y("default"), of_y("hotel-7")]);
    }
}
