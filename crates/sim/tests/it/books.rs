//! Counts that judge a caller.

use ota_sim::{At, Config, Ota};

use super::calls::{availability, make, prompt, rate, secs};

#[test]
fn two_calls_for_one_cell_or_one_room_at_once_are_seen() {
    let ota = Ota::new(Config::default().any(prompt().latency(secs(1), secs(1))));
    let first = ota.receive(At::ZERO, &rate(1).call());
    let second = ota.receive(At::ZERO, &rate(2).call());
    let third = ota.receive(At::ZERO, &availability(3, 1).call());
    let total = ota.books(At::ZERO).total;
    assert_eq!((total.cell_overlaps, total.inventory_overlaps), (1, 2));
    for reaction in [first, second, third] {
        ota.finish(At::from_secs(1), reaction.ticket);
    }
    make(&ota, At::from_secs(1), &rate(4));
    assert_eq!(ota.books(At::from_secs(1)).total.cell_overlaps, 1, "one after the other is as it should be");
    assert_eq!(ota.books(At::from_secs(1)).total.in_flight, 0);
}

#[test]
fn arrivals_are_kept_in_their_order_up_to_the_bound() {
    let ota = Ota::new(Config { keep_arrivals: 2, ..Config::default().any(prompt()) });
    for n in 1..=3 {
        make(&ota, At::from_secs(n), &rate(n));
    }
    let arrivals = ota.arrivals();
    let seen: Vec<_> = arrivals.iter().map(|a| (a.at, a.correlation_id.as_deref().unwrap())).collect();
    assert_eq!(seen, [(At::from_secs(1), "id-1"), (At::from_secs(2), "id-2")]);
    assert!(arrivals.iter().all(|arrival| arrival.applied && arrival.status == Some(200)));
    let books = ota.books(At::from_secs(3));
    assert_eq!((books.arrivals_kept, books.arrivals_dropped, books.total.received), (2, 1, 3));
}

#[test]
fn the_whole_is_the_sum_of_its_parts() {
    let ota = Ota::new(Config::default().any(prompt()));
    for n in 0..3 {
        make(&ota, At::ZERO, &rate(n));
    }
    make(&ota, At::ZERO, &availability(4, 1));
    let books = ota.books(At::ZERO);
    assert_eq!(books.endpoint("booking_com", "rates").committed, 3);
    assert_eq!(books.endpoint("booking_com", "availability").committed, 1);
    assert_eq!((books.channels["booking_com"].total.committed, books.total.committed), (4, 4));
    assert!(!books.is_over());
}

#[test]
fn an_answer_whose_caller_went_away_is_lost() {
    let ota = Ota::new(Config::default().any(prompt().latency(secs(2), secs(2))));
    let early = ota.receive(At::ZERO, &rate(1).call());
    ota.finish(At::from_secs(1), early.ticket);
    let late = ota.receive(At::from_secs(1), &rate(2).call());
    ota.abandon(At::from_secs(4), late.ticket);
    let total = ota.books(At::from_secs(4)).total;
    assert_eq!((total.gone, total.lost_answers, total.committed), (2, 2, 2));
}

#[test]
fn a_reset_forgets_what_was_seen_and_keeps_the_configuration() {
    let limit = ota_sim::Limit::sliding_window(1, secs(60));
    let ota = Ota::new(Config::default().channel("booking_com", prompt().limit(limit)));
    make(&ota, At::from_secs(1), &rate(1));
    let before = ota.receive(At::from_secs(1), &rate(2).call());
    ota.reset(At::from_secs(2));
    ota.finish(At::from_secs(2), before.ticket);
    let books = ota.books(At::from_secs(2));
    assert_eq!(
        (books.total.clone(), books.at, ota.cells().len()),
        (ota_sim::Tally::default(), At::from_secs(2), 0)
    );
    assert_eq!(make(&ota, At::from_secs(2), &rate(1)).then.status(), Some(200), "the budget is full again");
    assert_eq!(make(&ota, At::from_secs(2), &rate(2)).then.status(), Some(429), "the limit is still there");
}
