//! What is to happen in one run, all of it from one number.

use std::fmt::Write;
use std::time::Duration;

use jiff::tz::TimeZone;
use ota_sim::{Act, Channel, Config, Fault, Limit, Pauses, RetryAfter, Share};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::AWAY;
use crate::world::FARTHEST;

/// Something that happens.
#[derive(Debug)]
pub(super) enum Op {
    /// A producer hands these in.
    Accept(Vec<Value>),
    /// The process is killed, and another starts after a while.
    Kill { away: Duration },
}

/// One run.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    /// The governor's configuration.
    pub(super) toml: String,
    pub(super) ota: Config,
    pub(super) ops: Vec<(Duration, Op)>,
    /// Every mutation handed in, in order.
    pub(super) mutations: Vec<Value>,
    pub(super) max_attempts: u32,
    /// Whether a limit that the governor does not know refuses calls.
    pub(super) hidden: bool,
}

const SECOND: Duration = Duration::from_secs(1);
const ENDPOINTS: [&str; 3] = ["rates", "availability", "restrictions"];

impl Scenario {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut dice = Dice(StdRng::seed_from_u64(seed));
        let max_attempts = dice.pick(&[2, 3, 5, 5, 8]);
        let hidden = dice.one_in(3);
        let slugs = if dice.one_in(4) { vec!["otax", "otay"] } else { vec!["otax"] };
        let mut toml = String::new();
        let mut ota = Config::default().seed(seed);
        for slug in &slugs {
            let channel = dice.channel(slug, &mut toml, max_attempts, hidden);
            ota = ota.channel(*slug, channel);
        }
        let ops = dice.ops(&slugs);
        let handed_in = ops.iter().filter_map(|(_, op)| match op {
            Op::Accept(mutations) => Some(mutations.clone()),
            Op::Kill { .. } => None,
        });
        let mutations = handed_in.flatten().collect();
        Self { seed, toml, ota, ops, mutations, max_attempts, hidden }
    }
}

struct Dice(StdRng);

