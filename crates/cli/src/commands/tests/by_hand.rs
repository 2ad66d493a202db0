//! Pausing, resuming and cancelling.

use ota_governor::ledger::{Hold, HoldCause};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_pause_by_hand_holds_its_scope_until_it_is_resumed() {
    let desk = Desk::new();
    let (exit, said) = desk.run("pause booking_com/availability --for 30m").await;
    assert_eq!(
        (exit, said.as_str()),
        (Exit::Done, "booking_com/availability is paused until 2026-09-20T10:30:00.000Z (in 30m)\n")
    );
    let holds = desk.ledger.holds().await.unwrap();
    assert_eq!((holds.len(), holds[0].cause), (1, HoldCause::Manual));
    assert!(holds[0].scope.covers(&lane(), None));
    let (exit, said) = desk.run("resume booking_com").await;
    assert_eq!(exit, Exit::Done);
    assert!(said.starts_with("booking_com/availability is resumed"), "{said}");
    assert!(desk.ledger.holds().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn resuming_lifts_suspensions_but_not_what_the_channel_asked_for() {
    let desk = Desk::new();
    let hold = |scope: &str, cause, until| Hold {
        scope: scope.parse().unwrap(),
        cause,
        since: START,
        until,
        detail: "429 with Retry-After 60".to_owned(),
    };
    let until = START + Duration::from_secs(60);
    let throttled = hold("booking_com:default/availability", HoldCause::Throttled, Some(until));
    let suspended = hold("booking_com:default", HoldCause::AccountSuspended, None);
    desk.ledger.hold(vec![throttled.clone(), suspended]).await.unwrap();
    let (_, said) = desk.run("resume booking_com").await;
    assert_eq!(desk.ledger.holds().await.unwrap(), [throttled]);
    assert!(said.contains("still held: booking_com:default/availability throttled until"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn resuming_a_part_of_what_is_paused_says_which_pause_to_lift() {
    let desk = Desk::new();
    desk.run("pause booking_com").await;
    let (_, said) = desk.run("resume booking_com/availability").await;
    assert!(said.contains("nothing in booking_com/availability was paused"), "{said}");
    assert!(said.contains("`ota-governor resume booking_com` lifts it"), "{said}");
    assert_eq!(desk.ledger.holds().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_what_is_not_configured_is_refused_with_what_is() {
    let desk = Desk::new();
    for (line, said) in [
        ("pause bookingcom", "there is no channel bookingcom: configured are booking_com"),
        ("pause booking_com:x", "booking_com has no account x: configured are default"),
        (
            "pause booking_com/x",
            "booking_com has no endpoint x: configured are availability, rates, restrictions",
        ),
    ] {
        let arguments = Arguments::parse_from(std::iter::once("ota-governor").chain(line.split(' ')));
        let mut out = Vec::new();
        let ran =
            super::super::with_ledger(&desk.config, desk.ledger.as_ref(), START, arguments.command, &mut out);
        assert_eq!(ran.await.unwrap_err().to_string(), said);
    }
    assert!(desk.ledger.holds().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_what_is_not_yet_sent_can_be_taken_back() {
    let desk = Desk::new();
    desk.enqueue("m1", 1, 5).await;
    desk.enqueue("m2", 2, 5).await;
    desk.claim().await;
    let (exit, said) = desk.run("cancel m1").await;
    assert_eq!(exit, Exit::Refused);
    assert!(said.starts_with("m1 is in flight: it cannot be taken back"), "{said}");
    assert_eq!(desk.run("cancel m2").await, (Exit::Done, "m2 is cancelled\n".to_owned()));
    let (exit, said) = desk.run("cancel m2").await;
    assert_eq!(exit, Exit::Refused);
    assert!(said.starts_with("m2 is cancelled since"), "{said}");
    assert_eq!(desk.run("cancel m3").await.0, Exit::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_cancelled_but_for_what_is_in_flight() {
    let desk = Desk::new();
    for property in 1..=3 {
        desk.enqueue(&format!("m{property}"), property, 5).await;
    }
    desk.claim().await;
    let (exit, said) = desk.run("cancel --batch night").await;
    assert_eq!(exit, Exit::Done);
    assert_eq!(said, "2 of the batch night are cancelled\n1 are in flight: they cannot be taken back\n");
    assert_eq!(desk.run("cancel --batch day").await.0, Exit::Refused);
}
