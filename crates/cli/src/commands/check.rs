//! `check`: the configuration in words, and a file of mutations against it; sends nothing.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use ota_governor::clock::Clock;
use ota_governor::config::{Config, ConfigFaults};
use ota_governor::intake::{self, Format, Reader};

use crate::arguments::{CheckArguments, FileFormat};
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
    match &arguments.file {
        Some(file) => mutations(&config, file, arguments.format, &invocation.clock, out),
        None => Ok(Exit::Done),
    }
}

/// Reads a file's mutations and prints every fault by line.
fn mutations(
    config: &Config,
    file: &Path,
    format: Option<FileFormat>,
    clock: &Clock,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let context = Arc::new(intake::channels(config)?);
    let format = format.map_or_else(|| Format::of(file), Format::from);
    let exit = if file == Path::new("-") {
        examine(Reader::new(std::io::stdin(), format, context), clock, out)
    } else {
        let opened = File::open(file).with_context(|| format!("opening {}", file.display()))?;
        examine(Reader::new(opened, format, context), clock, out)
    };
    exit.with_context(|| format!("checking {}", file.display()))
}

/// Prints every fault of a stream, a line each, and the sum.
pub(super) fn examine<R: Read>(
    mut reader: Reader<R>,
    clock: &Clock,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let (mut good, mut bad) = (0_u64, 0_u64);
    writeln!(out)?;
    while let Some(read) = reader.read(clock.wall())? {
        match read.result {
            Ok(_) => good += 1,
            Err(faults) => {
                bad += 1;
                for fault in &faults {
                    writeln!(out, "line {}: {fault}", read.line)?;
                }
                let more = faults.len().saturating_sub(faults.iter().len());
                if more > 0 {
                    writeln!(out, "line {}: and {more} more", read.line)?;
                }
            }
        }
    }
    writeln!(out, "{good} mutations are good, {bad} are refused")?;
    Ok(if bad == 0 { Exit::Done } else { Exit::Refused })
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
