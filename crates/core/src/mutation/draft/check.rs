//! The checks: every rule of every field, all faults at once.

mod value;

use std::fmt::Display;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use rand::Rng;

use super::context::{Context, Rules};
use super::field::{Field, Slots};
use super::raw::Raw;
use crate::mutation::fault::{Fault, Faults};
use crate::mutation::{Kind, Mutation, Priority, date};
use crate::name::{
    AccountName, BatchName, ChannelName, CorrelationId, NameError, PropertyId, RatePlanCode, RoomTypeCode,
};
use crate::time::Timestamp;

/// Most channels or accounts listed in a fault.
const MAX_LISTED: usize = 16;

/// The largest `sequence`: what every store can keep exactly.
const MAX_SEQUENCE: u64 = i64::MAX.unsigned_abs();

pub(super) fn check(
    slots: &Slots<'_>,
    faults: Faults,
    context: &Context,
    now: Timestamp,
    rng: &mut impl Rng,
) -> Result<Mutation, Faults> {
    let mut check = Check { slots, faults };
    let kind = check.kind();
    let channel = check.channel(context, kind);
    let rules = channel.map(|(_, rules)| rules);
    let account = check.account(rules);
    let property_id = check.property(rules);
    let room_type_code = check.name(Field::RoomTypeCode, RoomTypeCode::try_new);
    let rate_plan_code = check.name(Field::RatePlanCode, RatePlanCode::try_new);
    let (zone, time_zone) = check.zone(rules);
    let stay_date = check.stay_date(now, zone.as_ref());
    let value = check.value(kind);
    let correlation_id = check.name(Field::CorrelationId, CorrelationId::try_new);
    let priority = check.integer(Field::Priority, 0, 1000);
    let expires_at = check.expires_at(now);
    let sequence = check.integer(Field::Sequence, 0, MAX_SEQUENCE);
    let batch = check.name(Field::Batch, BatchName::try_new);
    for field in [Field::PropertyId, Field::RoomTypeCode, Field::Ota, Field::StayDate] {
        check.require(field, "is missing");
    }
    if kind.is_some_and(|kind| kind != Kind::Availability) {
        check.require(Field::RatePlanCode, "is missing: only `availability` may cover every rate plan");
    }

    let Check { faults, .. } = check;
    if !faults.is_empty() {
        return Err(faults);
    }
    let correlation_id = correlation_id.or_else(|| super::random_id(rng));
    let required = (channel, account, property_id, room_type_code, stay_date, value, correlation_id);
    let (
        Some((ota, _)),
        Some(account),
        Some(property_id),
        Some(room_type_code),
        Some(stay_date),
        Some(value),
        Some(correlation_id),
    ) = required
    else {
        // Each of these reports its own fault when it is absent; should one ever not, nothing gets past here.
        return Err(Fault::new("json", None, "is not a complete mutation").into());
    };
    Ok(Mutation {
        correlation_id,
        ota: ota.clone(),
        account,
        property_id,
        room_type_code,
        rate_plan_code,
        stay_date,
        value,
        priority: priority
            .and_then(|value| u16::try_from(value).ok())
            .and_then(Priority::try_new)
            .unwrap_or_default(),
        time_zone,
        expires_at,
        sequence,
        batch,
    })
}

struct Check<'s> {
    slots: &'s Slots<'s>,
    faults: Faults,
}

impl<'s> Check<'s> {
    fn get(&self, field: Field) -> Option<&'s Raw<'s>> {
        self.slots.get(field).filter(|raw| !matches!(raw, Raw::Null))
    }

    fn fault(&mut self, field: Field, rule: impl Display) {
        let value = self.get(field).map(Raw::shown);
        self.faults.push(Fault::new(field.as_str(), value, rule.to_string()));
    }

    fn require(&mut self, field: Field, rule: &str) {
        if self.get(field).is_none() {
            self.fault(field, rule);
        }
    }

