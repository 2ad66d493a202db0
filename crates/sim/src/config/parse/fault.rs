//! Reading faults and outages.

use std::time::Duration;

use serde_json::Value;

use super::answer::forms;
use super::words::{counts, header_text, share, status, texts};
use crate::config::read::{Faults, Table, count, long, span, text, word};
use crate::config::{Act, Fault, Outage, OutageKind, Share};

pub(super) fn fault(path: &str, value: &Value, faults: &Faults) -> Option<Fault> {
    let mut t = Table::open(path, value, faults)?;
    let act = act(&mut t);
    let fault = Fault {
        act: act.unwrap_or(Act::Cut),
        share: t.get("share", share).unwrap_or(Share::ALL),
        endpoint: t.get("endpoint", text),
        properties: t.get("properties", texts).unwrap_or_default(),
        nth: t.get("nth", counts).unwrap_or_default(),
        every: t.get("every", count),
        at: t.get("at", span).unwrap_or_default(),
        lasts: t.get("for", long),
        times: t.get("times", count),
    };
    t.close();
    Some(fault)
}

const ACTS: &str = "status, a status such as \"503\", redirect, cut, commit_then_cut, commit_then_status, \
    commit_then_500, cut_in_answer, hang, commit_then_hang, drip, huge, garbage, refuse, slow";

fn act(t: &mut Table<'_>) -> Option<Act> {
    let name = t.need("act", text)?;
    Some(match name.as_str() {
        "status" => Act::Status {
            status: t.need("status", status)?,
            retry_after: forms(t, "retry_after").and_then(|forms| forms.into_iter().next()),
            body: t.get("body", text),
        },
        "redirect" => Act::Redirect {
            location: t.get("location", header_text).unwrap_or_else(|| "/elsewhere".to_owned()),
        },
        "cut" => Act::Cut,
        "commit_then_cut" => Act::CommitThenCut,
        "commit_then_500" => Act::CommitThenStatus { status: 500 },
        "commit_then_status" => Act::CommitThenStatus { status: t.need("status", status)? },
        "cut_in_answer" => Act::CutInAnswer,
        "hang" => Act::Hang,
        "commit_then_hang" => Act::CommitThenHang,
        "drip" => Act::Drip { interval: t.get("interval", long).unwrap_or(Duration::from_millis(100)) },
        "huge" => Act::Huge { bytes: t.get("bytes", count).unwrap_or(1 << 30) },
        "garbage" => Act::Garbage,
        "refuse" => Act::Refuse,
        "slow" => Act::Slow { by: t.need("by", long)? },
        other => {
            let Some(status) = other.parse().ok().filter(|s| (200..=599).contains(s)) else {
                t.fault("act", format!("must be one of {ACTS}, not {other:?}"));
                return None;
            };
            Act::Status {
                status,
                retry_after: forms(t, "retry_after").and_then(|forms| forms.into_iter().next()),
                body: t.get("body", text),
            }
        }
    })
}

pub(super) fn outage(path: &str, value: &Value, faults: &Faults) -> Option<Outage> {
    let mut t = Table::open(path, value, faults)?;
    let (at, lasts) = (t.need("at", span), t.need("for", long));
    let kind = t.need("kind", word(OutageKind::named, "503, refuse, cut, hang"));
    t.close();
    Some(Outage { at: at?, lasts: lasts?, kind: kind? })
}
