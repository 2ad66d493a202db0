use std::collections::BTreeMap;
use std::time::Duration;

use ota_governor_core::idempotency::Recipe;
use ota_governor_core::limit::{Each, Limit, Rule};
use ota_governor_core::mutation::draft::PROPERTY_ID_PATTERN;
use ota_governor_core::name::{AccountName, EndpointName, LimitName};
use ota_governor_core::retry::RetryPolicy;

use super::*;
use crate::config::{Endpoint, Pauses, TokenSource};

/// A Sunday, 10:00 UTC.
const NOW: Timestamp = Timestamp::from_micros(1_789_898_400_000_000);

fn limit() -> Limit {
    Limit {
        name: LimitName::try_new("calls").unwrap(),
        rule: Rule::Concurrency { max: 1.try_into().unwrap() },
        each: Each::Account,
    }
}

fn channel(limits: Vec<Limit>, endpoints: BTreeMap<EndpointName, Endpoint>) -> Channel {
    Channel {
        base_url: "http://127.0.0.1:1".into(),
        accounts: BTreeMap::from([(AccountName::default(), TokenSource::Env("T".into()))]),
        auth_header: "Authorization".into(),
        auth_prefix: "Bearer ".into(),
        headers: Vec::new(),
        timeout: Duration::from_secs(15),
        max_in_flight: 1,
        time_zone: None,
        property_id_pattern: PROPERTY_ID_PATTERN.parse().unwrap(),
        idempotency: Recipe::Revision,
        max_answer_bytes: 1,
        limits,
        endpoints,
    }
}

fn endpoint(name: &str, limits: Vec<Limit>) -> (EndpointName, Endpoint) {
    let endpoint = Endpoint {
        path: "/".into(),
        pauses: Pauses::Lane,
        timeout: None,
        retry: RetryPolicy::default(),
        limits,
    };
    (EndpointName::try_new(name).unwrap(), endpoint)
}

