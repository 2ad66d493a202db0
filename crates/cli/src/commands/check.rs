//! `check`: the configuration in words, and a file of mutations against it; sends nothing.

use std::io::Write;

use ota_governor::config::{Config, ConfigFaults};

use crate::arguments::CheckArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::table::Table;
use crate::words;

pub(crate) fn run(
    invocation: &Invocation,
    arguments: &CheckArguments,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let config = invocation.config()?;
    describe(&config, out)?;
    let faults = config.missing_tokens();
    if !faults.is_empty() {
        out.flush()?;
        return Err(ConfigFaults { faults }.into());
    }
    if let Some(file) = &arguments.file {
        anyhow::bail!("checking {} is not in this build", file.display());
    }
    Ok(Exit::Done)
}

/// Each lane with its limits: pace, burst and worst trailing window.
pub(super) fn describe(config: &Config, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "ledger {}, egress {}", config.ledger_url, config.egress)?;
    if config.channels.is_empty() {
        writeln!(out, "no channels: every mutation would be refused")?;
        return Ok(());
    }
    let mut table = Table::new(&["lane", "limit", "rule", "pace", "burst", "worst trailing window"]);
    for lane in config.lanes() {
        for limit in config.lane_limits(&lane)? {
            table.row(vec![
                lane.to_string(),
                limit.name.to_string(),
                words::rule(limit),
                words::pace(limit),
                words::burst(limit).to_string(),
                words::worst_window(limit),
            ]);
        }
    }
    writeln!(out)?;
    table.write(out)?;
    for (name, channel) in &config.channels {
        for (endpoint, configured) in &channel.endpoints {
            if channel.limits.is_empty() && configured.limits.is_empty() {
                writeln!(out, "{name}/{endpoint} has no limit: its mutations are refused")?;
            }
        }
    }
    Ok(())
}
