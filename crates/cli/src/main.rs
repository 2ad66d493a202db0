//! The command `ota-governor`: the governor for people and batch jobs.
//!
//! Owns the words on the command line, what is printed, and the exit codes. Decides nothing about
//! mutations itself: every command works through the seams of the library.

mod arguments;
mod budget;
mod commands;
mod exit;
mod invocation;
mod logging;
mod record;
mod table;
mod words;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::arguments::Arguments;
use crate::exit::Exit;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let louder = i16::from(arguments.verbose) - i16::from(arguments.quiet);
    logging::start(arguments.log_format, louder - arguments.command.quieter());
    match run(arguments) {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            // Nothing is left to be done about a stderr that cannot be written to.
            let _ = writeln!(std::io::stderr(), "{}", exit::describe(&error));
            Exit::of(&error).into()
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("starting the runtime")?;
    let mut out = BufWriter::new(std::io::stdout());
    let exit = runtime.block_on(commands::run(arguments, &mut out));
    let flushed = out.flush().context("writing to stdout");
    let exit = exit?;
    match flushed {
        // Whoever reads stdout may leave; what became of the work is told by the exit code all the same.
        Err(error) if !exit::is_broken_pipe(&error) => Err(error),
        Ok(()) | Err(_) => Ok(exit),
    }
}