    fn text(&mut self, field: Field) -> Option<&'s str> {
        let raw = self.get(field)?;
        if raw.as_text().is_none() {
            self.fault(field, format_args!("must be text, not {}", raw.shape()));
        }
        raw.as_text()
    }

    /// A text read by a function that knows its rule.
    fn parsed<T, E: Display>(&mut self, field: Field, read: impl Fn(&str) -> Result<T, E>) -> Option<T> {
        match read(self.text(field)?) {
            Ok(value) => Some(value),
            Err(rule) => {
                self.fault(field, rule);
                None
            }
        }
    }

    fn name<T>(&mut self, field: Field, read: fn(&str) -> Result<T, NameError>) -> Option<T> {
        self.parsed(field, read)
    }

    fn integer(&mut self, field: Field, least: u64, most: u64) -> Option<u64> {
        let raw = self.get(field)?;
        if let Raw::Number(digits) | Raw::Cell(digits) = raw {
            // `3.0`, `3e0`, `-0` and `+3` are not integers here: what is sent must be what was written.
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            if let Some(value) = digits.parse().ok().filter(|value| plain && (least..=most).contains(value)) {
                return Some(value);
            }
            self.fault(field, format_args!("must be an integer from {least} to {most}"));
        } else {
            self.fault(field, format_args!("must be an integer from {least} to {most}, not {}", raw.shape()));
        }
        None
    }

    fn small(&mut self, field: Field, least: u16, most: u16) -> Option<u16> {
        self.integer(field, least.into(), most.into()).and_then(|value| u16::try_from(value).ok())
    }

    fn flag(&mut self, field: Field) -> Option<bool> {
        let raw = self.get(field)?;
        if raw.as_flag().is_none() {
            if let Raw::Cell(_) = raw {
                self.fault(field, "must be true or false");
            } else {
                self.fault(field, format_args!("must be true or false, not {}", raw.shape()));
            }
        }
        raw.as_flag()
    }

    fn kind(&mut self) -> Option<Kind> {
        if self.get(Field::Kind).is_none() {
            return Some(Kind::Rate);
        }
        self.parsed(Field::Kind, str::parse)
    }

    fn channel<'c>(
        &mut self,
        context: &'c Context,
        kind: Option<Kind>,
    ) -> Option<(&'c ChannelName, &'c Rules)> {
        let Some(channel) = context.channel(self.text(Field::Ota)?) else {
            let known = listed(context.names().map(ChannelName::as_str));
            self.fault(Field::Ota, format_args!("is not a configured channel: there is {known}"));
            return None;
        };
        if let Some(kind) = kind.filter(|kind| !channel.1.is_available(*kind)) {
            let (name, endpoint) = (channel.0, kind.endpoint());
            let rule = format!(
                "cannot be sent: endpoint `{endpoint}` of channel `{name}` has no limit configured: \
                 add [[channels.{name}.endpoints.{endpoint}.limits]]"
            );
            self.faults.push(Fault::new(Field::Kind.as_str(), Some(kind.as_str()), rule));
        }
        Some(channel)
    }

    fn account(&mut self, rules: Option<&Rules>) -> Option<AccountName> {
        let account = if self.get(Field::Account).is_some() {
            self.name(Field::Account, AccountName::try_new)?
        } else {
            AccountName::default()
        };
        // Without a known channel there is nothing to look the account up in; the channel's fault says so.
        let accounts = rules?.accounts();
        if let Some(known) = accounts.get(&account) {
            return Some(known.clone());
        }
        let known = listed(accounts.iter().map(AccountName::as_str));
        let rule = format!("is not a configured account of the channel: there is {known}");
        self.faults.push(Fault::new(Field::Account.as_str(), Some(account.as_str()), rule));
        None
    }

    fn property(&mut self, rules: Option<&Rules>) -> Option<PropertyId> {
        let property = self.name(Field::PropertyId, PropertyId::try_new)?;
        let Some(pattern) = rules.map(Rules::property_id_pattern) else { return Some(property) };
        if pattern.is_match(property.as_str()) {
            return Some(property);
        }
        self.fault(Field::PropertyId, format_args!("must match {pattern}"));
        None
    }

    /// The zone to judge dates in, and its name if the mutation gave one.
    fn zone(&mut self, rules: Option<&Rules>) -> (Option<TimeZone>, Option<String>) {
        if self.get(Field::TimeZone).is_none() {
            return (rules.and_then(Rules::time_zone).cloned(), None);
        }
        let zone = self.parsed(Field::TimeZone, date::zone);
        let name = zone.as_ref().and_then(TimeZone::iana_name).map(str::to_owned);
        (zone, name)
    }

    fn stay_date(&mut self, now: Timestamp, zone: Option<&TimeZone>) -> Option<Date> {
        let stay_date = self.parsed(Field::StayDate, date::parse)?;
        let today = date::today(now, zone);
        if stay_date >= today {
            return Some(stay_date);
        }
        match zone.and_then(TimeZone::iana_name) {
            Some(zone) => self.fault(Field::StayDate, format_args!("is past: today is {today} in {zone}")),
            None => self
                .fault(Field::StayDate, format_args!("is past everywhere on earth: give {today} or later")),
        }
        None
    }

    fn expires_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        let at = self.parsed(Field::ExpiresAt, date::parse_instant)?;
        if at > now {
            return Some(at);
        }
        self.fault(Field::ExpiresAt, format_args!("is past: it is {now}"));
        None
    }
}

/// Names in a row, up to a bound.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names = names.map(|name| format!("`{name}`"));
    let mut shown: Vec<_> = names.by_ref().take(MAX_LISTED).collect();
    match names.count() {
        0 => {}
        more => shown.push(format!("{more} more")),
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}
