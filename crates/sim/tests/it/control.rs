//! The control endpoints.

use ota_sim::{Config, Server, Tally};
use reqwest::Client;
use serde_json::{Value, json};

use super::calls::{Push, prompt, rate};
use super::sockets::{client, send, serve};

async fn get(client: &Client, server: &Server, what: &str) -> String {
    client.get(format!("{}/_sim/{what}", server.url())).send().await.unwrap().text().await.unwrap()
}

async fn post(client: &Client, server: &Server, what: &str, body: Value) -> (u16, Value) {
    let request = client.post(format!("{}/_sim/{what}", server.url())).body(body.to_string());
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap())
}

async fn status(client: &Client, server: &Server, push: &Push) -> u16 {
    send(client, server, push).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn books_arrivals_cells_and_config_can_be_read_and_never_count() {
    let (server, client) = (serve(Config::default().any(prompt())).await, client());
    status(&client, &server, &rate(1)).await;
    status(&client, &server, &rate(2)).await;
    let books: Value = serde_json::from_str(&get(&client, &server, "books").await).unwrap();
    assert_eq!((&books["total"]["received"], &books["total"]["statuses"]["200"]), (&json!(2), &json!(2)));
    assert_eq!(books["channels"]["booking_com"]["endpoints"]["rates"]["committed"], json!(2));
    let arrivals = get(&client, &server, "arrivals").await;
    let first: Value = serde_json::from_str(arrivals.lines().next().unwrap()).unwrap();
    assert_eq!((arrivals.lines().count(), &first["correlation_id"]), (2, &json!("id-1")));
    let cells: Value = serde_json::from_str(&get(&client, &server, "cells").await).unwrap();
    assert_eq!(cells["cells"][0]["applied"], json!(["id-1", "id-2"]));
    assert_eq!(cells["cells"][0]["value"]["amount"], json!("120.50"));
    assert_eq!(cells["inventory"][0]["inventory"], json!(5));
    let config: Value = serde_json::from_str(&get(&client, &server, "config").await).unwrap();
    assert_eq!(Config::from_json(&config).unwrap(), server.ota().config());
    assert_eq!(server.books().total.received, 2);
    assert!(get(&client, &server, "nothing").await.contains("/_sim/books"));
}

#[tokio::test]
async fn a_patch_is_made_whole_or_not_at_all() {
    let (server, client) = (serve(Config::default().any(prompt())).await, client());
    let bad = json!({
        "channel": "booking_com",
        "limits": [{ "kind": "sliding_window", "max": 1, "per": "1m" }],
        "latency": { "min": "5s", "max": "1s" },
        "colour": "red",
    });
    let (code, said) = post(&client, &server, "config", bad).await;
    let keys: Vec<_> =
        said["faults"].as_array().unwrap().iter().map(|fault| fault["key"].as_str().unwrap()).collect();
    assert_eq!((code, keys), (422, vec!["latency.max", "colour"]));
    assert_eq!(
        (status(&client, &server, &rate(1)).await, status(&client, &server, &rate(2)).await),
        (200, 200)
    );

    let good =
        json!({ "channel": "booking_com", "limits": [{ "kind": "sliding_window", "max": 1, "per": "1h" }] });
    assert_eq!(post(&client, &server, "config", good).await.0, 200);
    assert_eq!(
        (status(&client, &server, &rate(3)).await, status(&client, &server, &rate(4)).await),
        (200, 429)
    );
    let faults = json!({ "channel": "booking_com", "limits": [], "faults": [{ "act": "500" }] });
    assert_eq!(post(&client, &server, "config", faults).await.0, 200);
    assert_eq!(status(&client, &server, &rate(5)).await, 500);
    assert_eq!(post(&client, &server, "config", json!({ "strict": true })).await.0, 422, "no channel");
}

#[tokio::test]
async fn an_outage_a_rotation_and_a_reset_take_effect_at_once() {
    let (server, client) = (serve(Config::default().any(prompt())).await, client());
    let outage = |kind: &str, lasts: &str| json!({ "channel": "booking_com", "kind": kind, "for": lasts });
    assert_eq!(status(&client, &server, &rate(1)).await, 200);
    let (code, accepted) = post(&client, &server, "token", json!({ "channel": "booking_com" })).await;
    assert_eq!((code, &accepted["accepted"]), (200, &Value::Null));
    assert_eq!(status(&client, &server, &rate(2)).await, 401);
    let (_, accepted) =
        post(&client, &server, "token", json!({ "channel": "booking_com", "token": "secret" })).await;
    assert_eq!(accepted["accepted"], json!("secret"));
    assert_eq!(post(&client, &server, "outage", outage("503", "1h")).await.0, 200);
    assert_eq!(status(&client, &server, &rate(3)).await, 503);
    assert_eq!(post(&client, &server, "reset", json!({})).await.0, 200);
    assert_eq!(server.books().total, Tally::default());
    assert_eq!(status(&client, &server, &rate(1)).await, 200);
    for bad in [outage("nap", "1h"), outage("503", "soon"), json!({ "kind": "503", "for": "1s" })] {
        assert_eq!(post(&client, &server, "outage", bad).await.0, 422);
    }
    assert_eq!(post(&client, &server, "outage", outage("refuse", "1h")).await.0, 200);
    assert!(send(&client, &server, &rate(9)).await.is_err(), "this channel only: its calls are reset");
    assert_eq!(status(&client, &server, &Push { ota: "agoda", ..rate(10) }).await, 200);
}