impl Dice {
    fn up_to(&mut self, from: u64, to: u64) -> u64 {
        self.0.random_range(from..=to)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.up_to(1, n) == 1
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())].clone()
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.up_to(from, to))
    }

    /// One channel, as it is and as the governor is told of it.
    fn channel(&mut self, slug: &str, toml: &mut String, max_attempts: u32, hidden: bool) -> Channel {
        let (pauses, asked) = self.pick(&[
            ("lane", Pauses::Endpoint),
            ("lane", Pauses::Endpoint),
            ("property", Pauses::Property),
            ("account", Pauses::Channel),
        ]);
        let base = format!("[channels.{slug}]\nbase_url = \"https://{slug}.example\"\n");
        let more = "token = { env = \"FIXED\" }\ntimeout = \"5s\"\nretry_after_horizon = \"2m\"\n";
        let in_flight = self.pick(&[1, 2, 4, 16]);
        writeln!(toml, "{base}{more}max_in_flight = {in_flight}").unwrap();
        let slowest = self.up_to(5, 400);
        let mut channel =
            Channel::default().latency(Duration::from_millis(2), Duration::from_millis(slowest));
        channel.pauses = asked;
        channel.pause_horizon = Duration::from_secs(120);
        // An answer on its way back, and a call that left before it came.
        channel.pause_grace = FARTHEST * 2 + Duration::from_millis(5);
        for _ in 0..self.up_to(1, 2) {
            channel = channel.limit(self.limit(&format!("channels.{slug}.limits"), toml));
        }
        for endpoint in ENDPOINTS {
            let place = format!("channels.{slug}.endpoints.{endpoint}");
            write!(toml, "[{place}]\npauses = \"{pauses}\"\n").unwrap();
            write!(toml, "[{place}.retry]\nmax_attempts = {max_attempts}\n").unwrap();
            if self.one_in(3) {
                channel = channel.endpoint_limit(endpoint, self.limit(&format!("{place}.limits"), toml));
            }
        }
        if hidden {
            let (max, per) = (self.up_to(2, 8), SECOND * self.pick(&[1, 5, 10]));
            channel = channel.limit(Limit::sliding_window(max, per).named("unsaid").hidden());
            channel = channel.retry_after(self.forms());
        }
        for _ in 0..self.up_to(0, 4) {
            let fault = self.fault(asked);
            channel = channel.fault(fault);
        }
        channel
    }

    fn limit(&mut self, place: &str, toml: &mut String) -> Limit {
        writeln!(toml, "[[{place}]]").unwrap();
        let each = self.one_in(3);
        if each {
            writeln!(toml, "each = \"property\"").unwrap();
        }
        let limit = match self.up_to(0, 3) {
            0 => {
                let (rate, per, burst) = (self.up_to(1, 5), self.up_to(1, 4), self.up_to(1, 6));
                let said = format!("rate = {rate}\nper = \"{per}s\"\nburst = {burst}");
                writeln!(toml, "kind = \"token_bucket\"\n{said}").unwrap();
                Limit::token_bucket(rate, SECOND * u32::try_from(per).unwrap(), burst)
            }
            1 => {
                let (max, per) = (self.up_to(3, 12), self.up_to(3, 15));
                let burst = self.up_to(1, max);
                let said = format!("max = {max}\nper = \"{per}s\"\nburst = {burst}");
                writeln!(toml, "kind = \"sliding_window\"\n{said}").unwrap();
                Limit::sliding_window(max, SECOND * u32::try_from(per).unwrap())
            }
            2 => {
                let (max, per) = (self.up_to(5, 15), self.pick(&[10, 30, 60]));
                let said = format!("max = {max}\nper = \"{per}s\"\ntime_zone = \"UTC\"");
                writeln!(toml, "kind = \"fixed_window\"\n{said}").unwrap();
                Limit::fixed_window(max, SECOND * per, TimeZone::UTC)
            }
            _ => {
                let max = self.up_to(1, 4);
                writeln!(toml, "kind = \"concurrency\"\nmax = {max}").unwrap();
                Limit::concurrency(max)
            }
        };
        if each { limit.each_property() } else { limit }
    }

    /// Some forms of `Retry-After`, to be taken in turn.
    fn forms(&mut self) -> Vec<RetryAfter> {
        let some = Some(Duration::from_millis(2_500));
        let raw = |text: &str| RetryAfter::Raw(text.to_owned());
        let all = [
            RetryAfter::Absent,
            RetryAfter::Exact,
            RetryAfter::Seconds(3),
            RetryAfter::ImfFixdate(None),
            RetryAfter::Rfc850(some),
            RetryAfter::Asctime(None),
            RetryAfter::Decimal(some),
            RetryAfter::Past,
            raw("soon"),
            raw("-3"),
            raw(""),
            raw("0"),
            raw("9999999999"),
        ];
        (0..self.up_to(1, 3)).map(|_| self.pick(&all)).collect()
    }

    fn fault(&mut self, asked: Pauses) -> Fault {
        let act = match self.up_to(0, 9) {
            0 => Act::Status { status: 500, retry_after: None, body: None },
            // The governor pauses the lane for it, which is less than a channel that means all of itself.
            1 if asked != Pauses::Channel => {
                Act::Status { status: 503, retry_after: Some(RetryAfter::Seconds(4)), body: None }
            }
            1 | 2 => Act::Status { status: 503, retry_after: None, body: None },
            3 => Act::Cut,
            4 => Act::CommitThenStatus { status: 500 },
            5 => Act::CommitThenCut,
            6 => Act::CommitThenHang,
            7 => Act::Hang,
            8 => Act::Refuse,
            _ => Act::Status { status: 422, retry_after: None, body: None },
        };
        Fault::new(act).share(Share::percent(self.pick(&[2, 5, 10, 25])))
    }

    fn ops(&mut self, slugs: &[&str]) -> Vec<(Duration, Op)> {
        let mut ops = Vec::new();
        let mut at = Duration::ZERO;
        let mut named = 0;
        let properties = self.up_to(1, 3);
        for _ in 0..self.up_to(4, 14) {
            at += self.millis(0, 4_000);
            if self.one_in(8) {
                let away = Duration::from_micros(self.up_to(micros(AWAY.0), micros(AWAY.1)));
                ops.push((at, Op::Kill { away }));
                at += away;
                continue;
            }
            let batch = (0..self.up_to(1, 6)).map(|_| {
                named += 1;
                self.mutation(slugs, properties, named)
            });
            ops.push((at, Op::Accept(batch.collect())));
        }
        ops
    }

    fn mutation(&mut self, slugs: &[&str], properties: u64, named: u64) -> Value {
        let mut mutation = json!({
            "ota": self.pick(slugs),
            "property_id": format!("prop_{:08x}", self.up_to(1, properties)),
            "room_type_code": "DLX",
            "rate_plan_code": self.pick(&["BAR", "NRF"]),
            "stay_date": self.pick(&["2026-10-01", "2026-10-02"]),
            "correlation_id": format!("m{named}"),
            "priority": self.pick(&[0, 50, 100, 100, 100, 500, 1000]),
        });
        match self.up_to(0, 3) {
            0 | 1 => {
                mutation["amount"] = json!(format!("{}.50", self.up_to(80, 400)));
                mutation["currency"] = json!("EUR");
                mutation["inventory"] = json!(self.up_to(0, 20));
            }
            2 => {
                mutation["kind"] = json!("availability");
                mutation["inventory"] = json!(self.up_to(0, 20));
                if self.one_in(2) {
                    mutation.as_object_mut().unwrap().remove("rate_plan_code");
                }
            }
            _ => {
                mutation["kind"] = json!("restriction");
                for (field, value) in
                    [("min_stay", json!(2)), ("stop_sell", json!(true)), ("closed_to_arrival", json!(false))]
                {
                    if self.one_in(2) {
                        mutation[field] = value;
                    }
                }
                // It must set something.
                mutation["max_stay"] = json!(self.up_to(5, 30));
                if mutation.get("min_stay").is_some() && self.one_in(2) {
                    mutation.as_object_mut().unwrap().remove("max_stay");
                }
            }
        }
        mutation
    }
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap()
}
