//! What each command does, one file each.

mod cancel;
mod check;
mod completions;
mod dead_letters;
mod demo;
mod explain;
mod export;
mod init;
mod pause;
mod push;
mod sim_ota;
mod status;
#[cfg(test)]
mod tests;

use std::io::Write;

use ota_governor::config::Config;
use ota_governor::core::time::Timestamp;
use ota_governor::ledger::Ledger;

use crate::arguments::{Arguments, Command, ExportCommand};
use crate::exit::Exit;
use crate::invocation::Invocation;

/// Runs the command; what it prints goes to `out`.
pub(crate) async fn run(arguments: Arguments, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let invocation = Invocation::new(arguments.config);
    match arguments.command {
        Command::Init(arguments) => init::run(&invocation, &arguments, out),
        Command::Completions(arguments) => completions::run(&arguments, out),
        Command::SimOta(arguments) => sim_ota::run(&arguments, out).await,
        Command::Demo(arguments) => Box::pin(demo::run(&invocation, &arguments, out)).await,
        Command::Push(arguments) => Box::pin(push::run(&invocation, &arguments, out)).await,
        Command::Check(arguments) => check::run(&invocation, &arguments, out),
        command @ (Command::Status(_)
        | Command::Explain(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Cancel(_)
        | Command::DeadLetters(_)
        | Command::Export(_)) => beside(&invocation, command, out).await,
    }
}

/// The commands that look into the ledger, or change it by hand, beside whoever dispatches from it.
async fn beside(invocation: &Invocation, command: Command, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let config = invocation.config()?;
    let ledger = invocation.open_ledger(&config)?;
    let now = invocation.clock.now();
    let exit = with_ledger(&config, ledger.as_ref(), now, command, out).await?;
    ledger.close().await?;
    Ok(exit)
}

async fn with_ledger(
    config: &Config,
    ledger: &dyn Ledger,
    now: Timestamp,
    command: Command,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    match command {
        Command::Status(arguments) => status::run(config, ledger, now, &arguments, out).await,
        Command::Explain(arguments) => explain::run(config, ledger, now, &arguments, out).await,
        Command::Pause(arguments) => pause::pause(config, ledger, now, arguments, out).await,
        Command::Resume(arguments) => pause::resume(ledger, now, &arguments, out).await,
        Command::Cancel(arguments) => cancel::run(ledger, now, &arguments, out).await,
        Command::DeadLetters(command) => dead_letters::run(ledger, now, command, out).await,
        Command::Export(ExportCommand::Committed(arguments)) => {
            export::committed(ledger, now, &arguments, out).await
        }
        Command::Init(_)
        | Command::Completions(_)
        | Command::SimOta(_)
        | Command::Demo(_)
        | Command::Push(_)
        | Command::Check(_) => unreachable!("these do not look into the ledger from beside"),
    }
}
