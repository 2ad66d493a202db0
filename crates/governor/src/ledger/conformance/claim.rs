//! Which mutations go, and when.

use std::time::Duration;

use ota_governor_core::mutation::{Kind, Mutation};
use ota_governor_core::state::State;

use super::Factory;
use super::desk::{Desk, at, availability, entry, lane, name, priority, property, rate};
use crate::ledger::{Entry, Head};

fn urgent(number: u16, mutation: Mutation) -> Mutation {
    Mutation { priority: priority(number), ..mutation }
}

/// Lower numbers first, equal ones in the order accepted.
pub async fn the_most_urgent_goes_first_and_equals_in_the_order_accepted(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    for (number, (id, level)) in (1..).zip([("c", 100), ("e", 1000), ("a", 0), ("d", 100), ("b", 99)]) {
        desk.accept(at(number, urgent(level, rate(id, "100", 4)))).await;
    }
    let claimed = desk.claim(Kind::Rate, vec![None; 9]).await;
    let ids: Vec<&str> = claimed.jobs.iter().map(|job| job.mutation.correlation_id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
    let picks: Vec<usize> = claimed.jobs.iter().map(|job| job.pick).collect();
    assert_eq!(picks, [0, 1, 2, 3, 4]);
    assert_eq!(claimed.head, Head::default());
    assert_eq!(desk.state("e").await, State::InFlight);
}

/// A permit for a property takes the most urgent of that property and of no other.
pub async fn each_pick_gets_one_of_its_property(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let day = |id: &str, number, day| {
        at(number, Mutation { stay_date: jiff::civil::date(2026, 12, day), ..rate(id, "100", 4) })
    };
    desk.accept(day("p1 first", 1, 1)).await;
    desk.accept(day("p2 first", 2, 1)).await;
    desk.accept(urgent(1, day("p2 urgent", 2, 2))).await;
    let picks = vec![Some(property(2)), Some(property(3)), None, Some(property(2)), Some(property(2))];
    let claimed = desk.claim(Kind::Rate, picks).await;
    let jobs: Vec<(&str, usize)> =
        claimed.jobs.iter().map(|job| (job.mutation.correlation_id.as_str(), job.pick)).collect();
    assert_eq!(jobs, [("p2 urgent", 0), ("p1 first", 2), ("p2 first", 3)]);
}

/// However long the backlog, the urgent one has the next pick.
pub async fn an_urgent_one_overtakes_a_backlog_of_other_cells(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    let backlog = (1..=500).map(|number| entry(at(number, availability(&format!("sync{number}"), 4))));
    desk.ledger.enqueue(backlog.collect(), desk.now).await.unwrap();
    desk.accept(at(777, urgent(0, availability("close", 0)))).await;
    desk.take(Kind::Availability, "close").await;
    desk.take(Kind::Availability, "sync1").await;
}

/// A parked one is not sent to the end: when it is due, it goes before what was accepted after it.
pub async fn a_parked_one_goes_when_it_is_due_and_keeps_its_place(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    desk.accept(at(1, rate("first", "100", 4))).await;
    desk.accept(at(2, rate("second", "100", 4))).await;
    desk.accept(at(3, rate("third", "100", 4))).await;
    let job = desk.take(Kind::Rate, "first").await;
    desk.fail(&job, 10).await;
    desk.take(Kind::Rate, "second").await;
    desk.now = desk.now + Duration::from_micros(9_999_999);
    let head = desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!((head.ready, head.due), (1, Some(desk.now + Duration::from_micros(1))));
    desk.now = desk.now + Duration::from_micros(1);
    let head = desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!((head.ready, head.due), (2, None));
    let job = desk.take(Kind::Rate, "first").await;
    assert_eq!(job.attempts, 1);
}

/// Past its time when its permit comes: a dead letter that names the value it replaced; the permit goes on.
pub async fn an_expired_one_costs_no_pick_and_names_what_it_replaced(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    let short = |mutation| Entry { expires: Some(desk.now + Duration::from_secs(60)), ..entry(mutation) };
    let (old, new) = (short(rate("old", "100", 4)), short(rate("new", "110", 4)));
    desk.enqueue(old).await;
    desk.enqueue(new).await;
    desk.accept(at(2, rate("other", "90", 4))).await;
    desk.pass(61);
    let claimed = desk.claim(Kind::Rate, vec![None]).await;
    assert_eq!(claimed.jobs.len(), 1);
    assert_eq!(claimed.jobs[0].mutation.correlation_id, name("other"));
    assert_eq!(claimed.expired.len(), 1);
    assert_eq!(claimed.expired[0].replaced, Some(name("old")));
    assert_eq!(claimed.expired[0].mutation, rate("new", "110", 4));
    let record = desk.record("new").await;
    assert_eq!((record.state, record.reason.as_deref()), (State::DeadLettered, Some("expired")));
    assert_eq!((record.replaced, record.requests), (Some(name("old")), 0));
    assert_eq!(desk.state("old").await, State::Superseded);
}

/// At the very instant it expires it is not sent any more; a microsecond before, it is.
pub async fn expiry_is_reached_exactly_at_its_time(factory: &dyn Factory) {
    let mut desk = Desk::open(factory).await;
    let until = desk.now + Duration::from_secs(60);
    desk.enqueue(Entry { expires: Some(until), ..entry(at(1, rate("sent", "100", 4))) }).await;
    desk.enqueue(Entry { expires: Some(until), ..entry(at(2, rate("late", "100", 4))) }).await;
    desk.now = until - Duration::from_micros(1);
    desk.take(Kind::Rate, "sent").await;
    desk.now = until;
    let claimed = desk.claim(Kind::Rate, vec![None]).await;
    assert_eq!((claimed.jobs.len(), claimed.expired.len()), (0, 1));
}

/// The intent to send is on record: the same mutation is not handed out twice.
pub async fn a_claimed_one_is_not_claimed_again(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(rate("r1", "100", 4)).await;
    let job = desk.take(Kind::Rate, "r1").await;
    let record = desk.record("r1").await;
    assert_eq!((record.state, record.idempotency_key), (State::InFlight, job.idempotency_key));
    desk.nothing(Kind::Rate).await;
    desk.nothing(Kind::Availability).await;
}

/// Enough to decide what to ask the limiter for.
pub async fn a_head_tells_what_may_go_and_when_the_next_is_due(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    assert_eq!(desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap(), Head::default());
    desk.accept(at(1, urgent(7, rate("r1", "100", 4)))).await;
    desk.accept(at(1, rate("behind nothing", "100", 4))).await;
    desk.accept(at(2, rate("r2", "100", 4))).await;
    let head = desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!(head, Head { priority: Some(priority(7)), ready: 2, due: None, properties: vec![] });
    let many = (10..1_200).map(|number| entry(at(number, rate(&format!("m{number}"), "1", 1))));
    desk.ledger.enqueue(many.collect(), desk.now).await.unwrap();
    assert_eq!(desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap().ready, 1_000);
    let elsewhere = desk.ledger.head(&lane(Kind::Restriction), desk.now).await.unwrap();
    assert_eq!(elsewhere, Head::default());
}

/// A lane whose limits count per property lists who waits, the most urgent first, each once.
pub async fn a_keyed_lane_lists_properties_by_urgency(factory: &dyn Factory) {
    let desk = Desk::open(factory).await;
    desk.accept(at(5, rate("before", "100", 4))).await;
    desk.ledger.key_by_property(vec![lane(Kind::Rate)]).await.unwrap();
    let day = |id: &str, number, day| {
        at(number, Mutation { stay_date: jiff::civil::date(2026, 12, day), ..rate(id, "100", 4) })
    };
    desk.accept(day("p3", 3, 1)).await;
    desk.accept(day("p3 too", 3, 2)).await;
    desk.accept(urgent(1, day("p4", 4, 1))).await;
    let head = desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!(head.properties, vec![property(4), property(5), property(3)]);
    let claimed = desk.claim(Kind::Rate, vec![Some(property(5))]).await;
    assert_eq!(claimed.head.properties, vec![property(4), property(3)]);
    let many = (100..200).map(|number| entry(at(number, rate(&format!("m{number}"), "1", 1))));
    desk.ledger.enqueue(many.collect(), desk.now).await.unwrap();
    let head = desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!((head.properties.len(), &head.properties[..2]), (64, &[property(4), property(3)][..]));
    desk.ledger.key_by_property(vec![]).await.unwrap();
    let head = desk.ledger.head(&lane(Kind::Rate), desk.now).await.unwrap();
    assert_eq!(head.properties, vec![]);
}
