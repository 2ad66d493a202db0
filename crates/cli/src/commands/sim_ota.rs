//! `sim-ota`: a simulated OTA to try things against.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use ota_sim::{Config, Ota, Server};

use crate::arguments::SimOtaArguments;
use crate::exit::Exit;

pub(crate) async fn run(arguments: &SimOtaArguments, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let config = match &arguments.config {
        None => Config::default(),
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
            Config::from_toml(&text).with_context(|| format!("reading {}", path.display()))?
        }
    };
    let server = Server::start(Arc::new(Ota::new(config)), arguments.listen).await;
    let server = server.with_context(|| format!("listening on {}", arguments.listen))?;
    writeln!(out, "the simulated OTA listens on {}; Ctrl-C stops it", server.url())?;
    out.flush()?;
    tokio::signal::ctrl_c().await.context("waiting for Ctrl-C")?;
    let books = server.books();
    server.stop().await;
    writeln!(out, "{}", serde_json::to_string_pretty(&books.total).context("writing the books")?)?;
    Ok(Exit::Done)
}
