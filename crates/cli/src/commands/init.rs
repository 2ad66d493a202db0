//! `init`: a commented `governor.toml` to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use anyhow::Context;

use crate::arguments::InitArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;

const STARTER: &str = include_str!("init.toml");

pub(crate) fn run(
    invocation: &Invocation,
    arguments: &InitArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let path = &invocation.config_path;
    let mut options = OpenOptions::new();
    options.write(true);
    if arguments.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = options.open(path).map_err(|error| {
        let there = error.kind() == ErrorKind::AlreadyExists;
        let hint = if there { "; --force overwrites it" } else { "" };
        anyhow::Error::new(error).context(format!("writing {}{hint}", path.display()))
    })?;
    file.write_all(STARTER.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    writeln!(
        out,
        "wrote {}: set the base_url of each channel and the variables of its tokens,",
        path.display()
    )?;
    writeln!(out, "then `ota-governor check`")?;
    Ok(Exit::Done)
}
