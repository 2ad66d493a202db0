//! Dispatch against a bare HTTP loop, in one run on one machine.
//!
//! `cargo bench -p ota-governor --bench dispatch [-- CALLS]` prints calls a second of a bare reqwest
//! loop with the same number in flight, then of the governor with limits far above the load, every
//! mutation accepted and settled durably in `SQLite` (`synchronous=FULL`), and their ratio.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and may stop at any fault"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ota_governor::clock::Clock;
use ota_governor::config::Config;
use ota_governor::core::mutation::Mutation;
use ota_governor::governor::{Drained, Governor, Parts};
use ota_governor::intake;
use ota_governor::ledger::Entry;
use ota_governor::ledger::sqlite::{OpenOptions, SqliteLedger};
use ota_governor::limiter::local::LocalLimiter;
use ota_governor::transport::http::HttpTransport;
use rand::SeedableRng;
use tokio::time::Instant;

const IN_FLIGHT: usize = 64;

async fn trivial_server() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let answer = service_fn(|_: Request<hyper::body::Incoming>| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer),
            );
        }
    });
    address
}

fn line(number: usize) -> String {
    let date = jiff::civil::date(2030, 1, 1)
        .saturating_add(jiff::Span::new().days(i64::try_from(number % 700).unwrap()));
    format!(
        r#"{{"property_id":"prop_{:08x}","room_type_code":"DBL","rate_plan_code":"BAR","ota":"x","stay_date":"{date}","amount":"101.50","currency":"EUR","inventory":3,"correlation_id":"b{number}"}}"#,
        number / 700
    )
}

async fn bare(address: SocketAddr, calls: usize) -> Duration {
    let client = reqwest::Client::new();
    let url = format!("http://{address}/x/rates/sync");
    let started = Instant::now();
    futures::stream::iter(0..calls)
        .for_each_concurrent(IN_FLIGHT, |number| {
            let call = client.post(&url).header("content-type", "application/json").body(line(number));
            async move {
                call.send().await.unwrap().bytes().await.unwrap();
            }
        })
        .await;
    started.elapsed()
}

async fn governed(address: SocketAddr, calls: usize) -> (Duration, Duration) {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        r#"
[channels.x]
base_url = "http://{address}"
token = {{ env = "PATH" }}
max_in_flight = {IN_FLIGHT}
[[channels.x.endpoints.rates.limits]]
kind = "token_bucket"
rate = 1000000
per = "1s"
burst = 1000000
"#
    );
    // Any text will do for a token.
    let file = dir.path().join("token");
    std::fs::write(&file, "token").unwrap();
    let text = text.replace(r#"{ env = "PATH" }"#, &format!("{{ file = {:?} }}", file.display().to_string()));
    let config = Config::parse(&text).unwrap();
    let context = intake::channels(&config).unwrap();
    let clock = Clock::system();
    let options = OpenOptions { dispatcher: true, clock: clock.clone() };
    let ledger = SqliteLedger::open(&dir.path().join("bench.db"), options).unwrap();
    let limiter = LocalLimiter::from_config(&config, clock.clone(), Vec::new());
    let transport = Arc::new(HttpTransport::try_new(clock.clone()).unwrap());
    let parts = Parts { config: Arc::new(config), ledger, limiter, transport, clock: clock.clone(), seed: 1 };
    let governor = Governor::start(parts).await.unwrap();
    let mut chance = rand::rngs::StdRng::seed_from_u64(1);
    let entries: Vec<Entry> = (0..calls)
        .map(|number| {
            let mutation =
                Mutation::from_json(line(number).as_bytes(), &context, clock.wall(), &mut chance).unwrap();
            Entry {
                expires: context.expires(&mutation),
                mutation,
                recipe: ota_governor::core::idempotency::Recipe::Revision,
            }
        })
        .collect();
    let started = Instant::now();
    for batch in entries.chunks(1_000) {
        governor.accept(batch.to_vec()).await.unwrap();
    }
    let accepted = started.elapsed();
    assert_eq!(governor.drained().await.unwrap(), Drained::Empty);
    let all = started.elapsed();
    governor.stop().await;
    (accepted, all)
}

fn main() {
    let calls = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(50_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = trivial_server().await;
        bare(address, calls / 10).await;
        let bare = bare(address, calls).await;
        let (accepted, all) = governed(address, calls).await;
        let rate = |took: Duration| u128::try_from(calls).unwrap() * 1_000_000 / took.as_micros();
        println!("bare reqwest loop, {IN_FLIGHT} in flight: {} calls/s", rate(bare));
        println!("governed, from the first accept to the last settle: {} calls/s", rate(all));
        println!("  of which accepting (sending went on meanwhile): {} ms", accepted.as_millis());
        println!("ratio: {}.{:02}", rate(all) / rate(bare), rate(all) * 100 / rate(bare) % 100);
    });
}
