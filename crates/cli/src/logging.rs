//! Log lines on stderr: `key=value`, or one JSON object each.
//!
//! A line begins with `ts`, `level` and, where something happened that has a name, `event`; the other
//! keys follow in the order they were given. An event's name is its field `event`, its `name:`, or a
//! message that is one plain word; any other message goes under `message`.

use std::fmt;

use ota_governor::clock::Clock;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::arguments::LogFormat;

/// Begins logging: `louder` steps above the usual level, or below it.
pub(crate) fn start(format: LogFormat, louder: i16) {
    let (ours, others) = match louder {
        i16::MIN..=-3 => ("off", "off"),
        -2 => ("error", "error"),
        -1 => ("warn", "warn"),
        0 => ("info", "warn"),
        1 => ("debug", "info"),
        2..=i16::MAX => ("trace", "debug"),
    };
    let filter =
        EnvFilter::new(format!("{others},ota_governor={ours},ota_governor_core={ours},ota_sim={ours}"));
    let lines = Lines { format, clock: Clock::system() };
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    logger.event_format(lines).init();
}

/// Writes events as lines.
#[derive(Debug)]
struct Lines {
    format: LogFormat,
    clock: Clock,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let named = event.metadata().name();
        // Events that were not named carry `event FILE:LINE`.
        let named = (!named.starts_with("event ")).then(|| named.to_owned());
        let mut line = vec![
            ("ts".to_owned(), self.clock.wall().to_string().into()),
            ("level".to_owned(), level(*event.metadata().level()).into()),
        ];
        fields.into_line(named, &mut line);
        match self.format {
            LogFormat::Json => writeln!(to, "{{{}}}", json(&line)),
            LogFormat::Kv => writeln!(to, "{}", key_values(&line)),
        }
    }
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[derive(Debug, Default)]
struct Fields {
    message: Option<String>,
    others: Vec<(String, Value)>,
}

impl Fields {
    fn into_line(mut self, named: Option<String>, line: &mut Vec<(String, Value)>) {
        let is_word =
            |text: &String| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let explicit =
            self.others.iter().position(|(key, _)| key == "event").map(|at| self.others.remove(at).1);
        let word = self.message.take_if(|message| explicit.is_none() && named.is_none() && is_word(message));
        if let Some(event) = explicit.or(named.or(word).map(Value::from)) {
            line.push(("event".to_owned(), event));
        }
        line.extend(self.others);
        line.extend(self.message.map(|message| ("message".to_owned(), message.into())));
    }

    fn push(&mut self, field: &Field, value: Value) {
        self.others.push((field.name().to_owned(), value));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = Some(value.to_owned());
        } else {
            self.push(field, value.into());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let causes: Vec<String> =
            std::iter::successors(Some(value), |error| error.source()).map(ToString::to_string).collect();
        self.push(field, causes.join(": ").into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn json(line: &[(String, Value)]) -> String {
    let pairs: Vec<String> =
        line.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str()))).collect();
    pairs.join(",")
}

fn key_values(line: &[(String, Value)]) -> String {
    let pair = |(key, value): &(String, Value)| match value.as_str() {
        Some(plain) if is_plain(plain) => format!("{key}={plain}"),
        _ => format!("{key}={value}"),
    };
    let pairs: Vec<String> = line.iter().map(pair).collect();
    pairs.join(" ")
}

/// Whether a value can stand without quotes.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != '"' && c != '=' && c != '\\')
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use ota_governor::core::time::Timestamp;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Sink {
        type Writer = Self;
        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    fn logged(format: LogFormat) -> String {
        let sink = Sink::default();
        let clock = Clock::starting_at(Timestamp::from_micros(1_789_898_400_000_000));
        let lines = Lines { format, clock };
        let logger = tracing_subscriber::fmt().with_writer(sink.clone()).event_format(lines).finish();
        tracing::subscriber::with_default(logger, || {
            tracing::info!(event = "committed", ota = "booking_com", status = 200, confirmation_id = %"a b");
            tracing::info!(name: "deferred", ota = "booking_com", reason = %"throttled");
            tracing::warn!(ota = "agoda", "lane_paused");
            tracing::error!(wait_ms = 5_u64, "the channel said \"no\"");
        });
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_names_its_event_however_it_was_given_and_quotes_what_is_not_plain() {
        insta::assert_snapshot!(logged(LogFormat::Kv), @r#"
        ts=2026-09-20T10:00:00Z level=info event=committed ota=booking_com status=200 confirmation_id="a b"
        ts=2026-09-20T10:00:00Z level=info event=deferred ota=booking_com reason=throttled
        ts=2026-09-20T10:00:00Z level=warn event=lane_paused ota=agoda
        ts=2026-09-20T10:00:00Z level=error wait_ms=5 message="the channel said \"no\""
        "#);
    }

    #[tokio::test(start_paused = true)]
    async fn json_lines_carry_the_same_keys() {
        let text = logged(LogFormat::Json);
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(first["event"], "committed");
        assert_eq!(first["status"], 200);
        assert_eq!(first["ts"], "2026-09-20T10:00:00Z");
    }
}