fn config(channels: impl IntoIterator<Item = (&'static str, Channel)>) -> Config {
    let named = channels.into_iter().map(|(name, channel)| (ChannelName::try_new(name).unwrap(), channel));
    Config {
        ledger_url: "memory:".into(),
        retention: Duration::from_secs(1),
        egress: "here".into(),
        limits: BTreeMap::new(),
        channels: named.collect(),
        ..Config::default()
    }
}

fn reader<R: Read>(input: R, format: Format) -> Reader<R> {
    let config = config([("booking_com", channel(vec![limit()], BTreeMap::new()))]);
    Reader::new(input, format, Arc::new(channels(&config).unwrap()))
}

/// Every line with its id, or with what is wrong with it.
fn lines(input: &[u8], format: Format) -> Vec<(u64, String)> {
    let mut reader = reader(input, format);
    let mut out = Vec::new();
    while let Some(intake) = reader.read(NOW).unwrap() {
        out.push((
            intake.line,
            match intake.result {
                Ok(mutation) => mutation.correlation_id.to_string(),
                Err(faults) => faults.to_string(),
            },
        ));
    }
    out
}

fn header_faults(input: &str) -> String {
    let error = reader(input.as_bytes(), Format::Csv).read(NOW).unwrap_err();
    error.to_string()
}

fn json(id: &str) -> String {
    format!(
        r#"{{"property_id":"prop_0a1b2c3d","room_type_code":"DLX","rate_plan_code":"BAR","ota":"booking_com","stay_date":"2026-10-01","amount":"129.90","currency":"EUR","inventory":3,"correlation_id":"{id}"}}"#
    )
}

fn owned(lines: &[(u64, &str)]) -> Vec<(u64, String)> {
    lines.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
}

const HEADER: &str =
    "property_id,room_type_code,rate_plan_code,ota,stay_date,amount,currency,inventory,correlation_id,batch";

fn row(id: &str) -> String {
    format!("prop_0a1b2c3d,DLX,BAR,booking_com,2026-10-01,129.90,EUR,3,{id},")
}

#[test]
fn a_bad_line_is_refused_by_its_number_and_the_others_go_on() {
    let mut input = format!("\u{feff}{}\r\n\r\n", json("a")).into_bytes();
    input.extend(b"{\"ota\":\"\xff\"}\n[]\n");
    input.extend(format!("{}\n{}\n{}", json("b").replace('3', "-3"), "x".repeat(70_000), json("c")).bytes());
    let read = lines(&input, Format::Ndjson);
    let at: Vec<_> = read.iter().map(|(line, _)| *line).collect();
    assert_eq!(at, [1, 3, 4, 5, 6, 7]);
    assert_eq!(read[0].1, "a");
    assert!(read[1].1.ends_with("is not UTF-8 at byte 9"), "{}", read[1].1);
    assert!(read[2].1.contains("is not one JSON object"), "{}", read[2].1);
    assert!(read[3].1.contains(r#"inventory: "-3" must be an integer from 0 to 999"#), "{}", read[3].1);
    assert_eq!(read[4].1, "line: is longer than 65536 bytes");
    assert_eq!(read[5].1, "c");
}

#[test]
fn a_table_is_read_by_its_header() {
    let input = format!(
        "\u{feff}{HEADER}\r\n{}\r\n\r\n  {}\r\n{}",
        row("a"),
        row("b"),
        row("c").replace("EUR", "JPY")
    );
    assert_eq!(
        lines(input.as_bytes(), Format::Csv),
        owned(&[(2, "a"), (4, "b"), (5, r#"amount: "129.90" must have no digits after the point in JPY"#),])
    );
}

#[test]
fn a_record_over_several_lines_is_named_by_its_first() {
    let odd = row("b").replace("DLX", "\"D\nX\"");
    let input = format!("{HEADER}\n{}\n{odd}\n{}\n", row("\"a\""), row("c"));
    assert_eq!(
        lines(input.as_bytes(), Format::Csv),
        owned(&[(2, "a"), (3, r#"room_type_code: "D\nX" must be 2 to 16 printable characters"#), (5, "c")])
    );
}

#[test]
fn a_broken_row_harms_no_other() {
    let many = "x,".repeat(300);
    let mut input = format!("{HEADER}\n{},more\nshort\n{many}\n", row("a")).into_bytes();
    input.extend(row("b").replace("DLX", "D?X").bytes().map(|byte| if byte == b'?' { 0xff } else { byte }));
    input.extend(format!("\n{}\n{}", row("c"), row("\"open")).bytes());
    let read = lines(&input, Format::Csv);
    assert_eq!(read[0], (2, "row: has 11 cells where the header has 10".to_owned()));
    assert_eq!(read[1], (3, "row: has 1 cells where the header has 10".to_owned()));
    assert!(read[2].1.ends_with("has more than 256 cells"), "{}", read[2].1);
    assert!(read[3].1.ends_with("is not UTF-8 after 14 bytes of text"), "{}", read[3].1);
    assert_eq!(read[4], (6, "c".to_owned()));
    assert!(read[5].1.ends_with("opens a quote that is never closed"), "{}", read[5].1);
    assert_eq!(read.len(), 6);
}

#[test]
fn every_fault_of_a_header_is_told_at_once() {
    assert_eq!(
        header_faults("property_id,room_type_code,amount,ammount,amount,,stay_date\n"),
        "the table's header on line 1 is wrong: header: \"ammount\" is not a field of a mutation: is `amount` meant?; \
         header: \"amount\" names a column twice; header: \"\" is not a field of a mutation; header: has no column `ota`"
    );
    assert_eq!(
        header_faults("\nproperty_id;ota\n"),
        "the table's header on line 2 is wrong: header: \"property_id;ota\" must have its columns separated by commas"
    );
}

#[test]
fn an_empty_stream_holds_nothing() {
    assert!(lines(b"", Format::Ndjson).is_empty());
    assert!(lines(b"\n\r\n  \n", Format::Csv).is_empty());
}

#[test]
fn the_caller_learns_when_to_hand_on_what_it_has() {
    let text = format!("{}\n{}\n\n", json("a"), json("b"));
    // What a pipe holds just now; the end of the stream is only seen by another read.
    let mut reader = reader(text.as_bytes(), Format::Ndjson);
    assert!(reader.would_block_next());
    assert!(reader.read(NOW).unwrap().is_some());
    assert!(!reader.would_block_next());
    assert!(reader.read(NOW).unwrap().is_some());
    assert!(reader.would_block_next());
    assert!(reader.read(NOW).unwrap().is_none());
}

#[test]
fn a_kind_is_available_where_its_endpoint_or_its_channel_has_a_limit() {
    let endpoints =
        || [endpoint("rates", vec![limit()]), endpoint("restrictions", Vec::new())].into_iter().collect();
    let config = config([
        ("own", channel(Vec::new(), endpoints())),
        ("whole", channel(vec![limit()], BTreeMap::new())),
    ]);
    let context = channels(&config).unwrap();
    let available = |slug| {
        let (_, rules) = context.channel(slug).unwrap();
        Kind::ALL.iter().copied().filter(|kind| rules.is_available(*kind)).collect::<Vec<_>>()
    };
    assert_eq!(available("own"), [Kind::Rate]);
    assert_eq!(available("whole"), Kind::ALL);
}

#[test]
fn a_time_zone_that_does_not_exist_is_named_with_its_channel() {
    let mut wrong = channel(Vec::new(), BTreeMap::new());
    wrong.time_zone = Some("Mars/Olympus".into());
    assert_eq!(
        channels(&config([("own", wrong)])).unwrap_err().to_string(),
        r#"time_zone "Mars/Olympus" of channel own does not exist"#
    );
}

#[test]
fn the_format_is_told_by_the_name() {
    assert_eq!(Format::of(Path::new("rates.CSV")), Format::Csv);
    assert_eq!(Format::of(Path::new("rates.ndjson")), Format::Ndjson);
    assert_eq!(Format::of(Path::new("rates")), Format::Ndjson);
    assert_eq!("csv".parse(), Ok(Format::Csv));
    assert!("xml".parse::<Format>().is_err());
}
