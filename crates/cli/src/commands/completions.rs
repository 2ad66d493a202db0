//! `completions`: a completion script for a shell.

use std::io::Write;

use anyhow::Context;
use clap::CommandFactory;

use crate::arguments::{Arguments, CompletionsArguments};
use crate::exit::Exit;

pub(crate) fn run(arguments: &CompletionsArguments, out: &mut dyn Write) -> anyhow::Result<Exit> {
    // Generated whole first: the generator cannot report a reader that has gone.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "ota-governor", &mut script);
    out.write_all(&script).context("writing to stdout")?;
    Ok(Exit::Done)
}
