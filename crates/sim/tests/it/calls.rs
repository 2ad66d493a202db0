//! Well-formed calls, and a driver in virtual time.

use std::time::Duration;

use ota_sim::{At, Call, Channel, Ota, Reaction};
use serde_json::{Value, json};

/// What a call is about.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub(crate) ota: &'static str,
    pub(crate) property: String,
    pub(crate) plan: Option<&'static str>,
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) token: &'static str,
    pub(crate) endpoint: &'static str,
    pub(crate) fields: Value,
}

/// A rate for one cell, with an id and a key of its own number.
pub(crate) fn rate(number: u64) -> Push {
    Push {
        ota: "booking_com",
        property: "prop_00000001".to_owned(),
        plan: Some("BAR"),
        id: format!("id-{number}"),
        key: format!("{number:064x}"),
        token: "secret",
        endpoint: "rates",
        fields: json!({ "amount": "120.50", "currency": "EUR", "inventory": 5 }),
    }
}

pub(crate) fn availability(number: u64, inventory: u64) -> Push {
    Push { endpoint: "availability", fields: json!({ "inventory": inventory }), ..rate(number) }
}

pub(crate) fn restriction(number: u64, fields: Value) -> Push {
    Push { endpoint: "restrictions", fields, ..rate(number) }
}

impl Push {
    pub(crate) fn property(mut self, property: &str) -> Self {
        property.clone_into(&mut self.property);
        self
    }

    pub(crate) fn path(&self) -> String {
        format!("/{}/{}/sync", self.ota, self.endpoint)
    }

    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "property_id": self.property, "room_type_code": "DLX", "ota": self.ota,
            "stay_date": "2026-12-24", "correlation_id": self.id,
        });
        let map = body.as_object_mut().unwrap();
        map.extend(self.fields.as_object().unwrap().clone());
        if let Some(plan) = self.plan {
            map.insert("rate_plan_code".to_owned(), plan.into());
        }
        body
    }

    pub(crate) fn call(&self) -> Call {
        self.with(&self.body())
    }

    /// The call with another body.
    pub(crate) fn with(&self, body: &Value) -> Call {
        Call::post(self.path())
            .header("authorization", &format!("Bearer {}", self.token))
            .header("x-idempotency-key", &self.key)
            .header("x-correlation-id", &self.id)
            .json(body)
    }
}

/// A channel that answers at once.
pub(crate) fn prompt() -> Channel {
    Channel::default().latency(Duration::ZERO, Duration::ZERO)
}

/// Makes a call and ends it when its answer is due.
pub(crate) fn make(ota: &Ota, at: At, push: &Push) -> Reaction {
    let reaction = ota.receive(at, &push.call());
    ota.finish(at + reaction.delay, reaction.ticket);
    reaction
}

/// The status of a call that is made and ended.
pub(crate) fn status(ota: &Ota, at: At, push: &Push) -> u16 {
    make(ota, at, push).then.status().unwrap_or(0)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
