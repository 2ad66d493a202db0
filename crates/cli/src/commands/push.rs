//! `push`: a file's mutations, stored and sent until all are final.

use std::io::Write;

use crate::arguments::PushArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;

/// Stores the file's mutations and sends them.
pub(crate) async fn run(
    _: &Invocation,
    arguments: &PushArguments,
    _: &mut dyn Write,
) -> anyhow::Result<Exit> {
    anyhow::bail!("push is not in this build: {arguments:?}")
}
