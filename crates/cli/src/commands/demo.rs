//! `demo`: the whole thing in half a minute against a simulated OTA in the same process.

use std::io::Write;

use crate::arguments::DemoArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;

/// Runs the demonstration.
pub(crate) async fn run(
    _: &Invocation,
    arguments: &DemoArguments,
    _: &mut dyn Write,
) -> anyhow::Result<Exit> {
    anyhow::bail!("demo is not in this build: {arguments:?}")
}
