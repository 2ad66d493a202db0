//! Each reaction over a real socket, as a real client sees it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use ota_sim::{Act, At, Channel, Config, Fault, Limit, Ota, Outage, OutageKind, Server};
use reqwest::{Client, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::calls::{Push, prompt, rate, secs};

pub(crate) async fn serve(config: Config) -> Server {
    Server::start(Arc::new(Ota::new(config)), ([127, 0, 0, 1], 0).into()).await.unwrap()
}

pub(crate) async fn serve_channel(channel: Channel) -> Server {
    serve(Config::default().channel("booking_com", channel)).await
}

pub(crate) fn client() -> Client {
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

pub(crate) async fn send(client: &Client, server: &Server, push: &Push) -> reqwest::Result<Response> {
    let call = push.call();
    client
        .post(format!("{}{}", server.url(), call.path))
        .headers(call.headers)
        .timeout(secs(20))
        .body(call.body)
        .send()
        .await
}

/// What a first call meets with under `act`, with its server.
async fn meet(act: Act) -> (Server, reqwest::Result<Response>) {
    let server = serve_channel(prompt().fault(Fault::new(act).times(1))).await;
    let met = send(&client(), &server, &rate(1)).await;
    (server, met)
}

#[tokio::test]
async fn a_good_call_is_answered_with_date_length_and_confirmation() {
    let server = serve_channel(prompt()).await;
    let answer = send(&client(), &server, &rate(1)).await.unwrap();
    assert_eq!(answer.status(), 200);
    for name in ["date", "content-length", "x-ota-confirmation-id", "content-type"] {
        assert!(answer.headers().contains_key(name), "{name}");
    }
    let body: serde_json::Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(body["correlation_id"], "id-1");
    let books = server.books();
    assert_eq!((books.total.committed, books.total.in_flight), (1, 0));
    server.stop().await;
}

#[tokio::test]
async fn one_connection_carries_many_calls() {
    let server = serve_channel(prompt().limit(Limit::concurrency(1))).await;
    let client = client();
    for n in 0..200 {
        assert_eq!(
            send(&client, &server, &rate(n)).await.unwrap().status(),
            200,
            "free again before the answer is read"
        );
    }
    assert_eq!(server.books().total.in_flight_peak, 1);
}

#[tokio::test]
async fn pipelined_calls_are_answered_in_their_order() {
    let server = serve_channel(prompt().strict(false)).await;
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    let one =
        "POST /booking_com/rates/sync HTTP/1.1\r\nauthorization: Bearer t\r\ncontent-length: 2\r\n\r\n{}";
    let last = one.replacen("content-length", "connection: close\r\ncontent-length", 1);
    stream.write_all(format!("{one}{one}{last}").as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3, "{text}");
}

#[tokio::test]
async fn a_cut_closes_without_one_byte() {
    for act in [Act::Cut, Act::CommitThenCut] {
        let applied = u64::from(act == Act::CommitThenCut);
        let server = serve_channel(prompt().fault(Fault::new(act))).await;
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        let push = rate(1);
        let body = push.body().to_string();
        let head = format!(
            "POST {} HTTP/1.1\r\nauthorization: Bearer t\r\ncontent-type: application/json\r\n\
             x-idempotency-key: {}\r\nx-correlation-id: {}\r\ncontent-length: {}\r\n\r\n{body}",
            push.path(),
            push.key,
            push.id,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        assert_eq!(stream.read_to_end(&mut bytes).await.unwrap(), 0);
        let total = server.books().total;
        assert_eq!((total.cuts, total.committed, total.lost_answers), (1, applied, applied));
    }
}

#[tokio::test]
async fn an_answer_cut_in_its_body_has_a_head_and_not_all_it_announced() {
    let (server, met) = meet(Act::CutInAnswer).await;
    let answer = met.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err());
    assert_eq!(server.books().total.lost_answers, 1);
}

#[tokio::test]
async fn a_hang_lasts_until_the_caller_gives_up_and_then_is_no_longer_in_flight() {
    let server = serve_channel(prompt().fault(Fault::new(Act::Hang))).await;
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    stream
        .write_all(b"POST /booking_com/rates/sync HTTP/1.1\r\nauthorization: Bearer t\r\n\r\n")
        .await
        .unwrap();
    until(|| server.books().total.in_flight == 1).await;
    assert_eq!(stream.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(stream);
    until(|| server.books().total.in_flight == 0).await;
    assert_eq!(server.books().total.hangs, 1);
}

/// Waits until the server has come to see something.
async fn until(seen: impl Fn() -> bool) {
    let looked = async {
        while !seen() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(secs(10), looked).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_leaves_before_the_answer_loses_it() {
    let server = serve_channel(prompt().latency(secs(30), secs(30))).await;
    let push = rate(1);
    let call = push.call();
    let client = client();
    let request = client.post(format!("{}{}", server.url(), call.path)).headers(call.headers).body(call.body);
    assert!(request.timeout(Duration::from_millis(200)).send().await.unwrap_err().is_timeout());
    until(|| server.books().total.in_flight == 0).await;
    let total = server.books().total;
    assert_eq!((total.committed, total.lost_answers, total.gone), (1, 1, 1));
}

#[tokio::test]
async fn a_drip_comes_whole_in_the_end() {
    let (_server, met) = meet(Act::Drip { interval: Duration::from_millis(1) }).await;
    let body: serde_json::Value = serde_json::from_slice(&met.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(body["status"], "accepted");
}

#[tokio::test]
async fn a_huge_answer_streams_as_much_as_it_announces() {
    let bytes = 64 * 1_024 * 1_024 + 7;
    let (_server, met) = meet(Act::Huge { bytes }).await;
    let mut answer = met.unwrap();
    assert_eq!(answer.content_length(), Some(bytes));
    let mut read = 0;
    while let Some(chunk) = answer.chunk().await.unwrap() {
        read += u64::try_from(chunk.len()).unwrap();
    }
    assert_eq!(read, bytes);
}

#[tokio::test]
async fn a_gigabyte_may_be_left_unread() {
    let (server, met) = meet(Act::Huge { bytes: 1 << 30 }).await;
    assert_eq!(met.unwrap().content_length(), Some(1 << 30));
    assert_eq!(send(&client(), &server, &rate(2)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn garbage_is_not_http() {
    let (server, met) = meet(Act::Garbage).await;
    assert!(met.is_err());
    assert_eq!(server.books().total.garbage, 1);
}

#[tokio::test]
async fn a_redirect_names_a_place_and_a_status_is_what_was_ordered() {
    let (_server, met) = meet(Act::Redirect { location: "/elsewhere".to_owned() }).await;
    let answer = met.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["location"].to_str().unwrap()),
        (302, "/elsewhere")
    );
    let (server, met) = meet(Act::Status { status: 204, retry_after: None, body: None }).await;
    assert_eq!(met.unwrap().status(), 204);
    assert_eq!(server.books().total.committed, 0);
}

#[tokio::test]
async fn a_single_refused_call_is_reset_and_does_not_arrive() {
    let (server, met) = meet(Act::Refuse).await;
    assert!(met.is_err());
    let total = server.books().total;
    assert_eq!((total.connections_refused, total.received), (1, 0));
}

/// Connects until that fails in the one way or works.
async fn connects(server: &Server, wanted: bool) {
    let tried = async {
        loop {
            match TcpStream::connect(server.addr()).await {
                Ok(_) if wanted => return,
                Err(fault) if !wanted && fault.kind() == ErrorKind::ConnectionRefused => return,
                Ok(_) | Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(secs(10), tried).await.unwrap();
}

#[tokio::test]
async fn while_every_listed_channel_refuses_nobody_listens_and_then_somebody_does_again() {
    let outage = Outage { at: Duration::ZERO, lasts: Duration::from_millis(300), kind: OutageKind::Refuse };
    let server = serve_channel(prompt().outage(outage)).await;
    let fault = TcpStream::connect(server.addr()).await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::ConnectionRefused);
    connects(&server, true).await;
    assert!(server.now() >= At::from_millis(300));
    assert_eq!(send(&client(), &server, &rate(1)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_outage_in_mid_run_closes_the_listener_and_the_connections_that_are_open() {
    let server = serve(Config::default().any(prompt())).await;
    let mut idle = TcpStream::connect(server.addr()).await.unwrap();
    let client = client();
    assert_eq!(send(&client, &server, &rate(1)).await.unwrap().status(), 200);
    server.ota().outage(server.now(), None, OutageKind::Refuse, Duration::from_millis(300));
    connects(&server, false).await;
    assert!(matches!(idle.read(&mut [0; 8]).await, Ok(0) | Err(_)));
    connects(&server, true).await;
    assert_eq!(send(&client, &server, &rate(2)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_stopped_server_lets_go_of_its_port_and_its_callers() {
    let server = serve_channel(prompt().fault(Fault::new(Act::Hang))).await;
    let addr = server.addr();
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream
        .write_all(b"POST /booking_com/rates/sync HTTP/1.1\r\nauthorization: Bearer t\r\n\r\n")
        .await
        .unwrap();
    until(|| server.books().total.in_flight == 1).await;
    tokio::time::timeout(secs(10), server.stop()).await.unwrap();
    assert!(matches!(stream.read(&mut [0; 8]).await, Ok(0) | Err(_)));
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_against_many_callers_at_once() {
    let server = Arc::new(serve_channel(prompt().limit(Limit::sliding_window(50, secs(3_600)))).await);
    let client = client();
    let calls: Vec<_> = (0..200)
        .map(|n| {
            let (server, client) = (Arc::clone(&server), client.clone());
            tokio::spawn(async move { send(&client, &server, &rate(n)).await.unwrap().status().as_u16() })
        })
        .collect();
    let mut taken = 0;
    for call in calls {
        taken += u64::from(call.await.unwrap() == 200);
    }
    let books = server.books();
    assert_eq!((taken, books.total.committed, books.total.refused), (50, 50, 150));
    assert_eq!(books.channels["booking_com"].limits[0].worst_window.arrivals.calls, 200);
}
